// Random graphs: every kind of node, every scalar operation and every type that kernels compute in, composed at random
// or as the blocks that models are made of; constant and symbolic sizes (0, 1, primes, what is just beside a vector,
// symbols that happen to be 1), numbers of every sort, and inputs to run them on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "graph/interpreter/tensor.h"

namespace fusewise::test {

struct GraphCase {
  graph::Graph graph;
  std::vector<graph::Tensor> inputs;  // of the graph, in order
  SymbolValues symbols;               // also of those that nodes bind
};

struct GraphOptions {
  int64_t least_operations = 1, most_operations = 8;
  int64_t most_elements = 3000;  // of an input; four times as many of any value
  int64_t most_work = 40000;     // multiply-adds of one contraction
  int chain_percent = 60;        // that an operand is the latest value and not any
  bool blocks = true;            // softmax, norms, layers, attention, repeated parts
  bool alone = true;             // scatters, running values and host functions
  int control_depth = 2;         // of loops and branches inside of each other
  bool promises = false;         // outputs that compare values with themselves (promises.h)
  bool odd_borders = false;      // inputs, constants and values twice as outputs
};

// The same seed and options give the same case.
GraphCase random_graph(uint64_t seed, const GraphOptions& options = {});

}  // namespace fusewise::test
