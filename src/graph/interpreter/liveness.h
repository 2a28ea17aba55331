// Which nodes a set of results needs, where each is used last, and evaluation in that order.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"

namespace fusewise::graph {

// For each node the last node that uses it: no_node when nothing does (and it is not needed), Graph::size()
// when it is one of `results`.
std::vector<NodeId> last_uses(const Graph& graph, const std::vector<Value>& results);

// The graph's outputs, then `also`.
std::vector<Value> wanted_values(const Graph& graph, const std::vector<Value>& also);

// Fills `values`, by node and result, with what evaluate(node) gives for each node that `last` (of last_uses) says is
// needed, inputs aside; what has been used for the last time is cleared. `progress` as in InterpretOptions.
template <class T, class Evaluate>
void evaluate_in_order(const Graph& graph, const std::vector<NodeId>& last,
                       const std::function<void(NodeId node, size_t nodes)>& progress,
                       std::vector<std::vector<T>>& values, const Evaluate& evaluate) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (last[id] == no_node || node.op == Op::input) continue;
    if (progress) progress(id, graph.size());
    values[id] = evaluate(id);
    for (const Value& operand : node.operands)
      if (last[operand.node] == id) values[operand.node].clear();
  }
}

}  // namespace fusewise::graph
