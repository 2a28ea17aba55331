// The double interpreter: executions in the model's types, in other orders and with operands moved inside
// their bounds, must stay inside the bound, and a corrupted weight must not.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "graph/interpreter/bounded.h"
#include "graph/interpreter/double_interpreter.h"
#include "graph/interpreter/evaluate.h"
#include "interpreter_testing.h"

namespace fusewise::graph::testing {
namespace {

const std::vector<DataType> float_types{DataType::float16, DataType::bfloat16, DataType::float32,
                                        DataType::float64};

double random_operand(std::mt19937& random) {
  std::uniform_real_distribution<double> exponent(-6, 4), uniform(-1, 1);
  const int kind = static_cast<int>(random() % 16);
  if (kind == 0) return std::round(uniform(random) * 4);
  if (kind == 1)
    return std::vector<double>{0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, 6e-8, 1.0}[random() % 8];
  return std::copysign(std::exp2(exponent(random)), uniform(random));
}

// Operands moved inside their bounds, evaluated in the type: for every operation, type and size of bound.
TEST(BoundedScalars, EvaluationsStayInside) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  int known = 0, tried = 0;
  const ScalarOp ops[] = {
#define SCALAR_OP(name, arity, class_) ScalarOp::name,
#include "numerics/scalar_ops.def"
#undef SCALAR_OP
  };
  for (const ScalarOp op : ops) {
    for (const DataType type : float_types) {
      std::vector<DataType> types(static_cast<size_t>(arity_of(op)), type);
      if (op == ScalarOp::select) types[0] = DataType::boolean;
      std::optional<DataType> result =
          op == ScalarOp::cast ? std::optional(DataType::float16) : result_type_of(op, types);
      if (!result) continue;
      for (int round = 0; round < 3000; ++round) {
        Bounded x[3];
        std::vector<Scalar> moved(types.size());
        bool usable = true;
        for (size_t k = 0; k < types.size(); ++k) {
          const double size = random() % 4 == 0 ? 0 : std::exp2(-static_cast<double>(random() % 24));
          if (types[k] == DataType::boolean) {
            x[k] = {static_cast<double>(random() % 2), static_cast<double>(random() % 2)};
            moved[k] = {
                types[k], 0,
                x[k].error > 0 ? static_cast<int64_t>(random() % 2) : static_cast<int64_t>(x[k].value)};
            continue;
          }
          x[k].value = convert({DataType::float64, random_operand(random), 0}, type).f;
          x[k].error = std::isfinite(x[k].value) ? std::abs(x[k].value) * size : 0;
          moved[k] = convert({DataType::float64, x[k].value + uniform(random) * x[k].error, 0}, type);
          usable = usable && is_within(moved[k].f, x[k]);
        }
        if (!usable) continue;
        const Bounded y = evaluate_bounded(op, std::span(x, types.size()), types.back(), *result);
        const Scalar actual = convert(evaluate(op, moved, *result), DataType::float64);
        ++tried;
        known += y.error < unknown ? 1 : 0;
        ASSERT_TRUE(is_within(actual.f, y)) << name_of(op) << " " << name_of(type) << " of " << x[0].value
                                            << "+-" << x[0].error << ", " << x[1].value << "+-" << x[1].error
                                            << ": " << y.value << "+-" << y.error << " against " << actual.f;
      }
    }
  }
  EXPECT_GT(tried, 200000);
  EXPECT_GT(known, tried * 9 / 10);  // the bounds say something
}

TEST(BoundedScalars, CertaintyOfInfinities) {
  const auto add = [](Bounded a, Bounded b) {
    const Bounded x[] = {a, b};
    return evaluate_bounded(ScalarOp::add, x, DataType::float32, DataType::float32);
  };
  EXPECT_EQ(add({-INFINITY, 0}, {1, 0.5}).error, 0);  // a mask
  EXPECT_TRUE(std::isnan(add({-INFINITY, 0}, {INFINITY, 0}).value));
  EXPECT_EQ(add({-INFINITY, 0}, {INFINITY, 0}).error, 0);
  EXPECT_EQ(add({3.4e38, 0}, {2e36, 0}).value, INFINITY);  // overflows here, and perhaps not in another order
  EXPECT_EQ(add({3.4e38, 0}, {2e36, 0}).error, unknown);
  EXPECT_EQ(add({3.4e38, 0}, {2e35, 2e36}).error, unknown);
  EXPECT_EQ(add({1, unknown}, {1, 0}).error, unknown);
  const Bounded zero[] = {{1, 0}, {0, 1e-9}};
  EXPECT_EQ(evaluate_bounded(ScalarOp::div, zero, DataType::float32, DataType::float32).error, unknown);
  const Bounded apart[] = {{1, 0.1}, {2, 0.1}}, close[] = {{1, 0.6}, {2, 0.6}};
  EXPECT_EQ(evaluate_bounded(ScalarOp::less, apart, DataType::float32, DataType::boolean).error, 0);
  EXPECT_EQ(evaluate_bounded(ScalarOp::less, close, DataType::float32, DataType::boolean).error, 1);
  const Bounded condition[] = {{1, 1}, {5, 0}, {2, 0.25}};
  EXPECT_EQ(evaluate_bounded(ScalarOp::select, condition, DataType::float32, DataType::float32).error, 3.25);
}

std::vector<int> random_permutation(std::mt19937& random, int64_t n) {
  std::vector<int> result(static_cast<size_t>(n));
  std::iota(result.begin(), result.end(), 0);
  std::shuffle(result.begin(), result.end(), random);
  return result;
}

// The elements along an axis in another order.
Tensor reordered(const Tensor& x, size_t axis, const std::vector<int>& order) {
  Tensor result(x.element, x.shape);
  for_each_index(x.shape, [&](const std::vector<int64_t>& index, int64_t flat) {
    std::vector<int64_t> from = index;
    from[axis] = order[static_cast<size_t>(index[axis])];
    set_element(result, flat, element_at(x, flat_index(x.shape, from)));
  });
  return result;
}

// Another legal execution of a graph: each contraction and reduction adds its elements in a random order.
std::vector<Tensor> run_reordered(const Graph& graph, std::span<const Tensor> inputs, std::mt19937& random) {
  std::vector<Tensor> values(graph.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs[i].node] = inputs[i];
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == Op::input) continue;
    std::vector<Tensor> x;
    for (const Value& v : node.operands) x.push_back(values[v.node]);
    if (node.op == Op::dot) {
      const auto& a = attributes<DotAttributes>(node);
      for (size_t i = 0; i < a.lhs_contract.size(); ++i) {
        const auto l = static_cast<size_t>(a.lhs_contract[i]), r = static_cast<size_t>(a.rhs_contract[i]);
        const std::vector<int> order = random_permutation(random, x[0].shape[l]);
        x[0] = reordered(x[0], l, order);
        x[1] = reordered(x[1], r, order);
      }
    } else if (node.op == Op::reduce) {
      for (const int axis : attributes<ReduceAttributes>(node).axes) {
        const auto d = static_cast<size_t>(axis);
        x[0] = reordered(x[0], d, random_permutation(random, x[0].shape[d]));
      }
    } else if (node.op == Op::convolution && attributes<ConvolutionAttributes>(node).groups == 1) {
      const std::vector<int> order = random_permutation(random, x[0].shape[1]);
      x[0] = reordered(x[0], 1, order);
      x[1] = reordered(x[1], 1, order);
    }
    values[id] = evaluate_node(graph, id, x, {});
  }
  std::vector<Tensor> results;
  for (const GraphOutput& output : graph.outputs) results.push_back(values[output.value.node]);
  return results;
}

// Random compositions over matrices of one shape: layers of weights, activations, norms, softmax, and views.
class RandomGraph {
 public:
  static constexpr int64_t rows = 6, columns = 24;

  RandomGraph(uint32_t seed, DataType type, int length) : random_(seed), type_(type) {
    x_.push_back(random_tensor(random_, type, {rows, columns}));
    Value value = builder_.input("x", type_of(x_[0]));
    value = layer(value);  // the first thing is always a layer, whose weight a test may corrupt
    for (int i = 0; i < length; ++i) value = step(value);
    builder_.output(value, "y");
  }

  const Graph& graph() const { return graph_; }
  std::vector<Tensor> inputs() const { return x_; }

 private:
  std::mt19937 random_;
  DataType type_;
  Graph graph_;
  GraphBuilder builder_{graph_};
  std::vector<Tensor> x_;

  Value weight(std::vector<int64_t> shape) {
    Tensor t = random_tensor(random_, type_, std::move(shape));
    x_.push_back(t);
    return builder_.input("w" + std::to_string(x_.size()), type_of(t));
  }
  Value constant(double number) { return builder_.scalar(type_, number); }
  Value two(ScalarOp op, Value a, Value b) { return builder_.map_broadcast(op, {a, b}); }
  Value one(ScalarOp op, Value a) { return builder_.map(op, {a}); }
  Value layer(Value v) {
    const Value product = builder_.matmul(v, weight({columns, columns}));
    return two(ScalarOp::add, two(ScalarOp::mul, product, constant(0.2)), weight({columns}));
  }
  Value softmax(Value v) {
    const Value shifted = two(ScalarOp::sub, v, builder_.reduce(v, Combine::max, {1}, true));
    const Value e = one(ScalarOp::exp, shifted);
    return two(ScalarOp::div, e, builder_.reduce(e, Combine::sum, {1}, true));
  }
  Value norm(Value v) {
    const Value scale = constant(1.0 / columns);
    const Value mean = two(ScalarOp::mul, builder_.reduce(v, Combine::sum, {1}, true), scale);
    const Value centred = two(ScalarOp::sub, v, mean);
    const Value squares = builder_.reduce(one_square(centred), Combine::sum, {1}, true);
    const Value deviation =
        one(ScalarOp::sqrt, two(ScalarOp::add, two(ScalarOp::mul, squares, scale), constant(0.01)));
    return two(ScalarOp::div, centred, deviation);
  }
  Value one_square(Value v) { return builder_.map(ScalarOp::mul, {v, v}); }
  Value step(Value v) {
    switch (random_() % 9) {
      case 0:
        return layer(v);
      case 1:
        return softmax(v);
      case 2:
        return norm(v);
      case 3:
        return one(ScalarOp::tanh, v);
      case 4:
        return two(ScalarOp::mul, v, two(ScalarOp::add, one(ScalarOp::erf, v), constant(1)));
      case 5:
        return two(ScalarOp::max, v, constant(0));
      case 6:
        return two(ScalarOp::div, v, two(ScalarOp::add, one(ScalarOp::abs, v), constant(1)));
      case 7:
        return builder_.reshape(builder_.transpose(builder_.reshape(v, {rows, 4, 6}), {0, 2, 1}),
                                {rows, columns});
      default:
        return two(ScalarOp::add, v, weight({rows, columns}));
    }
  }
};

TEST(BoundedInterpreter, OtherOrdersStayInsideAndCorruptedWeightsDoNot) {
  int caught = 0, graphs = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const RandomGraph g(seed, DataType::float32, static_cast<int>(seed % 6));
    const std::vector<BoundedTensor> expected = interpret_bounded(g.graph(), g.inputs());
    EXPECT_EQ(worst_deviation(expected[0], interpret(g.graph(), g.inputs())[0]).unbounded, 0);
    std::mt19937 random(seed);
    double worst = worst_deviation(expected[0], interpret(g.graph(), g.inputs())[0]).ratio;
    for (int i = 0; i < 5; ++i)
      worst = std::max(worst,
                       worst_deviation(expected[0], run_reordered(g.graph(), g.inputs(), random)[0]).ratio);
    EXPECT_LE(worst, 1) << "seed " << seed;
    std::vector<Tensor> corrupted = g.inputs();
    for (float& w : corrupted[1].mutable_as<float>()) w *= 1.01f;
    caught += worst_deviation(expected[0], interpret(g.graph(), corrupted)[0]).within() ? 0 : 1;
    ++graphs;
  }
  // A norm may cancel a scale, and an activation saturate.
  EXPECT_GE(caught, graphs * 9 / 10);
}

// The probable error is smaller, still holds, and stays finite and useful through a deep network.
TEST(BoundedInterpreter, ProbableErrors) {
  BoundedOptions probable;
  probable.model = ErrorModel::probable;
  int caught = 0;
  for (uint32_t seed = 100; seed < 130; ++seed) {
    const RandomGraph g(seed, DataType::float32, 12);
    const BoundedTensor expected = interpret_bounded(g.graph(), g.inputs(), probable)[0];
    const BoundedTensor worst = interpret_bounded(g.graph(), g.inputs())[0];
    for (size_t i = 0; i < expected.bound.as<double>().size(); ++i)
      EXPECT_LE(expected.bound.as<double>()[i], worst.bound.as<double>()[i] * (1 + 1e-5));
    std::mt19937 random(seed);
    const Deviation strict = worst_deviation(expected, interpret(g.graph(), g.inputs())[0]);
    EXPECT_LE(strict.ratio, 1) << seed;
    EXPECT_EQ(strict.unbounded, 0) << seed;
    EXPECT_LE(worst_deviation(expected, run_reordered(g.graph(), g.inputs(), random)[0]).ratio, 1) << seed;
    std::vector<Tensor> corrupted = g.inputs();
    for (float& w : corrupted[1].mutable_as<float>()) w *= 1.01f;
    caught += worst_deviation(expected, interpret(g.graph(), corrupted)[0]).within() ? 0 : 1;
  }
  EXPECT_GE(caught, 20);
}

TEST(BoundedInterpreter, OneCorruptedWeightShows) {
  std::mt19937 random(3);
  int caught = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const RandomGraph g(seed, DataType::float32, 1);
    std::vector<Tensor> corrupted = g.inputs();
    float& weight = corrupted[1].mutable_as<float>()[random() % 576];
    weight = weight == 0 ? 0.01f : weight * 1.01f;
    caught += worst_deviation(interpret_bounded(g.graph(), g.inputs())[0], interpret(g.graph(), corrupted)[0])
                      .within()
                  ? 0
                  : 1;
  }
  EXPECT_GE(caught, 16);
}

TEST(BoundedInterpreter, OtherTypes) {
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float64}) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      const RandomGraph g(seed, type, 2);
      const std::vector<BoundedTensor> expected = interpret_bounded(g.graph(), g.inputs());
      std::mt19937 random(seed);
      EXPECT_TRUE(worst_deviation(expected[0], interpret(g.graph(), g.inputs())[0]).within())
          << name_of(type) << seed;
      EXPECT_TRUE(worst_deviation(expected[0], run_reordered(g.graph(), g.inputs(), random)[0]).within());
    }
  }
}

// Convolution, windows, reductions of every kind, gathers and integers in one graph.
TEST(BoundedInterpreter, EveryKindOfNode) {
  std::mt19937 random(5);
  for (const DataType type : float_types) {
    for (const int64_t groups : {1, 2, 6}) {
      Graph graph;
      GraphBuilder b(graph);
      const std::vector<Tensor> inputs{random_tensor(random, type, {2, 6, 7, 5}),
                                       random_tensor(random, type, {6, 6 / groups, 3, 2}),
                                       Tensor::from<int64_t>(DataType::int64, {3}, {4, -1, 0})};
      const Value x = b.input("x", type_of(inputs[0])), w = b.input("w", type_of(inputs[1])),
                  i = b.input("i", type_of(inputs[2]));
      const Value scaled = b.map(ScalarOp::mul, {x, x});
      const Value y = b.convolution(scaled, w, {{1, 2}, {1, 1}, {1, 0}, {1, 1}, groups});
      for (const Combine combine : {Combine::sum, Combine::product, Combine::max, Combine::min}) {
        b.output(b.window_reduce(y, {combine, {2, 2}, {1, 1}, {1, 1}, {1, 0}, {0, 1}}), "window");
        b.output(b.reduce(y, combine, {1, 3}), combine == Combine::product ? "product" : "reduce");
      }
      const Value zero = b.broadcast_to(b.scalar(type, 0.0), b.shape(y));
      const Value negative = b.map(ScalarOp::less, {y, zero});
      b.output(b.map(ScalarOp::select, {negative, zero, y}), "relu");
      b.output(b.cast(negative, DataType::int32), "count");
      b.output(b.gather(y, i, 1), "gather");
      b.output(b.pad(y, b.scalar(type, 7.0), {0, 1, 0, -1}, {0, 0, 2, 0}), "pad");
      b.output(b.concat({y, zero}, 2), "concat");
      b.output(b.slice(y, {1, 0, 0, 0}, {-1, 1, 2, 1}, {2, 6, 3, 2}), "slice");
      b.output(b.map(ScalarOp::mul, {b.gather(i, i, 0), b.iota({DataType::int64, {3}}, 0)}), "integers");
      const std::vector<BoundedTensor> expected = interpret_bounded(graph, inputs);
      const std::vector<Tensor> strict = interpret(graph, inputs),
                                other = run_reordered(graph, inputs, random);
      for (size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(expected[k].element, strict[k].element);
        const Deviation a = worst_deviation(expected[k], strict[k]),
                        o = worst_deviation(expected[k], other[k]);
        EXPECT_TRUE(a.within() && o.within())
            << graph.outputs[k].name << " " << name_of(type) << " groups " << groups << ": " << a.actual
            << " " << a.value << " +- " << a.bound;
        if (graph.outputs[k].name != "product") {  // which may overflow
          EXPECT_EQ(a.unbounded, 0) << graph.outputs[k].name << " " << k << " " << name_of(type) << groups;
        }
      }
      EXPECT_EQ(expected.back().bound.as<double>()[0], 0);  // integers are exact
    }
  }
}

TEST(BoundedInterpreter, MaskedSoftmaxAndFullyMaskedRows) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", {DataType::float32, {3, 5}}),
              mask = b.input("mask", {DataType::float32, {3, 5}});
  const Value masked = b.map(ScalarOp::add, {b.map(ScalarOp::mul, {x, x}), mask});
  const Value e = b.map(
      ScalarOp::exp, {b.map_broadcast(ScalarOp::sub, {masked, b.reduce(masked, Combine::max, {1}, true)})});
  b.output(b.map_broadcast(ScalarOp::div, {e, b.reduce(e, Combine::sum, {1}, true)}), "y");
  std::mt19937 random(6);
  std::vector<float> m(15, 0);
  for (size_t i = 2; i < 5; ++i) m[i] = -INFINITY;
  for (size_t i = 5; i < 10; ++i) m[i] = -INFINITY;  // a fully masked row is NaN
  for (size_t i = 12; i < 15; ++i) m[i] = -3.4028235e38f;
  const std::vector<Tensor> inputs{random_tensor(random, DataType::float32, {3, 5}),
                                   Tensor::from(DataType::float32, {3, 5}, m)};
  const BoundedTensor y = interpret_bounded(graph, inputs)[0];
  const Deviation d = worst_deviation(y, interpret(graph, inputs)[0]);
  EXPECT_TRUE(d.within()) << d.index << " " << d.actual << " " << d.value << " " << d.bound;
  EXPECT_EQ(d.unbounded, 0);
  EXPECT_TRUE(std::isnan(y.value.as<double>()[5]));
  EXPECT_EQ(y.bound.as<double>()[5], 0);
  Tensor wrong = interpret(graph, inputs)[0];
  wrong.mutable_as<float>()[6] = 0;  // a number where all say NaN
  EXPECT_FALSE(worst_deviation(y, wrong).within());
}

TEST(BoundedInterpreter, PartialSumsThatMayOverflowAreUnknown) {
  const Tensor x = Tensor::from<float>(DataType::float32, {1, 3}, {3e38f, 3e38f, -3e38f});
  const Tensor ones = Tensor::from<float>(DataType::float32, {3, 1}, {1, 1, 1});
  Graph graph;
  GraphBuilder b(graph);
  const Value v = b.input("x", type_of(x)), w = b.input("w", type_of(ones));
  b.output(b.matmul(v, w), "dot");
  b.output(b.reduce(v, Combine::sum, {1}), "sum");
  for (const BoundedTensor& y : interpret_bounded(graph, std::vector{x, ones}))
    EXPECT_EQ(y.bound.as<double>()[0], unknown);
}

// The operands of integer arithmetic behind a cast are exact by their type, but not known to be.
TEST(BoundedInterpreter, IntegersThatMayWrapAroundAreUnknown) {
  for (const DataType type : {DataType::uint8, DataType::int8, DataType::int16, DataType::int32}) {
    const double greatest = std::ldexp(1.0, bits_of(type) - (is_signed(type) ? 1 : 0)) - 1;
    const Tensor x = Tensor::from<float>(DataType::float32, {2}, {static_cast<float>(greatest / 2), 3});
    Graph graph;
    GraphBuilder b(graph);
    const Value v = b.input("x", type_of(x));
    const Value rounded = b.map(ScalarOp::add, {v, v});  // may be off, as far as is known
    const Value halves = b.map(ScalarOp::mul, {rounded, rounded});
    const Value whole = b.cast(b.map(ScalarOp::sqrt, {halves}), type);
    b.output(b.reduce(whole, Combine::product, {0}), "product");
    b.output(b.reduce(whole, Combine::sum, {0}), "sum");
    for (const BoundedTensor& y : interpret_bounded(graph, std::vector{x}))
      EXPECT_EQ(y.bound.as<double>()[0], unknown) << name_of(type);
  }
}

TEST(BoundedInterpreter, ThreadsDoNotMatter) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", {DataType::float32, {128, 768}}),
              w = b.input("w", {DataType::float32, {768, 1024}});
  b.output(b.matmul(b.map(ScalarOp::mul, {x, x}), w), "y");
  std::mt19937 random(7);
  const std::vector<Tensor> inputs{random_tensor(random, DataType::float32, {128, 768}),
                                   random_tensor(random, DataType::float32, {768, 1024})};
  BoundedOptions threads;
  threads.threads = 2;
  const BoundedTensor one = interpret_bounded(graph, inputs)[0];
  const BoundedTensor two = interpret_bounded(graph, inputs, threads)[0];
  EXPECT_TRUE(same_tensors(one.value, two.value));
  EXPECT_TRUE(same_tensors(one.bound, two.bound));
}

}  // namespace
}  // namespace fusewise::graph::testing
