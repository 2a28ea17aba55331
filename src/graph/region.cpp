#include "graph/region.h"

#include <algorithm>
#include <utility>

namespace fusewise::graph {

std::vector<Value> region_inputs(const Graph& graph, const Region& region) {
  std::vector<std::pair<Value, size_t>> uses;  // and how many there were before
  for (NodeId id : region.nodes)
    for (const Value& operand : graph.node(id).operands)
      if (!contains(region, operand.node)) uses.emplace_back(operand, uses.size());
  std::sort(uses.begin(), uses.end());
  uses.erase(
      std::unique(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
      uses.end());
  std::sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<Value> result;
  result.reserve(uses.size());
  for (const auto& [value, place] : uses) result.push_back(value);
  return result;
}

bool contains(const Region& region, NodeId node) {
  return std::binary_search(region.nodes.begin(), region.nodes.end(), node);
}

}  // namespace fusewise::graph
