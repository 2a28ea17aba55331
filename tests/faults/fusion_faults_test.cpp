// Faults of fusion: what is computed together must give what is computed apart.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "faults/fault_testing.h"
#include "graph/form.h"

namespace fusewise::test {
namespace {

using graph::Tensor;

// Every inner value an output: one at a time, then all of them.
void expect_inner_values(const GraphCase& what) {
  expect_right(what);
  GraphCase all = what;
  for (graph::NodeId n = 0; n < what.graph.size(); ++n) {
    if (!graph::has_form(what.graph, n)) continue;
    all.graph.outputs.push_back({{n, 0}, "inner" + std::to_string(n)});
    GraphCase one = what;
    one.graph.outputs.push_back({{n, 0}, "inner"});
    SCOPED_TRACE(n);
    const GraphOracle oracle(one);
    for (const auto numerics : {compiler::Numerics::strict, compiler::Numerics::default_}) {
      const GraphSettings settings{numerics, fusion::FusionMode::on, "x86-64-v3", 1, Execution::passed, 0};
      EXPECT_EQ(run_graph(one, oracle, settings).words, "");
    }
  }
  expect_right(all);
}

// 01. The trigger: a product and its sigmoid inside an approximate GELU.
TEST(Faults01, InnerValuesOfGelu) {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {3});
  const auto t2 = m.node("Mul", {x, m.floats("c", {}, {1.702f})});
  const auto t3 = m.node("Sigmoid", {t2});
  const auto t4 = m.node("Mul", {x, t3});
  for (const auto& t : {t4, t2, t3}) m.output_without_shape(t, DataType::float32);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  expect_right(
      m, {floats({3}, {-1, 0, 2})},
      {{-sigmoid(-1.702), 0, 2 * sigmoid(3.404)}, {-1.702, 0, 3.404}, {sigmoid(-1.702), 0.5, sigmoid(3.404)}},
      1e-6);
}

OnnxBuilder convolution_norm_relu() {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {1, 3, 7, 5});
  const auto w = m.initializer(initializer_of("w", ramp({4, 3, 3, 3}, -0.5, 0.01)));
  const auto c = m.node("Conv", {x, w}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  std::vector<std::string> operands = {c};
  for (const char* name : {"scale", "bias", "mean", "variance"})
    operands.push_back(m.initializer(initializer_of(name, ramp({4}, 1, 0.5))));
  m.output_without_shape(m.node("Relu", {m.node("BatchNormalization", operands)}), DataType::float32);
  return m;
}

TEST(Faults01, InnerValuesOfBlocks) {
  OnnxBuilder norm;
  const auto x = norm.input("x", DataType::float32, {"n", 13});
  const auto y =
      norm.node("LayerNormalization", {x, norm.initializer(initializer_of("g", ramp({13}, 1, 0.1))),
                                       norm.initializer(initializer_of("b", ramp({13}, 0, 0.2)))});
  norm.output_without_shape(norm.node("Softmax", {norm.node("Gelu", {y}, {}, "", "")}), DataType::float32);
  norm.opsets = {{"", 20}};
  expect_inner_values(imported(norm, {ramp({5, 13}, -3, 0.1)}));
  expect_inner_values(imported(convolution_norm_relu(), {ramp({1, 3, 7, 5}, -1, 0.02)}));
}

// 02. A normalisation is folded into a convolution only when nobody else reads the convolution.
TEST(Faults02, ConvolutionWithAnotherReader) {
  for (const bool as_output : {false, true}) {
    OnnxBuilder m;
    const auto x = m.input("x", DataType::float32, {1, 1, 1, 1});
    const auto c = m.node("Conv", {x, m.floats("w", {1, 1, 1, 1}, {1})});
    const auto y1 = m.node("BatchNormalization",
                           {c, m.floats("s", {1}, {2}), m.floats("b", {1}, {0}), m.floats("mean", {1}, {0}),
                            m.floats("v", {1}, {1})},
                           {{"epsilon", OnnxAttributeValue(0.0f)}});
    m.output_without_shape(y1, DataType::float32);
    m.output_without_shape(as_output ? c : m.node("Relu", {c}), DataType::float32);
    expect_right(m, {floats({1, 1, 1, 1}, {3})}, {{6}, {3}});
  }
}

// 04. Lanes beyond the end do not enter a reduction, whatever the function before it makes of 0.
TEST(Faults04, TailsOfReductionsOverFunctions) {
  for (const int64_t n : {1, 3, 7, 8, 9, 16, 17, 33})
    for (const bool exponential : {false, true}) {
      SCOPED_TRACE(n);
      OnnxBuilder m;
      const auto x = m.input("x", DataType::float32, {5, n});
      const auto y =
          exponential
              ? m.node("Exp", {x})
              : m.node("Add", {m.node("Mul", {x, m.floats("two", {}, {2})}), m.floats("q", {}, {0.25f})});
      const double one = exponential ? 1 : 0.25;
      const auto size = static_cast<size_t>(n);
      Expected expected;
      const auto reduce = [&](const char* op, int64_t axis, double value) {
        m.output_without_shape(m.node(op, {y}, {{"axes", std::vector<int64_t>{axis}}, {"keepdims", 0}}),
                               DataType::float32);
        expected.push_back(std::vector<double>(axis == 0 ? size : 5, value));
      };
      m.opsets = {{"", 12}};
      reduce("ReduceMax", 1, one);
      reduce("ReduceMin", 1, one);
      reduce("ReduceSum", 0, 5 * one);
      reduce("ReduceSum", 1, static_cast<double>(n) * one);
      reduce("ReduceProd", 0, std::pow(one, 5));
      expect_right(m, {floats({5, n}, std::vector<double>(5 * size, 0))}, expected, 1e-6, n % 8 == 1);
    }
}

// 08. Groups that wait for each other through a third are not merged.
TEST(Faults08, DiamondsAroundAProduct) {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {"n", 4});
  const auto w = m.initializer(initializer_of("w", ramp({4, 4}, -1, 0.2)));
  std::string a = m.node("Relu", {x});
  for (int i = 0; i < 2; ++i) {
    const auto r = m.node("MatMul", {a, w}), s = m.node("Softmax", {a}, {{"axis", 0}});
    a = m.node("Tanh", {m.node("Add", {m.node("Add", {a, r}), m.node("Mul", {s, r})})});
  }
  m.output_without_shape(a, DataType::float32);
  for (const int64_t n : {0, 1, 5}) expect_right(m, {ramp({n, 4}, -2, 0.3)}, {}, 0, n == 5);
}

// 25. A bias lies along the axis that broadcasting says, and may enlarge the product.
TEST(Faults25, BiasOfAProduct) {
  const auto product = [](std::vector<int64_t> a, std::vector<int64_t> b, const Tensor& bias, bool fixed,
                          const std::vector<double>& expected) {
    OnnxBuilder m;
    const auto x = m.input("x", DataType::float32, OnnxShape(a.begin(), a.end()));
    const auto w = m.initializer(initializer_of("w", ramp(b, 0, 1)));
    const std::string c =
        fixed ? m.initializer(initializer_of("c", bias))
              : m.input("c", DataType::float32, OnnxShape(bias.shape.begin(), bias.shape.end()));
    m.output_without_shape(m.node("Relu", {m.node("Add", {m.node("MatMul", {x, w}), c})}), DataType::float32);
    std::vector<Tensor> inputs = {
        floats(a, std::vector<double>(static_cast<size_t>(graph::element_count(a)), 1))};
    if (!fixed) inputs.push_back(bias);
    expect_right(m, inputs, {expected});
  };
  for (const bool fixed : {false, true}) {
    // Columns of [[0 1 2] [3 4 5] [6 7 8]] add up to 9, 12, 15.
    product({3, 3}, {3, 3}, floats({3, 1}, {1, 2, 3}), fixed, {10, 13, 16, 11, 14, 17, 12, 15, 18});
    product({3, 3}, {3, 3}, floats({3}, {1, 2, 3}), fixed, {10, 14, 18, 10, 14, 18, 10, 14, 18});
    product({3, 3}, {3, 1}, floats({1, 4}, {1, 2, 3, 4}), fixed, {4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7});
    product({2, 3}, {3, 2}, floats({1, 1, 1, 2, 2}, {1, 2, 3, 4}), fixed, {7, 11, 9, 13});
    product({2, 3}, {3, 2}, floats({}, {0.5}), fixed, {6.5, 9.5, 6.5, 9.5});
    product({2, 3}, {3, 2}, floats({2, 1}, {1, 2}), fixed, {7, 10, 8, 11});
  }
}

// 26. What is added to a convolution is no bias unless it is one per channel.
TEST(Faults26, WhatIsAddedToAConvolution) {
  for (const int64_t groups : {1, 2, 4})
    for (const bool fixed : {false, true})
      for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1, 4, 2, 2},
                                                {4, 1, 1},
                                                {1, 4, 1, 1},
                                                {2},
                                                {1, 1, 1, 2},
                                                {3, 1, 1, 1},
                                                {3, 4, 2, 2}}) {
        OnnxBuilder m;
        const auto x = m.input("x", DataType::float32, {3, 4, 2, 2});
        const auto w = m.initializer(initializer_of(
            "w", floats({4, 4 / groups, 1, 1}, std::vector<double>(static_cast<size_t>(16 / groups), 0))));
        const Tensor added = ramp(shape);
        const std::string c = fixed ? m.initializer(initializer_of("c", added))
                                    : m.input("c", DataType::float32, OnnxShape(shape.begin(), shape.end()));
        m.output_without_shape(
            m.node("Add", {m.node("Conv", {x, w}, {{"group", OnnxAttributeValue(groups)}}), c}),
            DataType::float32);
        std::vector<Tensor> inputs = {ramp({3, 4, 2, 2}, -3, 0.25)};
        if (!fixed) inputs.push_back(added);
        // The output is what was added, broadcast to [3, 4, 2, 2].
        std::vector<double> expected;
        for (int64_t i = 0; i < 48; ++i) {
          const int64_t at[] = {i / 16, i / 4 % 4, i / 2 % 2, i % 2};
          int64_t index = 0;
          for (size_t d = 0; d < shape.size(); ++d)
            index = index * shape[d] + (shape[d] == 1 ? 0 : at[4 - shape.size() + d]);
          expected.push_back(static_cast<double>(index));
        }
        expect_right(m, inputs, {expected}, 0, groups == 2);
      }
}

// Mean, difference, square, mean, root, quotient: the primitives that a layer norm is written in.
std::string norm_of_primitives(OnnxBuilder& m, const std::string& x, int64_t keepdims,
                               std::vector<int64_t> first, std::vector<int64_t> second, double exponent = 2,
                               bool root = true) {
  const auto mean = [&](const std::string& v, const std::vector<int64_t>& axes) {
    OnnxAttributes attributes = {{"keepdims", OnnxAttributeValue(keepdims)}};
    if (!axes.empty()) attributes.push_back({"axes", axes});
    return m.node("ReduceMean", {v}, attributes);
  };
  const auto d = m.node("Sub", {x, mean(x, first)});
  const auto p = m.node("Pow", {d, m.floats("p", {}, {static_cast<float>(exponent)})});
  std::string v = m.node("Add", {mean(p, second), m.floats("eps", {}, {1e-12f})});
  if (root) v = m.node("Sqrt", {v});
  return m.node("Div", {d, v});
}

// 35. A scale and a bias that enlarge a norm.
TEST(Faults35, ScaleThatEnlargesANorm) {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {1, 1});
  const auto n = norm_of_primitives(m, x, 1, {-1}, {-1});
  const auto scaled = m.node("Mul", {n, m.floats("s", {2}, {3, 5})});
  m.output_without_shape(m.node("Add", {scaled, m.floats("b", {2}, {7, 9})}), DataType::float32);
  expect_right(m, {floats({1, 1}, {4})}, {{7, 9}});
}

TEST(Faults35, ScalesOfOtherShapes) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{3}, {1, 3}, {4, 1, 1}, {2, 1}, {4, 2, 3}, {5, 1, 1, 1}, {1}})
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{-1}, {-2, -1}, {0}}) {
      OnnxBuilder m;
      const auto x = m.input("x", DataType::float32, {"a", "b", "c"});
      const auto n = norm_of_primitives(m, x, 1, axes, axes);
      const auto s = m.input("s", DataType::float32, OnnxShape(shape.begin(), shape.end()));
      m.output_without_shape(m.node("Add", {m.node("Mul", {s, n}), s}), DataType::float32);
      expect_right(m, {ramp({4, 2, 3}, 0, 0.37), ramp(shape, 1, 0.5)}, {}, 0, shape.size() == 4);
    }
}

// 36. What looks like a layer norm, and is none.
TEST(Faults36, MeansWithoutKeptDimensions) {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {2, 2});
  m.output_without_shape(norm_of_primitives(m, x, 0, {-1}, {-1}), DataType::float32);
  expect_right(m, {floats({2, 2}, {1, 3, 2, 6})}, {{-1, -0.70710678, 0, 1.41421356}}, 1e-5);
}

TEST(Faults36, OtherAxesExponentsAndNoRoot) {
  for (const int64_t keepdims : {0, 1})
    for (const std::vector<int64_t>& second : {std::vector<int64_t>{}, {0}, {1}})
      for (const double exponent : {2.0, 3.0})
        for (const bool root : {true, false}) {
          OnnxBuilder m;
          const auto x = m.input("x", DataType::float32, {3, 3});
          m.output_without_shape(norm_of_primitives(m, x, keepdims, {1}, second, exponent, root),
                                 DataType::float32);
          expect_right(m, {ramp({3, 3}, 0.5, 0.77)}, {}, 0, false);
        }
}

// 44. What gathers or scatters depends on all of its operand.
TEST(Faults44, ReadersOfScattersAndGathers) {
  OnnxBuilder m(16);
  const auto x = m.input("x", DataType::float32, {5});
  const auto i = m.input("i", DataType::int64, {4});
  const auto u = m.input("u", DataType::float32, {4});
  const auto s = m.node("ScatterElements", {x, i, u}, {{"reduction", "add"}});
  const auto two = m.floats("two", {}, {2});
  m.output_without_shape(m.node("Div", {s, two}), DataType::float32);
  const auto producer = m.node("Mul", {x, two});
  const auto gathered = m.node("Gather", {m.node("Exp", {producer}), i});
  m.output_without_shape(m.node("Add", {gathered, u}), DataType::float32);
  expect_right(
      m,
      {floats({5}, {0, 1, 2, 3, 4}), tensor(DataType::int64, {4}, {1, 1, 4, 1}), floats({4}, {1, 2, 3, 4})},
      {{0, 4, 1, 1.5, 3.5}, {std::exp(2.0) + 1, std::exp(2.0) + 2, std::exp(8.0) + 3, std::exp(2.0) + 4}},
      1e-6);
}

// 59. A rank-1 norm whose scale is itself of rank 1, or the norm.
TEST(Faults59, NormOfAVector) {
  for (const int form : {0, 1, 2}) {
    OnnxBuilder m;
    const auto x = m.input("x", DataType::float32, {4});
    const auto n = norm_of_primitives(m, x, 1, {-1}, {-1});
    const auto scale = m.floats("s", {4}, {1, 2, 3, 4});
    m.output_without_shape(m.node("Mul", form == 0   ? std::vector{scale, n}
                                         : form == 1 ? std::vector{n, scale}
                                                     : std::vector{n, n}),
                           DataType::float32);
    const double one = 1 / std::sqrt(1.25);
    const std::vector<double> norm = {-1.5 * one, -0.5 * one, 0.5 * one, 1.5 * one};
    std::vector<double> expected;
    for (size_t k = 0; k < 4; ++k)
      expected.push_back(norm[k] * (form == 2 ? norm[k] : static_cast<double>(k + 1)));
    expect_right(m, {floats({4}, {1, 2, 3, 4})}, {expected}, 1e-5);
  }
}

// 84. Scalars that several kernels read, one output that another group's node needs.
TEST(Faults84, ScalarChainsOfManyReaders) {
  OnnxBuilder m(17);
  const auto s = m.input("s", DataType::float32, {});
  const auto x = m.input("x", DataType::float32, {"n", 3});
  std::string t = s;
  for (int i = 0; i < 6; ++i) t = m.node("Tanh", {m.node("Exp", {t})});
  const auto a = m.node("Mul", {x, t}), b = m.node("ReduceSum", {m.node("Add", {x, t})});
  const auto c = m.node("MatMul", {a, m.initializer(initializer_of("w", ramp({3, 3})))});
  for (const auto& v : {t, m.node("Add", {c, b}), m.node("Mul", {b, t}), m.node("Softmax", {a})})
    m.output_without_shape(v, DataType::float32);
  for (const int64_t n : {0, 1, 7}) expect_right(m, {floats({}, {0.5}), ramp({n, 3}, -1, 0.3)});
}

// 84. Selections and sorts last and in the middle of what is fused otherwise.
TEST(Faults84, OpaqueOperatorsDivideWhatIsFused) {
  OnnxBuilder m(17);
  const auto x = m.input("x", DataType::float32, {"n"});
  const auto one = m.floats("one", {}, {1});
  const auto clipped = m.node("Add", {m.node("Relu", {x}), one});
  const auto large = m.node("Cast", {m.node("Greater", {x, one})}, cast_to(DataType::float32));
  m.output_without_shape(m.node("NonZero", {m.node("Abs", {large})}), DataType::int64);
  m.output_without_shape(m.node("Exp", {m.node("Neg", {m.node("Unique", {m.node("Neg", {x})})})}),
                         DataType::float32);
  m.nodes.push_back({"", "TopK", "", {clipped, m.ints("k", {1}, {2})}, {"values", "at"}, {}});
  m.output_without_shape("at", DataType::int64);
  m.output_without_shape(m.node("Div", {"values", m.node("ReduceSum", {clipped})}), DataType::float32);
  const double e = std::exp(1.0);
  expect_right(m, {floats({5}, {0, 2, 1, 2, -1})},
               {{1, 3}, {e * e, e, 1, 1 / e}, {1, 3}, {3.0 / 10, 3.0 / 10}}, 1e-6);
}

// 84. What nothing computes yet is refused by name.
TEST(Faults84, UnknownOperatorsAreRefused) {
  for (const char* op : {"StringNormalizer", "ImageDecoder", "NoSuchOperator"}) {
    OnnxBuilder m(20);
    const auto x = m.input("x", DataType::float32, {4});
    m.output_without_shape(m.node(op, {m.node("Exp", {x})}), DataType::float32);
    try {
      imported(m, {ramp({4})});
      ADD_FAILURE() << op;
    } catch (const UnsupportedError& error) {
      EXPECT_NE(std::string(error.what()).find(op), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace fusewise::test
