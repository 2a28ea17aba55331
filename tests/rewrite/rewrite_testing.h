// Differential tests of rewrites: the interpreter before and after, on random inputs.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/interpreter/bind.h"
#include "graph/interpreter/evaluate.h"
#include "graph/interpreter/interpreter.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "numerics/scalar_op.h"
#include "rewrite/driver.h"

namespace fusewise::rewrite::testing {

using graph::Graph;
using graph::Tensor;

inline Scalar element_at(const Tensor& t, int64_t i) {
  return load_scalar(t.bytes().data() + i * bytes_of(t.element), t.element);
}

// Normal numbers; with `special` also zeros of both signs, infinities, NaN, denormals and extremes.
inline Tensor random_tensor(std::mt19937& random, DataType type, std::vector<int64_t> shape, bool special) {
  Tensor result(type, std::move(shape));
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int64_t> bits(INT64_MIN, INT64_MAX), kind(0, 9), small(-3, 9);
  const double extremes[] = {0.0,  -0.0,   INFINITY, -INFINITY, NAN, 1e-45, -3e-42,
                             6e-8, 3.4e38, -65504,   0.5,       2.5, -1};
  for (int64_t i = 0; i < result.count(); ++i) {
    Scalar value{DataType::float64, normal(random), 0};
    if (!is_float(type)) {
      value = {DataType::int64, 0,
               type == DataType::boolean ? bits(random) & 1
               : kind(random) < 5        ? bits(random)
                                         : small(random)};
    } else if (special && kind(random) < 5) {
      value.f = extremes[static_cast<size_t>(bits(random) & 0xffff) % std::size(extremes)];
    }
    store_scalar(result.mutable_bytes().data() + i * bytes_of(type), convert(value, type));
  }
  return result;
}

inline std::set<std::string> symbols_of(const Graph& graph) {
  std::set<std::string> symbols;
  for (const graph::GraphInput& input : graph.inputs)
    for (const Dim& d : graph.type({input.node, 0}).shape)
      for (const std::string& name : d.symbols()) symbols.insert(name);
  return symbols;
}

inline std::vector<Tensor> random_inputs(const Graph& graph, std::mt19937& random, bool special) {
  static constexpr int64_t sizes[] = {3, 1, 5, 2, 0, 7};
  SymbolValues values;
  for (const std::string& name : symbols_of(graph)) values[name] = sizes[random() % std::size(sizes)];
  std::vector<Tensor> inputs;
  for (const graph::GraphInput& input : graph.inputs) {
    const graph::TensorType& type = graph.type({input.node, 0});
    inputs.push_back(random_tensor(random, type.element, graph::evaluate_shape(type.shape, values), special));
  }
  return inputs;
}

// Equal bits, any NaN being any other; or close where the rounding may differ. What becomes NaN or infinite
// stays so.
inline bool agree(const Scalar& a, const Scalar& b, Exactness exactness) {
  if (!is_float(a.type)) return a.i == b.i;
  if (std::isnan(a.f) || std::isnan(b.f)) return std::isnan(a.f) && std::isnan(b.f);
  if (exactness == Exactness::exact) return a.f == b.f && std::signbit(a.f) == std::signbit(b.f);
  if (std::isinf(a.f) || std::isinf(b.f)) return a.f == b.f;
  const double unit = bits_of(a.type) == 16 ? 0.02 : bits_of(a.type) == 32 ? 2e-5 : 1e-13;
  return std::abs(a.f - b.f) <= unit * (1 + std::abs(a.f));
}

inline ::testing::AssertionResult same_results(const std::vector<Tensor>& a, const std::vector<Tensor>& b,
                                               Exactness exactness) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "another number of outputs";
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k].element != b[k].element || a[k].shape != b[k].shape)
      return ::testing::AssertionFailure() << "output " << k << " has another type or shape";
    for (int64_t i = 0; i < a[k].count(); ++i) {
      const Scalar x = element_at(a[k], i), y = element_at(b[k], i);
      if (!agree(x, y, exactness))
        return ::testing::AssertionFailure() << "output " << k << " element " << i << ": " << x.f << "/"
                                             << x.i << " became " << y.f << "/" << y.i;
    }
  }
  return ::testing::AssertionSuccess();
}

// Runs both graphs on the same random inputs. Inputs that the first one refuses are left out; false when it
// refuses all of them.
inline bool compare_results(const Graph& before, const Graph& after, Exactness exactness, unsigned seed,
                            bool special = true) {
  std::mt19937 random(seed);
  const int wanted = symbols_of(before).empty() ? 2 : 6;
  int ran = 0;
  for (int run = 0; run < 10 * wanted && ran < wanted; ++run) {
    const std::vector<Tensor> inputs = random_inputs(before, random, special && run % 2 == 1);
    std::vector<Tensor> expected;
    try {
      expected = interpret(before, inputs);
    } catch (const UserError&) {
      continue;
    }
    ++ran;
    EXPECT_TRUE(same_results(expected, interpret(after, inputs), exactness))
        << "seed " << seed << " run " << run << "\nbefore:\n"
        << print(before) << "after:\n"
        << print(after);
  }
  return ran > 0;
}

inline void expect_same_results(const Graph& before, const Graph& after, Exactness exactness, unsigned seed,
                                bool special = true) {
  EXPECT_TRUE(compare_results(before, after, exactness, seed, special)) << "no random input fits the graph:\n"
                                                                        << print(before);
}

}  // namespace fusewise::rewrite::testing
