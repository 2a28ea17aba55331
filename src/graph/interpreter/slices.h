// Tensors along their first dimension.
#pragma once

#include <span>
#include <vector>

#include "graph/interpreter/tensor.h"

namespace fusewise::graph {

// Element `index` of the first dimension, without that dimension.
Tensor slice_of(const Tensor& tensor, int64_t index);
// The other way round: of this shape, whose first extent is the number of slices.
Tensor stack_of(std::span<const Tensor> slices, DataType element, std::vector<int64_t> shape);

}  // namespace fusewise::graph
