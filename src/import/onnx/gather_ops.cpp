// Operators that pick elements by index.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

void check_indices(Call& c, size_t input, const Dim& extent) {
  const KnownTensor* known = c.known(input);
  const auto values = known && extent.is_constant() ? known->constants() : std::nullopt;
  if (!values) return;
  for (int64_t v : *values) {
    if (v < -extent.value() || v >= extent.value())
      c.fail(fmt::format("index {} lies outside of a dimension of {}", v, extent.value()));
  }
}

// A constant scalar index into a dimension of constant size is a view.
bool gather_by_slice(Call& c, int axis, const Dim& extent) {
  const KnownTensor* index = c.known(1);
  if (!index || index->rank() != 0 || !index->values[0].is_constant() || !extent.is_constant()) return false;
  const int64_t position = index->values[0].value();
  Shape shape = c.type(0).shape;
  std::vector<Dim> starts(shape.size(), Dim(0));
  starts[static_cast<size_t>(axis)] = position < 0 ? position + extent.value() : position;
  shape[static_cast<size_t>(axis)] = 1;
  const std::vector<int64_t> steps(shape.size(), 1);
  const Value taken = c.builder().slice(c.value(0), std::move(starts), steps, shape);
  shape.erase(shape.begin() + axis);
  c.set(c.builder().reshape(taken, std::move(shape)));
  return true;
}

void gather(Call& c) {
  const int axis = c.axis(c.integer("axis", 0), c.rank(0));
  const Dim extent = c.type(0).shape[static_cast<size_t>(axis)];
  check_indices(c, 1, extent);
  if (gather_by_slice(c, axis, extent)) return;
  c.set(c.builder().gather(c.value(0), c.value(1), axis));
}

// Negative indices count from the end.
Value wrapped(Compose& m, Value index, const Dim& extent) {
  index = m.builder().cast(index, DataType::int64);
  const Value from_end = m.add(index, m.dim_as(extent, DataType::int64));
  return m.select(m.less(index, 0), from_end, index);
}

// The row-major strides of a shape.
std::vector<Dim> strides_of(const Shape& shape) {
  std::vector<Dim> strides(shape.size(), Dim(1));
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// A gather in the flattened data: every other dimension's position is that of the result.
void gather_elements(Call& c) {
  const Shape data = c.type(0).shape, shape = c.type(1).shape;
  if (data.size() != shape.size()) c.fail("data and indices have different ranks");
  const int axis = c.axis(c.integer("axis", 0), static_cast<int>(data.size()));
  check_indices(c, 1, data[static_cast<size_t>(axis)]);
  Compose m(c.builder());
  const std::vector<Dim> strides = strides_of(data);
  const auto stride = [&](size_t d) { return m.dim_as(strides[d], DataType::int64); };
  Value flat = wrapped(m, c.value(1), data[static_cast<size_t>(axis)]);
  flat = m.mul(flat, stride(static_cast<size_t>(axis)));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int>(d) == axis || shape[d].is(1)) continue;
    const Value position = c.builder().iota({DataType::int64, shape}, static_cast<int>(d));
    flat = m.add(flat, m.mul(position, stride(d)));
  }
  const Value all = c.builder().reshape(c.value(0), {product(data)});
  c.set(c.builder().gather(all, flat, 0));
}

// The last dimension of the indices addresses the dimensions behind the batch dimensions, which are joined to
// one.
void gather_nd(Call& c) {
  const Shape data = c.type(0).shape, shape = c.type(1).shape;
  const int64_t batch = c.integer("batch_dims", 0);
  if (shape.empty() || data.empty()) c.fail("data or indices have no dimension");
  if (batch < 0 || batch >= static_cast<int64_t>(std::min(data.size(), shape.size())))
    c.fail("batch_dims does not fit the operands");
  if (!shape.back().is_constant()) c.unsupported("a number of indices that depends on the shapes");
  const int64_t depth = shape.back().value();
  if (depth < 1 || batch + depth > static_cast<int64_t>(data.size()))
    c.fail(fmt::format("{} indices address a tensor of rank {}", depth, data.size()));
  const size_t joined = static_cast<size_t>(batch + depth);
  const Shape front(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(joined));
  const std::vector<Dim> strides = strides_of(front);
  Compose m(c.builder());
  const Shape outer(shape.begin(), shape.end() - 1);
  Value flat = c.builder().scalar(DataType::int64, 0);
  const Value indices = c.value(1);
  for (size_t d = 0; d < joined; ++d) {
    Value position;
    if (static_cast<int64_t>(d) < batch) {
      position = c.builder().iota({DataType::int64, outer}, static_cast<int>(d));
    } else {
      std::vector<Dim> starts(shape.size(), Dim(0));
      starts.back() = static_cast<int64_t>(d) - batch;
      Shape one = outer;
      one.push_back(1);
      position = c.builder().slice(indices, starts, std::vector<int64_t>(shape.size(), 1), one);
      position = wrapped(m, c.builder().reshape(position, outer), front[d]);
    }
    if (!strides[d].is(1)) position = m.mul(position, m.dim_as(strides[d], DataType::int64));
    flat = d == 0 ? position : m.add(flat, position);
  }
  Shape rows{product(front)};
  rows.insert(rows.end(), data.begin() + static_cast<std::ptrdiff_t>(joined), data.end());
  c.set(c.builder().gather(c.builder().reshape(c.value(0), std::move(rows)), flat, 0));
}

constexpr OpRow rows[] = {
    {"Gather", 1, newest, gather},
    {"GatherElements", 11, newest, gather_elements},
    {"GatherND", 11, newest, gather_nd},
};

}  // namespace

std::span<const OpRow> gather_ops() { return rows; }

}  // namespace fusewise::onnx
