#include "stress/graph_case.h"

#include <limits>
#include <sstream>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/text.h"
#include "support/random_graphs/run_symbols.h"

namespace fusewise::test {

using graph::Tensor;

namespace {

std::string print_all(const graph::Graph& graph) {
  graph::PrintOptions options;
  options.inline_elements = std::numeric_limits<int64_t>::max();
  return graph::print(graph, options);
}

}  // namespace

Case to_case(const std::string& name, const GraphCase& what, const std::vector<GraphSettings>& settings) {
  graph::Graph inputs;
  graph::GraphBuilder builder(inputs);
  for (size_t i = 0; i < what.inputs.size(); ++i) {
    const Tensor& t = what.inputs[i];
    const Shape shape(t.shape.begin(), t.shape.end());
    const std::vector<std::byte> bytes(t.bytes().begin(), t.bytes().end());
    builder.output(builder.constant({t.element, shape}, bytes), what.graph.inputs[i].name);
  }
  Case result;
  result.name = name;
  std::string lines;
  for (const GraphSettings& s : settings) lines += to_text(s) + '\n';
  if (!lines.empty()) result.blocks.push_back({"settings", lines});
  result.blocks.push_back({"graph", print_all(what.graph)});
  result.blocks.push_back({"inputs", print_all(inputs)});
  return result;
}

GraphCase graph_of(const Case& text) {
  GraphCase result;
  result.graph = graph::parse(text.text("graph"));
  const graph::Graph inputs = graph::parse(text.text("inputs"));
  for (const graph::GraphOutput& o : inputs.outputs) {
    const graph::ConstantData* data = graph::constant_of(inputs, o.value);
    if (!data) throw UserError("an input of the case is no constant");
    std::vector<int64_t> shape;
    for (const Dim& d : data->type.shape) shape.push_back(d.value());
    result.inputs.push_back(Tensor::copy_of(data->type.element, shape, data->bytes));
  }
  result.symbols = run_symbols(result.graph, result.inputs);
  return result;
}

std::vector<GraphSettings> settings_of(const Case& text) {
  std::vector<GraphSettings> result;
  std::istringstream lines(text.text("settings"));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) result.push_back(settings_from_text(line));
  return result;
}

}  // namespace fusewise::test
