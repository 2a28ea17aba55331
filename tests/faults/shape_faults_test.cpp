// Faults of shapes: sizes of 0 and 1, symbols that turn out to be them, and of running one program often.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "faults/fault_testing.h"
#include "support/random.h"

namespace fusewise::test {
namespace {

using graph::Tensor;

// 03. A value that is still read, or that has another name, is not written over.
TEST(Faults03, OperandsOutliveResultsInTheirPlace) {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {"n", 6});
  const auto b = m.node("Exp", {x}), alias = m.node("Reshape", {b, m.ints("shape", {2}, {-1, 6})});
  const auto first = m.node("Tanh", {b}), second = m.node("Neg", {alias});
  const auto both = m.node("Concat", {first, b, second, alias}, {{"axis", 0}});
  const auto twice = m.node("Add", {x, x}), self = m.node("Mul", {twice, twice});
  for (const auto& y : {both, m.node("Add", {self, b}), m.node("Identity", {x}), m.node("Softmax", {alias})})
    m.output_without_shape(y, DataType::float32);
  for (const int64_t n : {0, 1, 5, 17}) expect_right(m, {ramp({n, 6}, -1, 0.1)});
}

// 17. A symbol that is 1 at run time broadcasts; 0 meets 1; equal symbols are equal.
TEST(Faults17, SymbolsThatAreOne) {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {"n", 4}), y = m.input("y", DataType::float32, {"m", 4});
  const auto sum = m.node("Add", {x, y});
  m.output_without_shape(sum, DataType::float32);
  m.output_without_shape(m.node("ReduceSum", {m.node("Mul", {m.node("Exp", {x}), sum})}, {{"keepdims", 0}}),
                         DataType::float32);
  m.output_without_shape(m.node("Softmax", {sum}, {{"axis", 0}}), DataType::float32);
  for (const auto& [n, k] :
       {std::pair<int64_t, int64_t>{1, 5}, {5, 1}, {5, 5}, {1, 1}, {17, 1}, {1, 16}, {0, 0}}) {
    SCOPED_TRACE(testing::Message() << n << " and " << k);
    expect_right(m, {ramp({n, 4}, -1, 0.1), ramp({k, 4}, 2, 0.3)}, {}, 0, n > k);
  }
}

// The size of what broadcasts from 1 to 0 is not known before both are: refused, not wrong.
TEST(Faults17, OneMeetsNothing) {
  OnnxBuilder m;
  m.output_without_shape(
      m.node("Add", {m.input("x", DataType::float32, {"n", 4}), m.input("y", DataType::float32, {"m", 4})}),
      DataType::float32);
  EXPECT_THROW(expect_right(m, {ramp({1, 4}), ramp({0, 4})}), UserError);
}

TEST(Faults17, ReshapedToOneRow) {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {"n"}), y = m.input("y", DataType::float32, {"m"});
  const auto shape = m.ints("shape", {2}, {-1, 4});
  m.output_without_shape(m.node("Mul", {m.node("Reshape", {x, shape}), m.node("Reshape", {y, shape})}),
                         DataType::float32);
  expect_right(m, {floats({4}, {1, 2, 3, 4}), ramp({8}, 1)}, {{1, 4, 9, 16, 5, 12, 21, 32}});
  expect_right(m, {ramp({8}, 1), floats({4}, {1, 2, 3, 4})}, {{1, 4, 9, 16, 5, 12, 21, 32}});
  expect_right(m, {ramp({4}, 1), ramp({4}, 1)}, {{1, 4, 9, 16}});
}

TEST(Faults17, ExpandedOperandsOfSmallerPartners) {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {"n", 1}), y = m.input("y", DataType::float32, {1, "k"});
  const auto wide = m.node("Expand", {x, m.ints("shape", {3}, {2, 1, 3})});
  m.output_without_shape(m.node("Add", {wide, y}), DataType::float32);
  for (const int64_t k : {1, 3}) expect_right(m, {ramp({5, 1}), ramp({1, k}, 10)});
}

// 18. A reduction over nothing gives what adds nothing.
TEST(Faults18, ReductionsOverNothing) {
  struct Shapes {
    std::vector<int64_t> from;
    int64_t axis;
    size_t elements;
  };
  for (const auto& [op, neutral] : {std::pair<const char*, double>{"ReduceSum", 0},
                                    {"ReduceProd", 1},
                                    {"ReduceMax", -infinite},
                                    {"ReduceMin", infinite},
                                    {"ReduceLogSum", -infinite},
                                    {"ReduceLogSumExp", -infinite},
                                    {"ReduceL1", 0},
                                    {"ReduceL2", 0},
                                    {"ReduceSumSquare", 0}})
    for (const Shapes& s : {Shapes{{0}, 0, 1}, {{2, 0, 3}, 1, 6}, {{0, 0}, 0, 0}, {{0, 5}, 1, 0}})
      for (const int64_t keepdims : {0, 1})
        for (const bool symbolic : s.axis == 1 ? std::vector{keepdims == 0} : std::vector{false, true}) {
          SCOPED_TRACE(op);
          OnnxBuilder m(17);
          OnnxShape shape(s.from.begin(), s.from.end());
          if (symbolic) shape[static_cast<size_t>(s.axis)] = "n";
          const auto x = m.input("x", DataType::float32, shape);
          std::vector<std::string> operands = {x};
          OnnxAttributes attributes = {{"keepdims", OnnxAttributeValue(keepdims)}};
          if (op == std::string("ReduceSum"))
            operands.push_back(m.ints("axes", {1}, {s.axis}));
          else
            attributes.push_back({"axes", std::vector<int64_t>{s.axis}});
          m.output_without_shape(m.node(op, operands, attributes), DataType::float32);
          expect_right(m, {floats(s.from, {})}, {std::vector<double>(s.elements, neutral)}, 0,
                       symbolic && keepdims == 0 && s.from.size() == 3 && neutral == 0);
        }
  const std::vector<int64_t> axes = {1};
  expect_node(17, "ReduceMax", {tensor(DataType::int32, {2, 0}, {})}, {{"axes", axes}}, DataType::int32,
              {-2147483648.0, -2147483648.0});
  expect_node(17, "ReduceMin", {tensor(DataType::uint8, {2, 0}, {})}, {{"axes", axes}}, DataType::uint8,
              {255, 255});
}

// 19. Products over nothing are zeros, and what is added stays.
TEST(Faults19, ProductsOverNothing) {
  expect_node(17, "MatMul", {floats({4, 0}, {}), floats({0, 4}, {})}, {}, DataType::float32,
              std::vector<double>(16, 0));
  expect_node(17, "Gemm", {floats({2, 0}, {}), floats({0, 4}, {}), floats({4}, {1, 2, 3, 4})}, {},
              DataType::float32, {1, 2, 3, 4, 1, 2, 3, 4});
  expect_node(17, "MatMul", {floats({0, 4, 8}, {}), floats({0, 8, 4}, {})}, {}, DataType::float32, {});
  for (const int64_t k : {0, 1, 3}) {
    OnnxBuilder m;
    const auto a = m.input("a", DataType::float32, {3, "k"}), b = m.input("b", DataType::float32, {"k", 5});
    const auto product = m.node("MatMul", {a, b});
    m.output_without_shape(
        m.node("Relu", {m.node("Add", {product, m.initializer(initializer_of("c", ramp({5}, -2)))})}),
        DataType::float32);
    const double n = static_cast<double>(k);
    std::vector<double> expected;
    for (int i = 0; i < 15; ++i) expected.push_back(std::max(0.0, n + i % 5 - 2));
    expect_right(m,
                 {floats({3, k}, std::vector<double>(static_cast<size_t>(3 * k), 1)),
                  floats({k, 5}, std::vector<double>(static_cast<size_t>(5 * k), 1))},
                 {expected});
  }
}

GraphCase long_sum() {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {"n"});
  const auto e = m.node("Tanh", {x});
  m.output_without_shape(m.node("ReduceSum", {x}, {{"keepdims", 0}}), DataType::float32);
  m.output_without_shape(m.node("ReduceMean", {e}, {{"keepdims", 0}}), DataType::float32);
  m.output_without_shape(m.node("Softmax", {e}), DataType::float32);
  Random random(3);
  std::vector<double> values(100000);
  for (double& v : values) v = random.unit() * 2 - 1;
  return imported(m, {floats({100000}, values)});
}

// 79. Sums have the same bits in every run, and in strict mode for any number of threads.
TEST(Faults79, SumsRepeat) {
  const GraphCase what = long_sum();
  const auto bits = [&](compiler::Numerics numerics, fusion::FusionMode fusion, int threads) {
    std::vector<std::byte> all;
    for (const Tensor& t : outputs_of(what, {numerics, fusion, "native", threads, Execution::compiled, 0}))
      all.insert(all.end(), t.bytes().begin(), t.bytes().end());
    return all;
  };
  for (const auto fusion : {fusion::FusionMode::on, fusion::FusionMode::off}) {
    const auto strict = bits(compiler::Numerics::strict, fusion, 1);
    EXPECT_EQ(strict, bits(compiler::Numerics::strict, fusion::FusionMode::on, 2));
    EXPECT_EQ(strict, bits(compiler::Numerics::strict, fusion, 6));
    for (const int threads : {1, 2, 6}) {
      const auto first = bits(compiler::Numerics::default_, fusion, threads);
      for (int again = 0; again < 2; ++again)
        EXPECT_EQ(first, bits(compiler::Numerics::default_, fusion, threads));
    }
  }
}

}  // namespace
}  // namespace fusewise::test
