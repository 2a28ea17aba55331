#include <fmt/core.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/session_options.h"
#include "fusion/plan_json.h"
#include "graph/text.h"
#include "session/compile.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  CompileFlags compile;
  std::string stage = "graph", kernel;
};

struct Dump {
  std::string name, text;
};

std::vector<Dump> collect(const Options& options, Console& console) {
  session::SessionOptions session = options.compile.options(console);
  std::vector<Dump> dumps;
  std::mutex mutex;  // kernels are compiled by several threads
  session.dump = [&](const std::string& stage, const std::string& name, const std::string& text) {
    if (stage != options.stage || stage == "plan") return;
    if (!options.kernel.empty() && !session::matches(options.kernel, name)) return;
    const std::lock_guard lock(mutex);
    dumps.push_back({name, text});
  };
  with_model(options.compile, console, [&](const Chosen& chosen) {
    dumps.clear();
    session.usual = chosen.usual;
    const graph::Graph& graph = chosen.model.graph();
    if (options.stage == "graph") {
      dumps.push_back({graph.name, graph::print(graph)});
      return;
    }
    if (options.stage == "plan") {
      const compiler::Planned planned = compiler::plan_graph(graph, session::compile_options_for(session));
      dumps.push_back({graph.name, fusion::to_json_text(planned.graph, planned.plan)});
      return;
    }
    compiler::CompileOptions compile = session::compile_options_for(session);
    if (options.stage == "source") compile.target = "opencl";
    try {
      compiler::compile(graph, compile);
    } catch (const UnsupportedError&) {
      // What cannot be printed stands among the kernels, with the reason.
      if (options.stage != "source" || dumps.empty()) throw;
    }
  });
  return dumps;
}

int dump(const Options& options, Console& console) {
  const std::vector<Dump> dumps = collect(options, console);
  if (dumps.empty() && !options.kernel.empty())
    throw UserError(
        fmt::format("no kernel is called '{}'", options.kernel),
        {.hint = "fusewise bench --profile lists their names; patterns such as 'conv_*' do, too"});
  Json list = Json::array();
  for (const Dump& one : dumps) {
    if (dumps.size() > 1) console.print("# {}\n", one.name);
    console.print(one.text.ends_with('\n') ? one.text : one.text + "\n");
    list.push_back({{"name", one.name}, {"text", one.text}});
  }
  console.finish("dump", {{"model", options.compile.model}, {"stage", options.stage}, {"dumps", list}});
  return exit_done;
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  options->compile.declare(parser);
  parser.choice("--stage", options->stage,
                {"graph", "rewritten", "plan", "schedule", "kernel", "source", "llvm", "assembly"},
                "what to print (graph)");
  parser.option("--kernel", options->kernel, "NAME", "of this kernel only; may be a pattern");
  return [options](Console& console) { return dump(*options, console); };
}

}  // namespace

Command dump_command() {
  return {"dump", "prints what the compiler holds at a stage of its work",
          "fusewise dump model.onnx --stage kernel --kernel 'conv_*'", declare};
}

}  // namespace fusewise::cli
