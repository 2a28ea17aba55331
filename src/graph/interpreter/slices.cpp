#include "graph/interpreter/slices.h"

#include <cstring>

#include "base/error.h"

namespace fusewise::graph {

Tensor slice_of(const Tensor& tensor, int64_t index) {
  check(!tensor.shape.empty() && index >= 0 && index < tensor.shape[0], "a slice is outside of its tensor");
  std::vector<int64_t> shape(tensor.shape.begin() + 1, tensor.shape.end());
  const size_t bytes = tensor.bytes().size() / static_cast<size_t>(tensor.shape[0]);
  return Tensor::copy_of(tensor.element, std::move(shape),
                         tensor.bytes().subspan(static_cast<size_t>(index) * bytes, bytes));
}

Tensor stack_of(std::span<const Tensor> slices, DataType element, std::vector<int64_t> shape) {
  check(!shape.empty() && shape[0] == static_cast<int64_t>(slices.size()),
        "a loop stacks another number of slices than it has iterations");
  Tensor result(element, std::move(shape));
  std::byte* to = result.mutable_bytes().data();
  for (const Tensor& slice : slices) {
    if (!slice.bytes().empty()) std::memcpy(to, slice.bytes().data(), slice.bytes().size());
    to += slice.bytes().size();
  }
  check(to == result.bytes().data() + result.bytes().size(), "a stacked slice has another size");
  return result;
}

}  // namespace fusewise::graph
