#include "import/onnx/compact.h"

#include <utility>

namespace fusewise::onnx {

namespace {

std::vector<bool> live_nodes(const graph::Graph& graph) {
  std::vector<bool> live(graph.size());
  for (const graph::GraphInput& input : graph.inputs) live[input.node] = true;
  for (const graph::GraphOutput& output : graph.outputs) live[output.value.node] = true;
  for (size_t i = graph.size(); i-- > 0;) {  // operands have smaller ids
    if (!live[i]) continue;
    for (const graph::Value& operand : graph.node(static_cast<graph::NodeId>(i)).operands)
      live[operand.node] = true;
  }
  return live;
}

}  // namespace

graph::Graph without_dead_nodes(graph::Graph graph) {
  const std::vector<bool> live = live_nodes(graph);
  graph::Graph result;
  std::vector<graph::NodeId> moved(graph.size(), graph::no_node);
  std::vector<uint32_t> moved_constants(graph.constants.size(), UINT32_MAX);
  for (graph::NodeId id = 0; id < graph.size(); ++id) {
    if (!live[id]) continue;
    graph::Node node = graph.node(id);
    for (graph::Value& operand : node.operands) operand.node = moved[operand.node];
    if (auto* constant = std::get_if<graph::ConstantAttributes>(&node.attributes)) {
      uint32_t& index = moved_constants[constant->constant];
      if (index == UINT32_MAX) {
        index = static_cast<uint32_t>(result.constants.size());
        result.constants.push_back(std::move(graph.constants[constant->constant]));
      }
      constant->constant = index;
    }
    moved[id] = result.append(std::move(node));
  }
  for (graph::GraphInput& input : graph.inputs)
    result.inputs.push_back({moved[input.node], std::move(input.name)});
  for (graph::GraphOutput& output : graph.outputs) {
    const graph::Value value{moved[output.value.node], output.value.result};
    result.outputs.push_back({value, std::move(output.name)});
  }
  result.name = std::move(graph.name);
  result.model_nodes = std::move(graph.model_nodes);
  return result;
}

}  // namespace fusewise::onnx
