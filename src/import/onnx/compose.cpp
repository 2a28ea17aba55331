#include "import/onnx/compose.h"

#include <fmt/core.h>

#include <numeric>

#include "base/error.h"

namespace fusewise::onnx {

std::vector<int> counting(int from, int to) {
  std::vector<int> result(static_cast<size_t>(to > from ? to - from : 0));
  std::iota(result.begin(), result.end(), from);
  return result;
}

graph::Value Compose::dim_as(const Dim& dim, DataType type) {
  return dim.is_constant() ? b_.scalar(type, dim.value()) : b_.cast(b_.dim(dim), type);
}

graph::Value Compose::mean(Value x, const std::vector<int>& axes, bool keepdims) {
  if (axes.empty()) return x;
  Dim count = 1;
  for (int axis : axes) count = count * b_.shape(x)[static_cast<size_t>(axis)];
  const DataType type = b_.type(x).element;
  const Value wide = widen(x);
  const Value total = sum(wide, axes, keepdims);
  return narrow(div(total, dim_as(count, b_.type(wide).element)), type);
}

graph::Value Compose::along(Value x, int first, int rank) {
  const Shape& own = b_.shape(x);
  if (first + static_cast<int>(own.size()) > rank)
    throw UserError(fmt::format("an operand of shape {} reaches beyond rank {}", to_string(own), rank));
  Shape shape(static_cast<size_t>(rank), Dim(1));
  for (size_t d = 0; d < own.size(); ++d) shape[static_cast<size_t>(first) + d] = own[d];
  return b_.reshape(x, std::move(shape));
}

}  // namespace fusewise::onnx
