// A graph for one choice of its symbols: every dimension that has a value becomes a constant.
#pragma once

#include "graph/graph.h"

namespace fusewise::session {

graph::Graph with_static_shapes(const graph::Graph& graph, const SymbolValues& values);

}  // namespace fusewise::session
