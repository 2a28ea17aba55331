#include "graph/region.h"

#include <algorithm>
#include <set>

namespace fusewise::graph {

std::vector<Value> region_inputs(const Graph& graph, const Region& region) {
  std::vector<Value> result;
  std::set<Value> seen;
  for (NodeId id : region.nodes)
    for (const Value& operand : graph.node(id).operands)
      if (!contains(region, operand.node) && seen.insert(operand).second) result.push_back(operand);
  return result;
}

bool contains(const Region& region, NodeId node) {
  return std::binary_search(region.nodes.begin(), region.nodes.end(), node);
}

}  // namespace fusewise::graph
