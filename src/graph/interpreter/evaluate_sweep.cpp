// Steps in order, one line of the swept axis after the other.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "graph/interpreter/arithmetic.h"
#include "graph/interpreter/bounded.h"
#include "graph/interpreter/bounded_evaluate.h"
#include "graph/interpreter/convert.h"
#include "graph/interpreter/evaluate.h"
#include "graph/interpreter/strided.h"
#include "graph/sweep.h"
#include "numerics/error_bound.h"

namespace fusewise::graph {

namespace {

template <class T, Combine combine>
void prefix_line(const Sweep& sweep, const T* from, T* to, int64_t count, int64_t stride) {
  T running = start_of<T, combine>();
  for (int64_t step = 0; step < count; ++step) {
    const int64_t at = (sweep.reverse ? count - 1 - step : step) * stride;
    const T next = combined<T, combine>(running, from[at]);
    to[at] = sweep.exclusive ? running : next;
    running = next;
  }
}

// The running value stays in the accumulator's type.
Tensor evaluate_prefix(const Evaluation& e, const Sweep& sweep) {
  const Tensor values = widened(e.operands[0], accumulator_of(e.element));
  Tensor result(values.element, e.shape);
  const auto axis = static_cast<size_t>(sweep.axis);
  const int64_t count = e.shape[axis], stride = row_major_strides(e.shape)[axis];
  const int64_t lines = count == 0 ? 0 : result.count() / count;
  with_plain_type(values.element, [&](auto zero) {
    with_combine(*sweep.combine, [&](auto combine) {
      using T = decltype(zero);
      const T* from = values.as<T>().data();
      T* to = result.mutable_as<T>().data();
      run_in_pieces(e.pool, lines, 64, [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const int64_t first = line / stride * count * stride + line % stride;
          prefix_line<T, decltype(combine)::value>(sweep, from + first, to + first, count, stride);
        }
      });
    });
  });
  return narrowed(result, e.element);
}

ScalarOp op_of(Combine combine) {
  static constexpr ScalarOp ops[] = {ScalarOp::add, ScalarOp::mul, ScalarOp::max, ScalarOp::min};
  return ops[static_cast<size_t>(combine)];
}

// Row-major order of the updates has the steps of each line in their order.
void for_each_update(const Sweep& sweep, const Tensor& base, const Tensor& index,
                     const std::vector<int64_t>& updates,
                     FunctionRef<void(int64_t target, int64_t update, int64_t index)> step) {
  const std::vector<int64_t> target = row_major_strides(base.shape);
  std::vector<int64_t> source = row_major_strides(index.shape);
  for (size_t d = 0; d < source.size(); ++d)
    if (index.shape[d] == 1) source[d] = 0;
  const auto axis = static_cast<size_t>(sweep.axis);
  const int bytes = bytes_of(index.element);
  std::vector<int64_t> position(updates.size(), 0);
  if (element_count(updates) == 0) return;
  int64_t number = 0;
  do {
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < updates.size(); ++d) {
      from += position[d] * source[d];
      if (d != axis) to += position[d] * target[d];
    }
    const Scalar given = load_scalar(index.bytes().data() + from * bytes, index.element);
    const bool huge = index.element == DataType::uint64 && given.i < 0;
    const int64_t row = given.i < 0 && !huge ? given.i + base.shape[axis] : given.i;
    if (!huge && row >= 0 && row < base.shape[axis]) step(to + row * target[axis], number, from);
    ++number;
  } while (next_index(updates, position));
}

Tensor evaluate_scatter(const Evaluation& e, const Sweep& sweep) {
  const Tensor &base = e.operands[0], &updates = e.operands[2];
  for (size_t d = 0; d < base.shape.size(); ++d)
    if (static_cast<int>(d) != sweep.axis && updates.shape[d] > base.shape[d])
      throw UserError(
          fmt::format("updates of shape {} go beyond {}", to_string(updates.shape), to_string(base.shape)));
  Tensor result = Tensor::copy_of(base.element, base.shape, base.bytes());
  std::byte* to = result.mutable_bytes().data();
  const std::byte* from = updates.bytes().data();
  const int bytes = bytes_of(result.element);
  for_each_update(sweep, base, e.operands[1], updates.shape, [&](int64_t target, int64_t update, int64_t) {
    Scalar value = load_scalar(from + update * bytes, result.element);
    if (sweep.combine) {
      const Scalar operands[] = {load_scalar(to + target * bytes, result.element), value};
      value = evaluate(op_of(*sweep.combine), operands, result.element);
    }
    store_scalar(to + target * bytes, value);
  });
  return result;
}

}  // namespace

Tensor evaluate_sweep(const Evaluation& e) {
  const Sweep sweep = sweep_of(e.node);
  return sweep.base ? evaluate_scatter(e, sweep) : evaluate_prefix(e, sweep);
}

namespace {

BoundedTensor prefix_bounded(const Evaluation& e, const Sweep& sweep, const BoundedTensor& values,
                             ErrorModel model) {
  BoundedTensor result{e.element, Tensor(DataType::float64, e.shape), Tensor(DataType::float64, e.shape)};
  const std::span<const double> value = values.value.as<double>(), bound = values.bound.as<double>();
  const std::span<double> to_value = result.value.mutable_as<double>(),
                          to_bound = result.bound.mutable_as<double>();
  const auto axis = static_cast<size_t>(sweep.axis);
  const int64_t count = e.shape[axis], stride = row_major_strides(e.shape)[axis];
  const int64_t lines = count == 0 ? 0 : static_cast<int64_t>(value.size()) / count;
  for (int64_t line = 0; line < lines; ++line) {
    BoundedReduction running(*sweep.combine, e.element, model);
    for (int64_t step = 0; step < count; ++step) {
      const int64_t place = sweep.reverse ? count - 1 - step : step;
      const auto at = static_cast<size_t>(line / stride * count * stride + line % stride + place * stride);
      const Bounded before = running.result();
      running.add({value[at], bound[at]});
      const Bounded y = sweep.exclusive ? before : running.result();
      to_value[at] = y.value;
      to_bound[at] = y.error;
    }
  }
  return result;
}

// Where an index is not certain, nothing is known of the result.
BoundedTensor scatter_bounded(const Evaluation& e, const Sweep& sweep, std::span<const BoundedTensor> x) {
  BoundedTensor result{e.element, Tensor::copy_of(DataType::float64, x[0].value.shape, x[0].value.bytes()),
                       Tensor::copy_of(DataType::float64, x[0].bound.shape, x[0].bound.bytes())};
  const std::span<double> value = result.value.mutable_as<double>(),
                          bound = result.bound.mutable_as<double>();
  const bool certain = std::ranges::all_of(x[1].bound.as<double>(), [](double b) { return b == 0; });
  for_each_update(sweep, x[0].value, narrowed(x[1].value, DataType::int64), x[2].value.shape,
                  [&](int64_t target, int64_t update, int64_t) {
                    const auto t = static_cast<size_t>(target), u = static_cast<size_t>(update);
                    Bounded y{x[2].value.as<double>()[u], x[2].bound.as<double>()[u]};
                    if (sweep.combine) {
                      const Bounded operands[] = {{value[t], bound[t]}, y};
                      y = evaluate_bounded(op_of(*sweep.combine), operands, e.element, e.element);
                    }
                    value[t] = y.value;
                    bound[t] = y.error;
                  });
  if (!certain) std::ranges::fill(bound, unknown);
  return result;
}

}  // namespace

BoundedTensor sweep_bounded(const Evaluation& e, std::span<const BoundedTensor> x, ErrorModel model) {
  const Sweep sweep = sweep_of(e.node);
  return sweep.base ? scatter_bounded(e, sweep, x) : prefix_bounded(e, sweep, x[0], model);
}

}  // namespace fusewise::graph
