// Drops the nodes that no input or output needs, and the constants that nobody reads; bodies stay as they are. Ids change; the order stays.
#pragma once

#include "graph/graph.h"

namespace fusewise::graph {

Graph without_dead_nodes(Graph graph);

}  // namespace fusewise::graph
