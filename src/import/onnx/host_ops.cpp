// Operators that select and sort: their core is a host function.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/host_call.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;
using hostops::Function;

// The axis last (or first), the others in their order.
std::vector<int> axis_to_end(int rank, int axis) {
  std::vector<int> permutation = counting(0, rank);
  permutation.erase(permutation.begin() + axis);
  permutation.push_back(axis);
  return permutation;
}
std::vector<int> end_to_axis(int rank, int axis) {
  std::vector<int> permutation = counting(0, rank - 1);
  permutation.insert(permutation.begin() + axis, rank - 1);
  return permutation;
}

void top_k(Call& c) {
  const int rank = c.rank(0), axis = c.axis(c.integer("axis", -1), rank);
  Dim k;
  if (c.version() >= 10) {
    const std::vector<Dim> given = c.dims(1);
    if (given.size() != 1) c.fail("k is not one number");
    k = given[0];
  } else {
    k = c.required_integer("k");
  }
  if (k.is_constant() && k.value() < 0) c.fail(fmt::format("k is {}", k.value()));
  const Value x = c.builder().transpose(c.value(0), axis_to_end(rank, axis));
  const std::vector<Dim> parameters{k, c.integer("largest", 1) != 0 ? 1 : 0,
                                    c.integer("sorted", 1) != 0 ? 1 : 0};
  const std::vector<Value> found = host_call(c, {Function::top_k, {x}, parameters, 0});
  for (size_t i = 0; i < 2; ++i)
    if (c.wants(i)) c.set_output(i, c.builder().transpose(found[i], end_to_axis(rank, axis)));
}

Value non_zero_of(Call& c, Value x) { return host_call(c, {Function::non_zero, {x}, {}, 1})[0]; }

void non_zero(Call& c) {
  Value x = c.value(0);
  // A scalar has no position; it counts as a vector of one.
  if (c.rank(0) == 0) x = c.builder().reshape(x, {1});
  c.set(non_zero_of(c, x));
}

void compress(Call& c) {
  if (c.rank(1) != 1) c.fail("the condition is not a vector");
  Value x = c.value(0), condition = c.value(1);
  int axis = 0;
  if (c.attribute("axis"))
    axis = c.axis(c.integer("axis", 0), c.rank(0));
  else
    x = c.builder().reshape(x, {product(c.type(0).shape)});
  // A shorter condition leaves the rest out; of a longer one the rest is not looked at.
  const Dim length = c.type(1).shape[0], extent = c.builder().shape(x)[static_cast<size_t>(axis)];
  const Dim common = min(length, extent);
  condition = c.builder().slice(condition, {Dim(0)}, {1}, {common});
  const Value found = non_zero_of(c, condition);
  const Value positions = c.builder().reshape(found, {c.builder().shape(found)[1]});
  c.set(c.builder().gather(x, positions, axis));
}

void unique(Call& c) {
  Value rows = c.value(0);
  const int rank = c.rank(0);
  int axis = 0;
  if (c.attribute("axis")) {
    axis = c.axis(c.integer("axis", 0), rank);
    std::vector<int> first = counting(0, rank);
    first.erase(first.begin() + axis);
    first.insert(first.begin(), axis);
    rows = c.builder().transpose(rows, first);
  } else {
    rows = c.builder().reshape(rows, {product(c.type(0).shape)});
  }
  const std::vector<Dim> parameters{c.integer("sorted", 1) != 0 ? 1 : 0};
  const std::vector<Value> found = host_call(c, {Function::unique, {rows}, parameters, 1});
  const Value whole = c.attribute("axis") ? c.value(0) : rows;
  if (c.wants(0)) c.set_output(0, c.builder().gather(whole, found[0], axis));
  for (size_t i = 0; i < 3; ++i)
    if (c.wants(i + 1)) c.set_output(i + 1, found[i]);
}

void non_max_suppression(Call& c) {
  const auto scalar = [&](size_t input, DataType type, double otherwise) {
    if (!c.has(input)) return c.builder().scalar(type, otherwise);
    return c.builder().cast(c.builder().reshape(c.value(input), {}), type);
  };
  const std::vector<Value> operands{c.value(0), c.value(1), scalar(2, DataType::int64, 0),
                                    scalar(3, DataType::float32, 0), scalar(4, DataType::float32, 0)};
  const std::vector<Dim> parameters{c.integer("center_point_box", 0) != 0 ? 1 : 0, c.has(4) ? 1 : 0};
  c.set(host_call(c, {Function::non_max_suppression, operands, parameters, 1})[0]);
}

constexpr OpRow rows[] = {
    {"Compress", 9, newest, compress}, {"NonMaxSuppression", 10, newest, non_max_suppression},
    {"NonZero", 9, newest, non_zero},  {"TopK", 1, newest, top_k},
    {"Unique", 11, newest, unique},
};

}  // namespace

std::span<const OpRow> host_ops() { return rows; }

}  // namespace fusewise::onnx
