#include "graph/dead_nodes.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fusewise::graph {

namespace {

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.size());
  for (const GraphInput& input : graph.inputs) live[input.node] = true;
  for (const GraphOutput& output : graph.outputs) live[output.value.node] = true;
  const auto binders = symbol_binders(graph);
  for (size_t i = graph.size(); i-- > 0;) {  // operands have smaller ids, and so have binders of symbols
    if (!live[i]) continue;
    if (!binders.empty())
      for (NodeId binder : binders[i]) live[binder] = true;
    for (const Value& operand : graph.node(static_cast<NodeId>(i)).operands) live[operand.node] = true;
  }
  return live;
}

bool every_constant_is_read(const Graph& graph) {
  std::vector<bool> read(graph.constants.size());
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.node(id).op == Op::constant)
      read[attributes<ConstantAttributes>(graph.node(id)).constant] = true;
  return std::ranges::all_of(read, [](bool r) { return r; });
}

}  // namespace

Graph without_dead_nodes(Graph graph) {
  const std::vector<bool> live = live_nodes(graph);
  if (std::ranges::all_of(live, [](bool l) { return l; }) && every_constant_is_read(graph)) return graph;
  Graph result;
  result.reserve(static_cast<size_t>(std::ranges::count(live, true)));
  std::vector<NodeId> moved(graph.size(), no_node);
  std::vector<uint32_t> moved_constants(graph.constants.size(), UINT32_MAX);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!live[id]) continue;
    Node node = std::move(graph.mutable_node(id));
    for (Value& operand : node.operands) operand.node = moved[operand.node];
    if (auto* constant = std::get_if<ConstantAttributes>(&node.attributes)) {
      uint32_t& index = moved_constants[constant->constant];
      if (index == UINT32_MAX) {
        index = static_cast<uint32_t>(result.constants.size());
        result.constants.push_back(std::move(graph.constants[constant->constant]));
      }
      constant->constant = index;
    }
    moved[id] = result.append(std::move(node));
  }
  for (GraphInput& input : graph.inputs) result.inputs.push_back({moved[input.node], std::move(input.name)});
  for (GraphOutput& output : graph.outputs)
    result.outputs.push_back({{moved[output.value.node], output.value.result}, std::move(output.name)});
  result.name = std::move(graph.name);
  result.model_nodes = std::move(graph.model_nodes);
  return result;
}

}  // namespace fusewise::graph
