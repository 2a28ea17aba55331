// Random regions: graphs composed at random of maps, views, reductions, contractions, windows, gathers and counters,
// in several types, with constant and symbolic sizes (0, 1, primes, what is just beside a vector), with inputs to run
// them on and layouts of the values at the border.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/interpreter/tensor.h"
#include "schedule/schedule.h"

namespace fusewise::test {

struct RegionCase {
  uint64_t seed = 0;
  graph::Graph graph;
  std::vector<graph::Tensor> inputs;  // of the graph, in order
  SymbolValues symbols;
  schedule::Layouts layouts;
};

// The same seed gives the same case.
RegionCase random_region(uint64_t seed);

}  // namespace fusewise::test
