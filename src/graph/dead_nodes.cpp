#include "graph/dead_nodes.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fusewise::graph {

namespace {

// What binds symbols, by symbol.
using Binders = std::unordered_map<std::string_view, NodeId>;

Binders binders_among(const Graph& graph, std::span<const NodeId> order) {
  Binders binders;
  for (NodeId id : order) {
    if (kind_of(graph.node(id).op) != Kind::opaque) continue;
    for (const std::string& symbol : bound_symbols(graph.node(id))) binders.emplace(symbol, id);
  }
  return binders;
}

// Who has smaller ids comes first: operands, and binders of symbols.
std::vector<bool> live_nodes(const Graph& graph, std::span<const NodeId> order) {
  std::vector<bool> live(graph.size());
  for (const GraphInput& input : graph.inputs) live[input.node] = true;
  for (const GraphOutput& output : graph.outputs) live[output.value.node] = true;
  const Binders binders = binders_among(graph, order);
  for (size_t i = order.size(); i-- > 0;) {
    if (!live[order[i]]) continue;
    const Node& node = graph.node(order[i]);
    if (!binders.empty())
      for (const std::string& symbol : symbols_of(node))
        if (const auto found = binders.find(symbol); found != binders.end()) live[found->second] = true;
    for (const Value& operand : node.operands) live[operand.node] = true;
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

bool in_place(std::span<const NodeId> order, size_t size) {
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != i) return false;
  return order.size() == size;
}

}  // namespace

void arrange_live_nodes(Graph& graph, std::vector<NodeId> order) {
  const std::vector<bool> live = live_nodes(graph, order);
  const size_t before = order.size();
  std::erase_if(order, [&](NodeId id) { return !live[id]; });
  const bool all_live = order.size() == before;
  if (!in_place(order, graph.size())) graph.arrange(order);
  if (!all_live || !every_constant_is_read(graph)) drop_unread_constants(graph);
}

Graph without_dead_nodes(Graph graph) {
  std::vector<NodeId> order(graph.size());
  std::iota(order.begin(), order.end(), NodeId{0});
  arrange_live_nodes(graph, std::move(order));
  return graph;
}

}  // namespace fusewise::graph
