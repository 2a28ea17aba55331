// Random tensors, slow element access and bitwise comparison for the interpreter's tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/interpreter/interpreter.h"
#include "numerics/scalar_op.h"

namespace fusewise::graph::testing {

inline const std::vector<DataType> all_types{
    DataType::boolean,  DataType::int8,    DataType::int16,  DataType::int32,  DataType::int64,
    DataType::uint8,    DataType::uint16,  DataType::uint32, DataType::uint64, DataType::float16,
    DataType::bfloat16, DataType::float32, DataType::float64};

inline Scalar element_at(const Tensor& t, int64_t i) {
  return load_scalar(t.bytes().data() + i * bytes_of(t.element), t.element);
}
inline void set_element(Tensor& t, int64_t i, const Scalar& value) {
  store_scalar(t.mutable_bytes().data() + i * bytes_of(t.element), value);
}

// Equal bits; any NaN equals any other.
inline bool same(const Scalar& a, const Scalar& b) {
  if (!is_float(a.type)) return a.i == b.i;
  return std::isnan(a.f) ? std::isnan(b.f) : a.f == b.f && std::signbit(a.f) == std::signbit(b.f);
}

inline ::testing::AssertionResult same_tensors(const Tensor& a, const Tensor& b) {
  if (a.element != b.element || a.shape != b.shape)
    return ::testing::AssertionFailure() << name_of(a.element) << to_string(a.shape) << " against "
                                         << name_of(b.element) << to_string(b.shape);
  for (int64_t i = 0; i < a.count(); ++i) {
    const Scalar x = element_at(a, i), y = element_at(b, i);
    if (!same(x, y))
      return ::testing::AssertionFailure()
             << "element " << i << " of " << name_of(a.element) << to_string(a.shape) << ": " << x.f << "/"
             << x.i << " against " << y.f << "/" << y.i;
  }
  return ::testing::AssertionSuccess();
}

// Floats around 1 with a few zeros of both signs; with `special`, also infinities, NaN, denormals and
// extremes.
inline Tensor random_tensor(std::mt19937& random, DataType type, std::vector<int64_t> shape,
                            bool special = false) {
  Tensor result(type, std::move(shape));
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int64_t> bits(INT64_MIN, INT64_MAX), kind(0, 19);
  const double extremes[] = {0.0,  -0.0,   INFINITY, -INFINITY, NAN, 1e-45, -3e-42,
                             6e-8, 3.4e38, -65504,   0.5,       2.5, -1.5};
  for (int64_t i = 0; i < result.count(); ++i) {
    Scalar value{DataType::float64, normal(random), 0};
    if (!is_float(type)) {
      value = {DataType::int64, 0, kind(random) < 10 ? bits(random) : kind(random) - 10};
    } else if (kind(random) == 0) {
      value.f = kind(random) < 10 ? 0.0 : -0.0;
    } else if (special && kind(random) < 8) {
      value.f = extremes[static_cast<size_t>(kind(random)) % std::size(extremes)];
    }
    set_element(
        result, i,
        type == DataType::boolean ? convert({DataType::int64, 0, value.i & 1}, type) : convert(value, type));
  }
  return result;
}

inline Shape dims_of(const std::vector<int64_t>& shape) { return {shape.begin(), shape.end()}; }
inline TensorType type_of(const Tensor& t) { return {t.element, dims_of(t.shape)}; }

// A graph of one operation: its operands are inputs with the types of `operands`.
template <class Build>
Tensor run_op(const std::vector<Tensor>& operands, Build&& build, int threads = 1) {
  Graph graph;
  GraphBuilder builder(graph);
  std::vector<Value> values;
  for (size_t i = 0; i < operands.size(); ++i)
    values.push_back(builder.input("x" + std::to_string(i), type_of(operands[i])));
  builder.output(build(builder, values), "y");
  InterpretOptions options;
  options.threads = threads;
  return interpret(graph, operands, options).at(0);
}

// Calls f(index, flat) for every index in row-major order.
template <class F>
void for_each_index(const std::vector<int64_t>& shape, F&& f) {
  std::vector<int64_t> index(shape.size(), 0);
  const int64_t count = element_count(shape);
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t rest = flat;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    f(index, flat);
  }
}

inline int64_t flat_index(const std::vector<int64_t>& shape, const std::vector<int64_t>& index) {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

}  // namespace fusewise::graph::testing
