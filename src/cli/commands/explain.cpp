#include "fusion/explain.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/session_options.h"
#include "fusion/model_nodes.h"
#include "session/compile.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  CompileFlags compile;
  std::string from, to;
};

struct Explanation {
  std::vector<fusion::ExplainRow> rows;
  std::string words;
};

uint32_t one_node(const graph::Graph& graph, const std::string& text) {
  const std::vector<uint32_t> nodes = fusion::resolve_model_nodes(graph, text);
  if (nodes.size() == 1) return nodes[0];
  std::string names;
  for (const uint32_t node : nodes)
    names += (names.empty() ? "" : ", ") + fusion::model_node_name(graph, node);
  throw UserError("'" + text + "' fits several nodes", {.hint = "they are " + names});
}

Explanation explain(const Options& options, const compiler::Planned& planned) {
  const graph::Graph& graph = planned.graph;
  Explanation result;
  if (options.from.empty()) {
    result.rows = fusion::explain_model(graph, planned.plan);
    result.words = fusion::explain_to_text(graph, result.rows);
  } else if (options.to.empty()) {
    const uint32_t node = one_node(graph, options.from);
    result.rows = fusion::explain_node(graph, planned.plan, node);
    result.words = fusion::describe_kernels(graph, planned.plan, planned.plan_options, node) +
                   fusion::explain_to_text(graph, result.rows);
  } else {
    result.rows = {fusion::explain_pair(graph, planned.plan, planned.plan_options,
                                        one_node(graph, options.from), one_node(graph, options.to))};
    result.words = fusion::explain_to_text(graph, result.rows);
  }
  return result;
}

int run(const Options& options, Console& console) {
  session::SessionOptions session = options.compile.options(console);
  Explanation explanation;
  Json rows;
  with_model(options.compile, console, [&](const Chosen& chosen) {
    session.usual = chosen.usual;
    const compiler::Planned planned =
        compiler::plan_graph(chosen.model.graph(), session::compile_options_for(session));
    explanation = explain(options, planned);
    rows = Json::parse(fusion::explain_to_json_text(planned.graph, explanation.rows)).at("rows");
  });
  console.print(explanation.words);
  console.finish("explain", {{"model", options.compile.model}, {"rows", rows}});
  return exit_done;
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  options->compile.declare(parser);
  parser.positional("A", options->from, "a node: its name, an output tensor's name, Conv#12 or #57", false);
  parser.positional("B", options->to, "another node: why A and B are (not) fused", false);
  return [options](Console& console) { return run(*options, console); };
}

}  // namespace

Command explain_command() {
  return {"explain", "says why operators are fused or not, with prices",
          "fusewise explain model.onnx conv1 relu1", declare};
}

}  // namespace fusewise::cli
