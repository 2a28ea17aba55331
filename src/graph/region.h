// A region: the nodes that one kernel computes, and the values among their results that it materialises.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace fusewise::graph {

struct Region {
  std::vector<NodeId> nodes;   // sorted
  std::vector<Value> outputs;  // sorted; results of members
  friend bool operator==(const Region&, const Region&) = default;
};

// The values that members read and that no member computes, in order of first use, each once.
std::vector<Value> region_inputs(const Graph& graph, const Region& region);
bool contains(const Region& region, NodeId node);

}  // namespace fusewise::graph
