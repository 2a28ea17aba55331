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

// Leaves the constants that nodes read, in the order in which they read them.
void drop_unread_constants(Graph& graph) {
  std::vector<uint32_t> moved(graph.constants.size(), UINT32_MAX);
  uint32_t count = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op != Op::constant) continue;
    uint32_t& index = moved[attributes<ConstantAttributes>(graph.node(id)).constant];
    if (index == UINT32_MAX) index = count++;
    std::get<ConstantAttributes>(graph.mutable_node(id).attributes).constant = index;
  }
  std::vector<ConstantData> read(count);
  for (size_t i = 0; i < moved.size(); ++i)
    if (moved[i] != UINT32_MAX) read[moved[i]] = std::move(graph.constants[i]);
  graph.constants = std::move(read);
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
  const bool all_live = std::ranges::all_of(live, [](bool l) { return l; });
  if (all_live && every_constant_is_read(graph)) return graph;
  if (!all_live) {
    std::vector<NodeId> order;
    for (NodeId id = 0; id < graph.size(); ++id)
      if (live[id]) order.push_back(id);
    graph.arrange(order);
  }
  drop_unread_constants(graph);
  return graph;
}

}  // namespace fusewise::graph
