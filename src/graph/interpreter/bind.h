// The values of a graph's symbols, from the shapes of its inputs.
#pragma once

#include <span>

#include "graph/graph.h"
#include "graph/interpreter/tensor.h"

namespace fusewise::graph {

// Inputs in the order of Graph::inputs. A dimension that is a symbol binds it (also 2*n + 1, where n divides
// out); every other one is checked. UserError names the input, the dimension and both values where they
// disagree, and a wrong number of inputs, element type or rank. Then what the nodes require of the values is
// checked.
SymbolValues bind_symbols(const Graph& graph, std::span<const Tensor> inputs);

// The second half alone: UserError names the node and the requirement that does not hold.
void check_requirements(const Graph& graph, const SymbolValues& symbols);

}  // namespace fusewise::graph
