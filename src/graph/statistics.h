// Counts over a graph: operations, elements, arithmetic.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"

namespace fusewise::graph {

// How often each operation occurs, bodies included, maps under the name of their scalar operation: "map exp", "dot".
std::map<std::string, int64_t> histogram(const Graph& graph);

// Arithmetic operations of a node: two per multiplication and addition of a contraction (padding taps
// counted), one per element for maps, one per combined element for reductions; views, gathers and sources
// have none; a loop has its body's for each iteration (one where their number depends on data), a branch those of the
// dearer body.
Dim flops_of(const Graph& graph, NodeId node);
Dim flops_of(const Graph& graph);

}  // namespace fusewise::graph
