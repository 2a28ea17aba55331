// Which nodes a set of results needs, and where each is used last.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace fusewise::graph {

// For each node the last node that uses it: no_node when nothing does (and it is not needed), Graph::size()
// when it is one of `results`.
std::vector<NodeId> last_uses(const Graph& graph, const std::vector<Value>& results);

// The graph's outputs, then `also`.
std::vector<Value> wanted_values(const Graph& graph, const std::vector<Value>& also);

}  // namespace fusewise::graph
