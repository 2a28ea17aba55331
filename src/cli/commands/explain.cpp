#include <memory>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/session_options.h"

namespace fusewise::cli {
namespace {

struct Options {
  CompileFlags compile;
  std::string from, to;
};

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  options->compile.declare(parser);
  parser.positional("A", options->from, "a node: its name, an output tensor's name, Conv#12 or #57", false);
  parser.positional("B", options->to, "another node: why A and B are (not) fused", false);
  return [options](Console&) -> int { throw UnsupportedError("not supported yet: explain"); };
}

}  // namespace

Command explain_command() {
  return {"explain", "says why operators are fused or not, with prices",
          "fusewise explain model.onnx conv1 relu1", declare};
}

}  // namespace fusewise::cli
