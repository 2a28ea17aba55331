// Operators that make tensors of nothing or of shapes.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/importer.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

template <class T>
Value constant_of_values(Call& c, DataType type, const std::vector<T>& values, bool scalar) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  const Shape shape = scalar ? Shape{} : Shape{Dim(static_cast<int64_t>(values.size()))};
  return c.builder().constant({type, shape}, std::move(bytes));
}

void constant(Call& c) {
  if (const Attribute* a = c.attribute("value")) {
    if (a->tensors.size() != 1) c.fail("attribute 'value' holds no tensor");
    return c.set(c.importer().constant(a->tensors[0]));
  }
  if (const Attribute* a = c.attribute("value_float"))
    return c.set(constant_of_values<float>(c, DataType::float32, {a->f}, true));
  if (const Attribute* a = c.attribute("value_int"))
    return c.set(constant_of_values<int64_t>(c, DataType::int64, {a->i}, true));
  if (const Attribute* a = c.attribute("value_floats"))
    return c.set(constant_of_values<float>(c, DataType::float32, a->floats, false));
  if (const Attribute* a = c.attribute("value_ints"))
    return c.set(constant_of_values<int64_t>(c, DataType::int64, a->ints, false));
  c.unsupported("a value that is sparse or made of strings");
}

// A shape operand; each dimension at least 0.
Shape shape_operand(Call& c, size_t input) {
  if (c.rank(input) != 1) c.fail("the shape is not a vector");
  Shape shape = c.dims(input);
  for (const Dim& d : shape)
    if (d.is_constant() && d.value() < 0) c.fail(fmt::format("a dimension is {}", d.value()));
  return shape;
}

void constant_of_shape(Call& c) {
  Shape shape = shape_operand(c, 0);
  Value value = c.builder().scalar(DataType::float32, 0.0);
  if (const Attribute* a = c.attribute("value")) {
    if (a->tensors.size() != 1) c.fail("attribute 'value' holds no tensor");
    value = c.importer().constant(a->tensors[0]);
    if (!product(c.builder().shape(value)).is(1)) c.fail("attribute 'value' has not one element");
    value = c.builder().reshape(value, {});
  }
  c.set(c.builder().broadcast(value, std::move(shape), {}));
}

// The number of steps is known for whole numbers only, except where all three operands are constant floats.
std::optional<Dim> range_count(Call& c) {
  const KnownTensor *start = c.known(0), *limit = c.known(1), *delta = c.known(2);
  if (!is_float(c.element(0)) && start && limit && delta) {
    if (start->values.size() != 1 || limit->values.size() != 1 || delta->values.size() != 1)
      return std::nullopt;
    const Dim step = delta->values[0];
    if (!step.is_constant() || step.is(0)) return std::nullopt;
    return max(ceil_div(limit->values[0] - start->values[0], step), 0);
  }
  const auto a = c.elements(0), b = c.elements(1), d = c.elements(2);
  if (!a || !b || !d || a->size() != 1 || b->size() != 1 || d->size() != 1 || !is_float(c.element(0)))
    return std::nullopt;
  const double count = std::ceil(((*b)[0].f - (*a)[0].f) / (*d)[0].f);
  if (!(count < 1e15)) return std::nullopt;
  return Dim(static_cast<int64_t>(std::max(count, 0.0)));
}

// The number of steps where only the run knows it: max(ceil((limit - start) / delta), 0), and an error for a delta of
// 0, which comes out as a negative size.
Dim range_count_in_run(Call& c) {
  Compose m(c.builder());
  const auto scalar = [&](size_t i) { return c.builder().reshape(c.value(i), {1}); };
  const bool floats = is_float(c.element(0));
  const DataType type = floats ? DataType::float64 : DataType::int64;
  const Value start = c.builder().cast(scalar(0), type), limit = c.builder().cast(scalar(1), type),
              delta = c.builder().cast(scalar(2), type);
  const Value distance = m.sub(limit, start);
  Value count;
  if (floats) {
    count = c.builder().cast(m.max(m.map(ScalarOp::ceil, m.div(distance, delta)), 0.0), DataType::int64);
  } else {
    // Both with the sign that makes the step positive.
    const Value down = m.less(delta, 0.0);
    const Value step = m.max(m.select(down, m.neg(delta), delta), 1.0);
    const Value whole = m.max(m.select(down, m.neg(distance), distance), 0.0);
    count = m.div(m.add(whole, m.sub(step, 1.0)), step);
  }
  const Value no_step = m.map(ScalarOp::equal, delta, m.like(delta, 0));
  count = m.select(no_step, m.like(count, -1), count);
  return c.importer().sizes().elements(count, RuntimeSizes::Sign::size, std::string(c.node().outputs[0]))[0];
}

// start + i * delta
void range(Call& c) {
  std::optional<Dim> count = range_count(c);
  if (!count) count = range_count_in_run(c);
  Compose m(c.builder());
  const DataType type = c.element(0);
  Value result = c.builder().iota({type, {*count}}, 0);
  const KnownTensor *start = c.known(0), *delta = c.known(2);
  const Value first = c.builder().reshape(c.value(0), {}), step = c.builder().reshape(c.value(2), {});
  if (!delta || !delta->values[0].is(1)) result = m.mul(result, step);
  if (!start || !start->values[0].is(0)) result = m.add(result, first);
  c.set(result);
}

// 1 on the diagonal number k, 0 elsewhere.
void eye_like(Call& c) {
  if (c.rank(0) != 2) c.fail("the operand is not a matrix");
  Compose m(c.builder());
  const Shape shape = c.type(0).shape;
  DataType type = c.element(0);
  if (c.attribute("dtype")) {
    const auto given = data_type_of_number(static_cast<int32_t>(c.integer("dtype", 1)));
    if (!given || !is_computable(*given)) c.unsupported("its type");
    type = *given;
  }
  const Value row = c.builder().iota({DataType::int64, shape}, 0),
              column = c.builder().iota({DataType::int64, shape}, 1);
  const Value shifted = m.add(row, static_cast<double>(c.integer("k", 0)));
  c.set(c.builder().cast(m.map(ScalarOp::equal, column, shifted), type));
}

// Whether an element lies above (or below) the diagonal number k; the others become 0.
void trilu(Call& c) {
  const int rank = c.rank(0);
  if (rank < 2) c.fail("the operand has less than two dimensions");
  Compose m(c.builder());
  const Shape shape = c.type(0).shape;
  const Shape matrix(shape.end() - 2, shape.end());
  Value diagonal = c.builder().scalar(DataType::int64, 0);
  if (c.has(1)) diagonal = c.builder().reshape(c.value(1), {});
  const Value row = c.builder().iota({DataType::int64, matrix}, 0);
  const Value column = c.builder().iota({DataType::int64, matrix}, 1);
  const Value edge = m.add(row, diagonal);
  const bool upper = c.integer("upper", 1) != 0;
  const Value keep = m.map(upper ? ScalarOp::greater_equal : ScalarOp::less_equal, column, edge);
  c.set(m.select(keep, c.value(0), m.like(c.value(0), 0)));
}

void shape_of(Call& c) {
  // Reached only where the shape is larger than what is followed as known.
  c.set(c.builder().dims(c.type(0).shape));
}

void size_of(Call& c) { c.set(c.builder().dim(product(c.type(0).shape))); }

// A value per class: depth classes along the new axis.
void one_hot(Call& c) {
  const std::vector<Dim> depths = c.dims(1);
  if (depths.size() != 1) c.fail("depth is not one number");
  const Dim depth = depths[0];
  const int rank = c.rank(0) + 1;
  const int axis = c.axis(c.integer("axis", -1), rank);
  Compose m(c.builder());
  Value indices = c.builder().cast(c.value(0), DataType::int64);
  // Negative indices count from the end.
  indices = m.select(m.less(indices, 0), m.add(indices, m.dim_as(depth, DataType::int64)), indices);
  Shape shape = c.type(0).shape;
  shape.insert(shape.begin() + axis, Dim(1));
  indices = c.builder().reshape(indices, shape);
  shape[static_cast<size_t>(axis)] = depth;
  const Value classes = c.builder().iota({DataType::int64, shape}, axis);
  const Value hit = m.map(ScalarOp::equal, indices, classes);
  const Value values = c.value(2);
  if (c.rank(2) != 1 || !c.type(2).shape[0].is(2)) c.fail("values is not a vector of two elements");
  const auto pick = [&](int64_t i) {
    return c.builder().reshape(c.builder().slice(values, {Dim(i)}, {1}, {Dim(1)}), {});
  };
  c.set(m.select(hit, pick(1), pick(0)));
}

constexpr OpRow rows[] = {
    {"Constant", 1, newest, constant}, {"ConstantOfShape", 9, newest, constant_of_shape},
    {"EyeLike", 9, newest, eye_like},  {"OneHot", 9, newest, one_hot},
    {"Range", 11, newest, range},      {"Shape", 1, newest, shape_of},
    {"Size", 1, newest, size_of},      {"Trilu", 14, newest, trilu},
};

}  // namespace

std::span<const OpRow> source_ops() { return rows; }

}  // namespace fusewise::onnx
