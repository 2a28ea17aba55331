// The bounded evaluation of nodes on whole tensors.
#pragma once

#include <optional>
#include <span>

#include "graph/interpreter/double_interpreter.h"
#include "graph/interpreter/evaluate.h"

namespace fusewise::graph {

// Either exact, in the value's own type, or planes of values and bounds.
struct BoundedValue {
  DataType element = DataType::undefined;
  std::optional<Tensor> exact;
  Tensor value, bound;  // when not exact: float64, of the same shape

  const std::vector<int64_t>& shape() const { return exact ? exact->shape : value.shape; }
};
BoundedValue exact_value(Tensor tensor);
// The planes of an exact value too; 64-bit integers beyond 2^53 get a bound.
BoundedTensor planes_of(const BoundedValue& value);

// `operands` stand beside the evaluation's own, which are not looked at.
BoundedTensor map_bounded(const Evaluation& evaluation, std::span<const BoundedTensor> operands);
BoundedTensor reduce_bounded(const Evaluation& evaluation, const BoundedTensor& operand, ErrorModel model);
BoundedTensor window_reduce_bounded(const Evaluation& evaluation, const BoundedTensor& operand,
                                    ErrorModel model);
BoundedTensor dot_bounded(const Evaluation& evaluation, const BoundedTensor& lhs, const BoundedTensor& rhs,
                          ErrorModel model);
BoundedTensor sweep_bounded(const Evaluation& evaluation, std::span<const BoundedTensor> operands,
                            ErrorModel model);
BoundedTensor convolution_bounded(const Evaluation& evaluation, const BoundedTensor& x,
                                  const BoundedTensor& weights, ErrorModel model);

}  // namespace fusewise::graph
