// Normalisations and softmax, written out in primitives. Means and variances are computed in two passes: the
// mean of squares less the square of the mean would cancel.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

enum class SoftmaxKind : uint8_t { softmax, log_softmax };

// exp(x - max) / sum(exp(x - max)); its logarithm: x - max - log(sum(exp(x - max))).
Value softmax_over(Compose& m, Value x, const std::vector<int>& axes, SoftmaxKind kind) {
  const Value top = m.builder().reduce(x, Combine::max, axes, true);
  const Value shifted = m.sub(x, top);
  const Value powers = m.exp(shifted);
  const Value total = m.sum(powers, axes);
  return kind == SoftmaxKind::softmax ? m.div(powers, total) : m.sub(shifted, m.log(total));
}

// From version 13 on over one axis; before over all from the axis on.
template <SoftmaxKind kind>
void softmax(Call& c) {
  Compose m(c.builder());
  const int rank = c.rank(0);
  const bool one_axis = c.version() >= 13;
  std::vector<int> axes;
  if (rank > 0) {
    int64_t axis = c.integer("axis", one_axis ? -1 : 1);
    // The default axis 1 of a vector flattens it to [n, 1], which is what an axis behind all dimensions does.
    const int first = !one_axis && axis == rank ? rank : c.axis(axis, rank);
    axes = one_axis ? std::vector<int>{first} : counting(first, rank);
  }
  if (axes.empty()) {
    // A softmax over nothing but the element itself.
    const Value x = c.value(0);
    const Value zero = m.sub(x, x);
    return c.set(kind == SoftmaxKind::softmax ? m.exp(zero) : zero);
  }
  c.set(m.narrow(softmax_over(m, m.widen(c.value(0)), axes, kind), c.element(0)));
}

struct Moments {
  Value centred, mean, variance;
};
Moments moments(Compose& m, Value x, const std::vector<int>& axes) {
  const Value mean = m.mean(x, axes);
  const Value centred = m.sub(x, mean);
  return {centred, mean, m.mean(m.mul(centred, centred), axes)};
}

Value inverse_deviation(Compose& m, Value variance, double epsilon) {
  return m.div(1.0, m.sqrt(m.add(variance, epsilon)));
}

// (x - mean) / sqrt(variance + epsilon) over the dimensions from `axis` on, in float32 for the half types;
// then scaled in the operand's type.
void layer_norm_of(Call& c, Value x, int axis, double epsilon, std::optional<Value> scale,
                   std::optional<Value> bias) {
  Compose m(c.builder());
  const DataType type = c.builder().type(x).element;
  const std::vector<int> axes = counting(axis, c.builder().type(x).rank());
  const Moments s = moments(m, m.widen(x), axes);
  const Value deviation = m.sqrt(m.add(s.variance, epsilon));
  Value y = m.narrow(m.div(s.centred, deviation), type);
  if (scale) y = m.mul(y, *scale);
  if (bias) y = m.add(y, *bias);
  if (c.builder().shape(y) != c.builder().shape(x)) c.fail("scale or bias enlarge the result");
  c.set(y);
  if (c.wants(1)) c.set_output(1, s.mean);
  if (c.wants(2)) c.set_output(2, m.div(1.0, deviation));
}

void layer_norm(Call& c) {
  const int axis = c.axis(c.integer("axis", -1), c.rank(0));
  if (c.integer("stash_type", 1) != 1) c.unsupported("a stash type other than float32");
  layer_norm_of(c, c.value(0), axis, c.number("epsilon", 1e-5f),
                c.has(1) ? std::optional(c.value(1)) : std::nullopt,
                c.has(2) ? std::optional(c.value(2)) : std::nullopt);
}

// The sum of two tensors (and a bias), normalised over the last dimension.
void skip_layer_norm(Call& c) {
  Compose m(c.builder());
  Value x = m.add(c.value(0), c.value(1));
  if (c.has(4)) x = m.add(x, c.value(4));
  if (c.wants(1) || c.wants(2)) c.unsupported("its mean as a result");
  layer_norm_of(c, x, c.rank(0) - 1, c.number("epsilon", 1e-12f), c.value(2),
                c.has(3) ? std::optional(c.value(3)) : std::nullopt);
  if (c.wants(3)) c.set_output(3, x);
}

// x / sqrt(mean(x^2) + epsilon) * scale
void rms_norm(Call& c) {
  Compose m(c.builder());
  const int axis = c.axis(c.integer("axis", -1), c.rank(0));
  const Value x = m.widen(c.value(0));
  const Value power = m.mean(m.mul(x, x), counting(axis, c.rank(0)));
  const Value y = m.div(x, m.sqrt(m.add(power, c.number("epsilon", 1e-5f))));
  c.set(m.mul(m.narrow(y, c.element(0)), c.value(1)));
}

// (x - mean) * (scale / sqrt(variance + epsilon)) + bias, one of each per channel.
void batch_norm(Call& c) {
  const bool trains = c.version() >= 14 ? c.integer("training_mode", 0) != 0
                                        : c.version() < 7 && c.integer("is_test", 0) == 0;
  if (trains) c.unsupported("training mode");
  if (c.version() < 9 && c.integer("spatial", 1) == 0) c.unsupported("statistics for every position");
  for (size_t i = 1; i < 4; ++i)
    if (c.wants(i)) c.unsupported("running statistics as results");
  const int rank = c.rank(0);
  if (rank < 2) c.fail("the operand has less than two dimensions");
  Compose m(c.builder());
  const DataType type = c.element(0);
  const Value x = m.widen(c.value(0));
  const DataType wide = c.builder().type(x).element;
  const auto vector = [&](size_t input) {
    if (c.rank(input) != 1) c.fail(fmt::format("operand {} is not a vector", input));
    return c.builder().cast(c.value(input), wide);
  };
  const Value deviation = m.sqrt(m.add(vector(4), c.number("epsilon", 1e-5f)));
  const Value factor = m.div(vector(1), deviation);
  const Shape shape = c.type(0).shape;
  const auto spread = [&](Value v) { return c.builder().broadcast(v, shape, {1}); };
  const Value centred = c.builder().map(ScalarOp::sub, {x, spread(vector(3))});
  const Value scaled = c.builder().map(ScalarOp::mul, {centred, spread(factor)});
  c.set(m.narrow(c.builder().map(ScalarOp::add, {scaled, spread(vector(2))}), type));
}

// Normalised over the spatial dimensions of every channel.
void instance_norm(Call& c) {
  const int rank = c.rank(0);
  if (rank < 3) c.fail("the operand has less than three dimensions");
  Compose m(c.builder());
  const Moments s = moments(m, m.widen(c.value(0)), counting(2, rank));
  const Value y = m.mul(s.centred, inverse_deviation(m, s.variance, c.number("epsilon", 1e-5f)));
  const Value scaled = m.mul(m.narrow(y, c.element(0)), m.along(c.value(1), 1, rank));
  c.set(m.add(scaled, m.along(c.value(2), 1, rank)));
}

// Normalised over groups of channels; version 18 scaled whole groups, version 21 channels.
void group_norm(Call& c) {
  const Shape shape = c.type(0).shape;
  const int rank = static_cast<int>(shape.size());
  const int64_t groups = c.required_integer("num_groups");
  if (rank < 3 || groups < 1) c.fail("the operand or the number of groups does not fit");
  Compose m(c.builder());
  const Shape split{shape[0], groups, floor_div(product(Shape(shape.begin() + 1, shape.end())), groups)};
  const Value x = c.builder().reshape(m.widen(c.value(0)), split);
  const Moments s = moments(m, x, {2});
  Value y = m.mul(s.centred, inverse_deviation(m, s.variance, c.number("epsilon", 1e-5f)));
  const auto parameter = [&](size_t input) {
    const Dim count = c.type(input).shape.size() == 1 ? c.type(input).shape[0] : Dim(0);
    if (count.is(0)) c.fail(fmt::format("operand {} is not a vector", input));
    if (count == shape[1]) return m.along(c.value(input), 1, rank);
    // One for every group, repeated for the group's channels.
    const Dim each = floor_div(shape[1], groups);
    const Value repeated = c.builder().broadcast(c.value(input), {groups, each}, {0});
    return m.along(c.builder().reshape(repeated, {shape[1]}), 1, rank);
  };
  y = m.narrow(c.builder().reshape(y, shape), c.element(0));
  c.set(m.add(m.mul(y, parameter(1)), parameter(2)));
}

// x / (bias + alpha / size * (sum of squares over neighbouring channels)) ^ beta
void local_response_norm(Call& c) {
  const Shape shape = c.type(0).shape;
  if (shape.size() < 3) c.fail("the operand has less than three dimensions");
  const int64_t size = c.required_integer("size");
  if (size < 1) c.fail("attribute 'size' is less than 1");
  const double alpha = c.number("alpha", 1e-4f), beta = c.number("beta", 0.75f), bias = c.number("bias", 1);
  Compose m(c.builder());
  const Value x = m.widen(c.value(0));
  const Dim inner = product(Shape(shape.begin() + 2, shape.end()));
  const Value squares = c.builder().reshape(m.mul(x, x), {shape[0], shape[1], inner});
  graph::WindowReduceAttributes window{Combine::sum, {size, 1},           {1, 1},
                                       {1, 1},       {(size - 1) / 2, 0}, {size / 2, 0}};
  const Value sums = c.builder().reshape(c.builder().window_reduce(squares, std::move(window)), shape);
  const Value base = m.add(m.mul(sums, alpha / static_cast<double>(size)), bias);
  c.set(m.narrow(m.div(x, m.map(ScalarOp::pow, base, m.like(base, beta))), c.element(0)));
}

void lp_norm(Call& c) {
  Compose m(c.builder());
  const int axis = c.axis(c.integer("axis", -1), c.rank(0));
  const int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) c.fail("attribute 'p' is neither 1 nor 2");
  const Value x = m.widen(c.value(0));
  const Value norm = p == 1 ? m.sum(m.map(ScalarOp::abs, x), {axis}) : m.sqrt(m.sum(m.mul(x, x), {axis}));
  // A vector of zeros stays one.
  const Value y = m.select(m.map(ScalarOp::equal, norm, m.like(norm, 0)), m.like(x, 0), m.div(x, norm));
  c.set(m.narrow(y, c.element(0)));
}

void mean_variance_norm(Call& c) {
  Compose m(c.builder());
  const auto given = c.axes(c.rank(0), SIZE_MAX);
  std::vector<int> axes = given ? *given : std::vector<int>{0, 2, 3};
  if (!given && c.rank(0) < 4) c.fail("the operand has less than four dimensions");
  const Moments s = moments(m, m.widen(c.value(0)), axes);
  c.set(m.narrow(m.div(s.centred, m.add(m.sqrt(s.variance), 1e-9)), c.element(0)));
}

// 1 at the first position of the maximum along the axis, 0 elsewhere; before version 13 over all from the
// axis on.
void hardmax(Call& c) {
  Compose m(c.builder());
  const int rank = c.rank(0);
  if (rank == 0) c.unsupported("a scalar");
  const bool one_axis = c.version() >= 13;
  const int axis = c.axis(c.integer("axis", one_axis ? -1 : 1), rank);
  const Shape shape = c.type(0).shape;
  Value x = c.value(0);
  int along = axis;
  if (!one_axis) {
    const Shape rows(shape.begin(), shape.begin() + axis), columns(shape.begin() + axis, shape.end());
    x = c.builder().reshape(x, {product(rows), product(columns)});
    along = 1;
  }
  const Shape spread = c.builder().shape(x);
  const Value position = c.builder().iota({DataType::int64, spread}, along);
  const Value hit = m.map(ScalarOp::equal, x, c.builder().reduce(x, Combine::max, {along}, true));
  const Value end = m.dim_as(spread[static_cast<size_t>(along)], DataType::int64);
  const Value first = c.builder().reduce(m.select(hit, position, end), Combine::min, {along}, true);
  const Value y = c.builder().cast(m.map(ScalarOp::equal, position, first), c.element(0));
  c.set(c.builder().reshape(y, shape));
}

constexpr std::string_view microsoft = "com.microsoft";

constexpr OpRow rows[] = {
    {"BatchNormalization", 1, newest, batch_norm},
    {"GroupNormalization", 18, newest, group_norm},
    {"Hardmax", 1, newest, hardmax},
    {"InstanceNormalization", 1, newest, instance_norm},
    {"LRN", 1, newest, local_response_norm},
    {"LayerNormalization", 1, newest, layer_norm},
    {"LogSoftmax", 1, newest, softmax<SoftmaxKind::log_softmax>},
    {"LpNormalization", 1, newest, lp_norm},
    {"MeanVarianceNormalization", 9, newest, mean_variance_norm},
    {"RMSNormalization", 23, newest, rms_norm},
    {"SimplifiedLayerNormalization", 1, newest, rms_norm},
    {"SkipLayerNormalization", 1, newest, skip_layer_norm, microsoft},
    {"Softmax", 1, newest, softmax<SoftmaxKind::softmax>},
};

}  // namespace

std::span<const OpRow> norm_ops() { return rows; }

}  // namespace fusewise::onnx
