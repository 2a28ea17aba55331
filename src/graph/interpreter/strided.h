// Moving elements between arrays whose dimensions have any strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/interpreter/tensor.h"

namespace fusewise::graph {

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape);

// For each index i of `extents`: target[sum i*target_strides] = source[sum i*source_strides]; strides in
// elements of `element_bytes` (1, 2, 4 or 8), zero and negative ones included. Source and target do not
// overlap.
void copy_strided(std::span<const int64_t> extents, const std::byte* source,
                  std::span<const int64_t> source_strides, std::byte* target,
                  std::span<const int64_t> target_strides, int element_bytes);

// Result dimension i is dimension permutation[i]; shares the bytes when nothing moves.
Tensor transposed(const Tensor& tensor, std::span<const int> permutation);

// Row-major counting through `extents`; false once all are done. `index` starts at zeros.
bool next_index(std::span<const int64_t> extents, std::span<int64_t> index);

}  // namespace fusewise::graph
