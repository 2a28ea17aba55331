// Seeded random inputs: what a model runs on when its user gives nothing. The values of an input depend on the
// seed, its name, type and shape alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/interpreter/tensor.h"

namespace fusewise::session {

// Both ends included for integers; floats lie in [low, high).
struct ValueRange {
  double low = 0, high = 1;
};

// For each input of the graph: the smallest dimension that its (integer) elements index, where they reach the
// indices of a gather through views and integer arithmetic; nothing for the others.
std::vector<std::optional<Dim>> index_extents(const graph::Graph& graph);

// Without a range: integers below `index_extent` where there is one, other integers 0 or 1, floats in [0, 1).
graph::Tensor random_tensor(const std::string& name, DataType type, const std::vector<int64_t>& shape,
                            uint64_t seed, std::optional<ValueRange> range,
                            std::optional<int64_t> index_extent);

}  // namespace fusewise::session
