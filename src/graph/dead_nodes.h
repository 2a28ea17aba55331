// Drops the nodes that no input or output needs, and the constants that nobody reads; bodies stay as they are.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace fusewise::graph {

// Ids change; the order stays.
Graph without_dead_nodes(Graph graph);
// The same with the nodes of `order` alone, in this order (see Graph::arrange).
void arrange_live_nodes(Graph& graph, std::vector<NodeId> order);

}  // namespace fusewise::graph
