#include "graph/interpreter/liveness.h"

#include "base/error.h"

namespace fusewise::graph {

std::vector<NodeId> last_uses(const Graph& graph, const std::vector<Value>& results) {
  std::vector<NodeId> last(graph.size(), no_node);
  for (const Value& value : results) {
    check(value.node < graph.size() && value.result < graph.node(value.node).results.size(),
          "a value that no node has");
    last[value.node] = static_cast<NodeId>(graph.size());
  }
  const auto binders = symbol_binders(graph);
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    if (last[id] == no_node) continue;
    if (!binders.empty())
      for (NodeId binder : binders[id])
        if (last[binder] == no_node) last[binder] = id;
    for (const Value& operand : graph.node(id).operands) {
      check(operand.node < id, "an operand is not computed before its user");
      if (last[operand.node] == no_node) last[operand.node] = id;
    }
  }
  return last;
}

std::vector<Value> wanted_values(const Graph& graph, const std::vector<Value>& also) {
  std::vector<Value> values;
  for (const GraphOutput& output : graph.outputs) values.push_back(output.value);
  values.insert(values.end(), also.begin(), also.end());
  return values;
}

}  // namespace fusewise::graph
