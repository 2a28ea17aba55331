// The values of a graph's symbols in a run: those that the shapes of its inputs give, and those that its nodes bind.
#pragma once

#include <span>

#include "graph/graph.h"
#include "graph/interpreter/tensor.h"

namespace fusewise::test {

// Only of what its outputs and `also` need. UserError as interpret() and bind_symbols() throw it.
SymbolValues run_symbols(const graph::Graph& graph, std::span<const graph::Tensor> inputs,
                         std::vector<graph::Value> also = {});

}  // namespace fusewise::test
