#include "graph/interpreter/strided.h"

#include <algorithm>
#include <cstring>

namespace fusewise::graph {

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

bool next_index(std::span<const int64_t> extents, std::span<int64_t> index) {
  for (size_t d = extents.size(); d-- > 0;) {
    if (++index[d] < extents[d]) return true;
    index[d] = 0;
  }
  return false;
}

namespace {

struct Dimension {
  int64_t extent, source, target;
};

// Unit dimensions dropped, and neighbours merged where one continues the other in both arrays.
std::vector<Dimension> merged(std::span<const int64_t> extents, std::span<const int64_t> source,
                              std::span<const int64_t> target) {
  std::vector<Dimension> result;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    const Dimension next{extents[d], source[d], target[d]};
    if (!result.empty() && result.back().source == next.source * next.extent &&
        result.back().target == next.target * next.extent) {
      result.back() = {result.back().extent * next.extent, next.source, next.target};
    } else {
      result.push_back(next);
    }
  }
  if (result.empty()) result.push_back({1, 1, 1});
  return result;
}

template <class T>
void copy_row(const std::byte* source, std::byte* target, const Dimension& row) {
  if (row.source == 1 && row.target == 1) {
    std::memcpy(target, source, static_cast<size_t>(row.extent) * sizeof(T));
    return;
  }
  const T* from = reinterpret_cast<const T*>(source);
  T* to = reinterpret_cast<T*>(target);
  for (int64_t i = 0; i < row.extent; ++i) to[i * row.target] = from[i * row.source];
}

template <class T>
void copy_rows(const std::vector<Dimension>& dimensions, const std::byte* source, std::byte* target) {
  const size_t outer = dimensions.size() - 1;
  std::vector<int64_t> index(outer, 0);
  int64_t from = 0, to = 0;
  while (true) {
    copy_row<T>(source + from * static_cast<int64_t>(sizeof(T)),
                target + to * static_cast<int64_t>(sizeof(T)), dimensions[outer]);
    size_t d = outer;
    while (d > 0) {
      const Dimension& dimension = dimensions[--d];
      from += dimension.source;
      to += dimension.target;
      if (++index[d] < dimension.extent) break;
      from -= dimension.source * dimension.extent;
      to -= dimension.target * dimension.extent;
      index[d] = 0;
      if (d == 0) return;
    }
    if (outer == 0) return;
  }
}

}  // namespace

void copy_strided(std::span<const int64_t> extents, const std::byte* source,
                  std::span<const int64_t> source_strides, std::byte* target,
                  std::span<const int64_t> target_strides, int element_bytes) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return;
  const std::vector<Dimension> dimensions = merged(extents, source_strides, target_strides);
  switch (element_bytes) {
    case 1:
      return copy_rows<uint8_t>(dimensions, source, target);
    case 2:
      return copy_rows<uint16_t>(dimensions, source, target);
    case 4:
      return copy_rows<uint32_t>(dimensions, source, target);
    case 8:
      return copy_rows<uint64_t>(dimensions, source, target);
    default:
      throw InternalError("elements of this size cannot be moved");
  }
}

Tensor transposed(const Tensor& tensor, std::span<const int> permutation) {
  const std::vector<int64_t> strides = row_major_strides(tensor.shape);
  std::vector<int64_t> shape, source;
  for (const int d : permutation) {
    shape.push_back(tensor.shape.at(static_cast<size_t>(d)));
    source.push_back(strides.at(static_cast<size_t>(d)));
  }
  if (std::is_sorted(permutation.begin(), permutation.end())) return tensor;
  Tensor result(tensor.element, shape);
  copy_strided(shape, tensor.bytes().data(), source, result.mutable_bytes().data(), row_major_strides(shape),
               bytes_of(tensor.element));
  return result;
}

}  // namespace fusewise::graph
