// Reductions, the position of an extreme, running sums.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

struct Axes {
  std::vector<int> axes;
  bool keepdims = true;
};

// Without axes all are meant, or none where noop_with_empty_axes says so.
Axes axes_of(Call& c) {
  Axes result{{}, c.integer("keepdims", 1) != 0};
  const int rank = c.rank(0);
  const auto given = c.axes(rank, 1);
  if (given && !given->empty())
    result.axes = *given;
  else if (c.integer("noop_with_empty_axes", 0) == 0)
    result.axes = counting(0, rank);
  return result;
}

template <Combine combine>
void reduce(Call& c) {
  const Axes a = axes_of(c);
  c.set(c.builder().reduce(c.value(0), combine, a.axes, a.keepdims));
}

// after(sum(before(x))), computed in the arithmetic type.
template <class Before, class After>
void reduce_composed(Call& c, Before before, After after) {
  Compose m(c.builder());
  const Axes a = axes_of(c);
  const Value inner = before(m, m.widen(c.value(0)));
  const Value total = m.sum(inner, a.axes, a.keepdims);
  c.set(m.narrow(after(m, total), c.element(0)));
}

Value same(Compose&, Value x) { return x; }
Value square(Compose& m, Value x) { return m.mul(x, x); }
Value absolute(Compose& m, Value x) { return m.map(ScalarOp::abs, x); }
Value logarithm(Compose& m, Value x) { return m.log(x); }

// Integers take the root in float64.
Value root(Compose& m, Value x) {
  const DataType type = m.builder().type(x).element;
  if (is_float(type)) return m.sqrt(x);
  return m.builder().cast(m.sqrt(m.builder().cast(x, DataType::float64)), type);
}

void reduce_l1(Call& c) { reduce_composed(c, absolute, same); }
void reduce_l2(Call& c) { reduce_composed(c, square, root); }
void reduce_log_sum(Call& c) { reduce_composed(c, same, logarithm); }
void reduce_sum_square(Call& c) { reduce_composed(c, square, same); }

void reduce_mean(Call& c) {
  const Axes a = axes_of(c);
  c.set(Compose(c.builder()).mean(c.value(0), a.axes, a.keepdims));
}

// log(sum(exp(x - m))) + m with m the maximum, or 0 where that is not finite.
void reduce_log_sum_exp(Call& c) {
  Compose m(c.builder());
  const Axes a = axes_of(c);
  const Value x = m.widen(c.value(0));
  Value top = c.builder().reduce(x, Combine::max, a.axes, true);
  const Value bad = m.map(ScalarOp::or_, m.map(ScalarOp::is_inf, top), m.map(ScalarOp::is_nan, top));
  top = m.select(bad, m.like(top, 0), top);
  const Value total = m.sum(m.exp(m.sub(x, top)), a.axes, true);
  Value result = m.narrow(m.add(m.log(total), top), c.element(0));
  if (!a.keepdims) {
    Shape shape;
    for (int d = 0; d < c.rank(0); ++d)
      if (std::ranges::count(a.axes, d) == 0) shape.push_back(c.type(0).shape[static_cast<size_t>(d)]);
    result = c.builder().reshape(result, std::move(shape));
  }
  c.set(result);
}

// The least (or greatest) position whose element is the extreme; a NaN counts as the extreme.
template <Combine combine>
void arg_extreme(Call& c) {
  Compose m(c.builder());
  const int axis = c.axis(c.integer("axis", 0), c.rank(0));
  const bool keepdims = c.integer("keepdims", 1) != 0, last = c.integer("select_last_index", 0) != 0;
  const Value x = c.value(0);
  const Shape shape = c.type(0).shape;
  const Value extreme = c.builder().reduce(x, combine, {axis}, true);
  Value hit = m.map(ScalarOp::equal, x, extreme);
  if (is_float(c.element(0))) hit = m.map(ScalarOp::or_, hit, m.map(ScalarOp::is_nan, x));
  const Value position = c.builder().iota({DataType::int64, shape}, axis);
  const Value outside =
      last ? m.like(position, -1) : m.dim_as(shape[static_cast<size_t>(axis)], DataType::int64);
  const Value candidates = m.select(hit, position, outside);
  c.set(c.builder().reduce(candidates, last ? Combine::max : Combine::min, {axis}, keepdims));
}

template <Combine combine>
void running(Call& c) {
  const std::vector<int64_t> given = c.integers(1);
  if (given.size() != 1) c.fail("axis is not one number");
  const int axis = c.axis(given[0], c.rank(0));
  const bool exclusive = c.integer("exclusive", 0) != 0, reverse = c.integer("reverse", 0) != 0;
  c.set(c.builder().prefix(c.value(0), {axis, combine, exclusive, reverse}));
}

constexpr OpRow rows[] = {
    {"ArgMax", 1, newest, arg_extreme<Combine::max>},
    {"ArgMin", 1, newest, arg_extreme<Combine::min>},
    {"CumProd", 26, newest, running<Combine::product>},
    {"CumSum", 11, newest, running<Combine::sum>},
    {"ReduceL1", 1, newest, reduce_l1},
    {"ReduceL2", 1, newest, reduce_l2},
    {"ReduceLogSum", 1, newest, reduce_log_sum},
    {"ReduceLogSumExp", 1, newest, reduce_log_sum_exp},
    {"ReduceMax", 1, newest, reduce<Combine::max>},
    {"ReduceMean", 1, newest, reduce_mean},
    {"ReduceMin", 1, newest, reduce<Combine::min>},
    {"ReduceProd", 1, newest, reduce<Combine::product>},
    {"ReduceSum", 1, newest, reduce<Combine::sum>},
    {"ReduceSumSquare", 1, newest, reduce_sum_square},
};

}  // namespace

std::span<const OpRow> reduce_ops() { return rows; }

}  // namespace fusewise::onnx
