// Arithmetic on values of the graph, for writing composite operators as formulas. Numbers become constants of
// the other operand's type.
#pragma once

#include <vector>

#include "graph/builder.h"
#include "import/onnx/call.h"

namespace fusewise::onnx {

class Compose {
 public:
  using Value = graph::Value;
  explicit Compose(graph::GraphBuilder& builder) : b_(builder) {}

  Value add(Value x, Value y) { return map(ScalarOp::add, x, y); }
  Value sub(Value x, Value y) { return map(ScalarOp::sub, x, y); }
  Value mul(Value x, Value y) { return map(ScalarOp::mul, x, y); }
  Value div(Value x, Value y) { return map(ScalarOp::div, x, y); }
  Value max(Value x, Value y) { return map(ScalarOp::max, x, y); }
  Value min(Value x, Value y) { return map(ScalarOp::min, x, y); }
  Value add(Value x, double y) { return add(x, like(x, y)); }
  Value sub(Value x, double y) { return sub(x, like(x, y)); }
  Value mul(Value x, double y) { return mul(x, like(x, y)); }
  Value div(Value x, double y) { return div(x, like(x, y)); }
  Value div(double x, Value y) { return div(like(y, x), y); }
  Value max(Value x, double y) { return max(x, like(x, y)); }
  Value min(Value x, double y) { return min(x, like(x, y)); }
  Value less(Value x, double y) { return map(ScalarOp::less, x, like(x, y)); }
  Value greater(Value x, double y) { return map(ScalarOp::greater, x, like(x, y)); }
  Value select(Value condition, Value yes, Value no) {
    return b_.map_broadcast(ScalarOp::select, {condition, yes, no});
  }
  Value map(ScalarOp op, Value x) { return b_.map(op, {x}); }
  Value map(ScalarOp op, Value x, Value y) { return b_.map_broadcast(op, {x, y}); }
  Value exp(Value x) { return map(ScalarOp::exp, x); }
  Value log(Value x) { return map(ScalarOp::log, x); }
  Value neg(Value x) { return map(ScalarOp::neg, x); }
  Value sqrt(Value x) { return map(ScalarOp::sqrt, x); }
  Value tanh(Value x) { return map(ScalarOp::tanh, x); }
  Value like(Value x, double number) { return b_.scalar(b_.type(x).element, number); }
  // 1 / (1 + exp(-x)): right up to both infinities.
  Value sigmoid(Value x) { return div(1.0, add(exp(neg(x)), 1.0)); }
  // max(x, 0) + log(1 + exp(-|x|)): never overflows.
  Value softplus(Value x) { return add(max(x, 0.0), log(add(exp(neg(map(ScalarOp::abs, x))), 1.0))); }

  Value sum(Value x, const std::vector<int>& axes, bool keepdims = true) {
    return b_.reduce(x, Combine::sum, axes, keepdims);
  }
  // The sum divided by the number of elements, which may be symbolic.
  Value mean(Value x, const std::vector<int>& axes, bool keepdims = true);
  Value dim_as(const Dim& dim, DataType type);
  // Aligned at dimension `first` of a value of that rank: a vector of channels, for instance.
  Value along(Value x, int first, int rank);

  // Half types are computed in float32 where a composite's inner values would lose or overflow.
  Value widen(Value x) { return b_.cast(x, arithmetic_type_of(b_.type(x).element)); }
  Value narrow(Value x, DataType type) { return b_.cast(x, type); }

  graph::GraphBuilder& builder() { return b_; }

 private:
  graph::GraphBuilder& b_;
};

// [from, to).
std::vector<int> counting(int from, int to);

}  // namespace fusewise::onnx
