// The values of a graph's symbols, from the shapes of its inputs.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/interpreter/tensor.h"
#include "graph/shape_rules.h"

namespace fusewise::graph {

// Inputs in the order of Graph::inputs. A dimension that is a symbol binds it (also 2*n + 1, where n divides
// out); every other one is checked. UserError names the input, the dimension and both values where they
// disagree, and a wrong number of inputs, element type or rank.
SymbolValues bind_symbols(const Graph& graph, std::span<const Tensor> inputs);

// What the nodes require of the values, each checked as soon as all of its symbols have one: those that nodes
// bind get theirs only as the nodes run.
class Requirements {
 public:
  explicit Requirements(const Graph& graph);
  // UserError names the node and the requirement that does not hold.
  void check(const SymbolValues& symbols);

 private:
  const Graph& graph_;
  std::vector<std::pair<NodeId, Requirement>> pending_;
};

}  // namespace fusewise::graph
