// Nodes of kind sweep: their steps along one axis follow each other, and all else is independent. Scans, whose steps
// hand a running value on, and scatters, whose steps change elements of the result that the data chooses.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace fusewise::graph {

struct Sweep {
  int axis = 0;  // of the result; the steps are the elements of operand `value` along it
  // How a step combines what is there with its value, in the accumulator's type (scan) or the result's (scatter).
  // Nothing: it takes its place.
  std::optional<Combine> combine;
  int value = 0;  // operand with a value for each step
  // Scans: the result of a step is the running value, before or after its own value came in.
  bool exclusive = false, reverse = false;
  // Scatters: operand `base` is what the result starts as, operand `index` says where along the axis a step goes:
  // of the same rank as the values, its dimensions theirs or 1. A negative index counts from the end; a step whose
  // index lies outside of the axis changes nothing.
  std::optional<int> base, index;
};
// Check fails for nodes of other kinds.
Sweep sweep_of(const Node& node);

}  // namespace fusewise::graph
