// Forms against direct loops over the operations' definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/form.h"
#include "graph/form_text.h"
#include "graph/shape_rules.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "support/case_file.h"
#include "support/form_evaluator.h"

namespace fusewise::graph {
namespace {

using test::Array;
using test::count_of;
using test::evaluated;
using test::number;
using Point = std::vector<int64_t>;
using Element = std::function<Scalar(const Point&)>;  // of the expected result

struct Fixture {
  Graph graph;
  GraphBuilder builder{graph};
  std::vector<Array> arrays;  // of the inputs, by node
  SymbolValues symbols;
  std::mt19937 random{7};

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }

  // Small integers, so that every order of a sum is exact.
  Value input(Shape shape, DataType type = DataType::float32, int64_t low = -9, int64_t high = 9) {
    Array array{type, evaluated(shape, symbols), {}};
    for (int64_t i = count_of(array.shape); i > 0; --i)
      array.values.push_back(number(type, static_cast<double>(pick(low, high))));
    const Value value = builder.input("x", {type, std::move(shape)});
    arrays.resize(value.node + 1);
    arrays[value.node] = std::move(array);
    return value;
  }
  Scalar at(Value value, const Point& point) const {
    const Array& array = arrays[value.node];
    int64_t flat = 0;
    for (size_t d = 0; d < array.shape.size(); ++d) {
      if (point[d] < 0 || point[d] >= array.shape[d]) throw std::logic_error("the test reads out of bounds");
      flat = flat * array.shape[d] + point[d];
    }
    return array.values.at(static_cast<size_t>(flat));
  }

  Array run(Value result) {
    verify(graph);
    std::vector<Array> operands;
    for (const Value& operand : graph.node(result.node).operands) operands.push_back(arrays.at(operand.node));
    for (const Requirement& r : requirements_of(graph, result.node))
      EXPECT_TRUE(holds(r, symbols)) << to_string(r);
    return test::evaluate_form(form_of(graph, result.node), operands, graph.type(result).element, symbols);
  }

  void expect(Value result, const Element& element) {
    const Array actual = run(result);
    ASSERT_EQ(actual.shape, evaluated(graph.type(result).shape, symbols));
    ASSERT_EQ(actual.values.size(), static_cast<size_t>(count_of(actual.shape)));
    if (actual.values.empty()) return;
    Point point(actual.shape.size());
    size_t i = 0;
    do {
      const Scalar wanted = element(point);
      ASSERT_EQ(actual.values[i].f, wanted.f) << ::testing::PrintToString(point);
      ASSERT_EQ(actual.values[i].i, wanted.i) << ::testing::PrintToString(point);
      ++i;
    } while (test::next(point, actual.shape));
  }
  void expect_flat(Value result, const std::vector<Scalar>& values) {
    const Array actual = run(result);
    ASSERT_EQ(actual.values.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(actual.values[i].f, values[i].f) << i;
  }
};

Form form_in(const Fixture& f, Value value) { return form_of(f.graph, value.node); }

TEST(Form, Map) {
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{2, 1, 7}}) {
    Fixture f;
    const Value a = f.input(shape), b = f.input(shape);
    f.expect(f.builder.map(ScalarOp::sub, {a, b}),
             [&](const Point& p) { return number(DataType::float32, f.at(a, p).f - f.at(b, p).f); });
    const Value c = f.builder.map(ScalarOp::mul, {a, a});
    f.expect(c, [&](const Point& p) { return number(DataType::float32, f.at(a, p).f * f.at(a, p).f); });
    f.expect(f.builder.cast(a, DataType::int8),
             [&](const Point& p) { return convert(f.at(a, p), DataType::int8); });
  }
}

TEST(Form, Broadcast) {
  Fixture f;
  const Value x = f.input({1, 3});
  const Value y = f.builder.broadcast(x, {2, 5, 3}, {1, 2});
  f.expect(y, [&](const Point& p) { return f.at(x, {0, p[2]}); });
  EXPECT_TRUE(form_in(f, y).reads[0].index[0].linear.terms.empty());
}

TEST(Form, BroadcastOfSymbolsThatMayBeOne) {
  for (const auto& [a, b] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 5}, {5, 1}, {1, 1}, {4, 4}, {0, 0}}) {
    Fixture f;
    f.symbols = {{"a", a}, {"b", b}};
    const Value x = f.input({Dim::symbol("a"), 2}), y = f.input({Dim::symbol("b"), 1});
    const Value sum = f.builder.map_broadcast(ScalarOp::add, {x, y});
    EXPECT_EQ(f.builder.shape(sum), (Shape{max(Dim::symbol("a"), Dim::symbol("b")), 2}));
    for (const Value& operand : f.graph.node(sum.node).operands) {
      const Value from = f.graph.node(operand.node).operands[0];
      f.expect(operand, [&](const Point& p) {
        const Point& shape = f.arrays[from.node].shape;
        return f.at(from, {shape[0] == 1 ? 0 : p[0], shape[1] == 1 ? 0 : p[1]});
      });
    }
  }
}

TEST(Form, Reshape) {
  const std::vector<std::pair<Shape, Shape>> pairs = {
      {{6}, {2, 3}},
      {{2, 3}, {6}},
      {{2, 3}, {3, 2}},
      {{4, 6}, {2, 2, 6}},
      {{4, 6}, {4, 3, 2}},
      {{2, 6, 5}, {4, 3, 5}},
      {{1, 6}, {6, 1, 1}},
      {{}, {1, 1}},
      {{1}, {}},
      {{0, 3}, {0, 7}},
      {{2, 3, 5, 7}, {6, 35}},
      {{6, 35}, {2, 3, 5, 7}},
      {{6, 4}, {2, 12}},
      {{2, 12}, {6, 4}},
      {{3, 4, 5}, {5, 4, 3}},
      {{2, 2, 2, 2}, {4, 1, 4}},
      {{8, 3}, {2, 2, 2, 3}},
      {{7, 11}, {11, 7}},
  };
  for (const auto& [from, to] : pairs) {
    SCOPED_TRACE(to_string(from) + " to " + to_string(to));
    Fixture f;
    const Value x = f.input(from);
    f.expect_flat(f.builder.reshape(x, to), f.arrays[x.node].values);
  }
}

TEST(Form, ReshapeSplitsAreAffineAndMergesDivide) {
  Fixture f;
  const Dim n = Dim::symbol("n");
  const Value split = f.builder.reshape(f.builder.input("y", {DataType::float32, {n, 768}}), {n, 12, 64});
  const Form affine = form_in(f, split);
  for (const IndexExpr& e : affine.reads[0].index) EXPECT_TRUE(e.quasi.empty());
  const Value merged = f.builder.reshape(split, {n, 768});
  const Form form = form_in(f, merged);
  EXPECT_TRUE(form.reads[0].index[0].quasi.empty());
  ASSERT_EQ(form.reads[0].index[1].quasi.size(), 1u);
  EXPECT_EQ(form.reads[0].index[1].quasi[0].divisor, Dim(64));
  EXPECT_EQ(form.reads[0].index[1].quasi[0].modulus, Dim(0));
  EXPECT_EQ(form.reads[0].index[2].quasi[0].modulus, Dim(64));
}

TEST(Form, ReshapeOfSymbols) {
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  const std::vector<std::pair<Shape, Shape>> pairs = {
      {{n, m, 6}, {n * m, 6}},
      {{n * m, 6}, {n, m, 2, 3}},
      {{n, m}, {m, n}},
      {{n, 12}, {n * 3, 4}},
      {{n * 3, 4}, {n, 12}},
      {{n * 4}, {floor_div(n * 4, 2), 2}},
      {{n, m, 4}, {floor_div(n * m * 4, m + 1), m + 1}},
      {{n, 1, m}, {n, m, 1}},
  };
  for (const auto& [nv, mv] :
       std::vector<std::pair<int64_t, int64_t>>{{2, 3}, {1, 1}, {5, 1}, {3, 0}, {0, 2}})
    for (const auto& [from, to] : pairs) {
      SCOPED_TRACE(to_string(from) + " to " + to_string(to));
      Fixture f;
      f.symbols = {{"n", nv}, {"m", mv}};
      const Value x = f.input(from);
      const Value y = f.builder.reshape(x, to);
      bool possible = true;
      for (const Requirement& r : requirements_of(f.graph, y.node))
        possible = possible && holds(r, f.symbols);
      if (possible) f.expect_flat(y, f.arrays[x.node].values);
    }
}

TEST(Form, RandomReshapes) {
  for (int round = 0; round < 300; ++round) {
    Fixture f;
    f.random.seed(static_cast<unsigned>(round));
    const auto shape_of = [&](std::vector<int64_t> primes) {
      std::ranges::shuffle(primes, f.random);
      Shape shape(1, Dim(1));
      for (int64_t p : primes) {
        if (f.pick(0, 1) == 0) shape.push_back(1);
        shape.back() = shape.back() * Dim(p);
      }
      return shape;
    };
    const std::vector<int64_t> primes = {2, 2, 2, 3, 3, 5};
    const Shape from = shape_of(primes), to = shape_of(primes);
    SCOPED_TRACE(to_string(from) + " to " + to_string(to));
    const Value x = f.input(from);
    if (from != to) f.expect_flat(f.builder.reshape(x, to), f.arrays[x.node].values);
  }
}

TEST(Form, Transpose) {
  Fixture f;
  const Value x = f.input({2, 3, 1, 5});
  f.expect(f.builder.transpose(x, {2, 0, 3, 1}),
           [&](const Point& p) { return f.at(x, {p[1], p[3], p[0], p[2]}); });
}

TEST(Form, Slice) {
  for (int round = 0; round < 100; ++round) {
    Fixture f;
    f.random.seed(static_cast<unsigned>(round));
    const Shape shape = {f.pick(1, 9), f.pick(1, 9)};
    std::vector<Dim> starts;
    std::vector<int64_t> steps;
    Shape result;
    for (const Dim& d : shape) {
      const int64_t step = f.pick(0, 1) ? f.pick(1, 3) : -f.pick(1, 3), start = f.pick(0, d.value() - 1);
      const int64_t most = step > 0 ? (d.value() - 1 - start) / step + 1 : start / -step + 1;
      starts.push_back(start);
      steps.push_back(step);
      result.push_back(f.pick(0, most));
    }
    const Value x = f.input(shape);
    const Value y = f.builder.slice(x, starts, steps, result);
    if (y == x) continue;
    f.expect(y, [&](const Point& p) {
      return f.at(x, {starts[0].value() + p[0] * steps[0], starts[1].value() + p[1] * steps[1]});
    });
  }
}

TEST(Form, Pad) {
  for (int round = 0; round < 100; ++round) {
    Fixture f;
    f.random.seed(static_cast<unsigned>(round));
    const Shape shape = {f.pick(0, 7), f.pick(0, 7)};
    std::vector<Dim> low, high;
    for (const Dim& d : shape) {
      const int64_t l = f.pick(-2, 3), h = f.pick(-2, 3);
      low.push_back(l);
      high.push_back(d.value() + l + h < 0 ? -l - d.value() : h);
    }
    const Value x = f.input(shape), value = f.input({});
    const Value y = f.builder.pad(x, value, low, high);
    if (y == x) continue;
    f.expect(y, [&](const Point& p) {
      const Point q = {p[0] - low[0].value(), p[1] - low[1].value()};
      const bool inside = q[0] >= 0 && q[0] < shape[0].value() && q[1] >= 0 && q[1] < shape[1].value();
      return inside ? f.at(x, q) : f.at(value, {});
    });
  }
}

TEST(Form, PadThatOnlyCropsHasNoGuard) {
  Fixture f;
  const Value x = f.input({7});
  const Value y = f.builder.pad(x, f.input({}), {Dim(-1)}, {Dim(-2)});
  EXPECT_TRUE(form_in(f, y).reads[0].guards.empty());
  f.expect(y, [&](const Point& p) { return f.at(x, {p[0] + 1}); });
}

TEST(Form, PadBySymbols) {
  for (int64_t low : {-2, 0, 3}) {
    Fixture f;
    f.symbols = {{"n", 5}, {"k", low + 2}};
    const Dim l = Dim::symbol("k") - 2;
    const Value x = f.input({Dim::symbol("n")}), value = f.input({});
    f.expect(f.builder.pad(x, value, {l}, {Dim(1)}), [&](const Point& p) {
      const int64_t i = p[0] - low;
      return i >= 0 && i < 5 ? f.at(x, {i}) : f.at(value, {});
    });
  }
}

TEST(Form, Concat) {
  Fixture f;
  f.symbols = {{"n", 3}};
  const Value a = f.input({2, 2, 3}), b = f.input({2, 0, 3}), c = f.input({2, Dim::symbol("n"), 3});
  f.expect(f.builder.concat({a, b, c}, 1),
           [&](const Point& p) { return p[1] < 2 ? f.at(a, p) : f.at(c, {p[0], p[1] - 2, p[2]}); });
}

TEST(Form, Gather) {
  for (int axis : {0, 1, 2})
    for (const Shape& index_shape : {Shape{}, Shape{4}, Shape{2, 3}, Shape{0}})
      for (DataType index_type : {DataType::int64, DataType::int32}) {
        Fixture f;
        const Value data = f.input({3, 5, 2}), index = f.input(index_shape, index_type, -9, 9);
        const size_t rank = index_shape.size(), a = static_cast<size_t>(axis);
        f.expect(f.builder.gather(data, index, axis), [&](const Point& p) {
          const auto begin = p.begin() + axis;
          int64_t i = f.at(index, {begin, begin + static_cast<std::ptrdiff_t>(rank)}).i;
          const int64_t extent = f.arrays[data.node].shape[a];
          if (i < 0) i += extent;
          Point q(p.begin(), begin);
          q.push_back(std::clamp<int64_t>(i, 0, extent - 1));
          q.insert(q.end(), begin + static_cast<std::ptrdiff_t>(rank), p.end());
          return f.at(data, q);
        });
      }
}

TEST(Form, Iota) {
  Fixture f;
  f.expect(f.builder.iota({DataType::int32, {2, 5}}, 1),
           [](const Point& p) { return Scalar{DataType::int32, 0, p[1]}; });
  f.expect(f.builder.iota({DataType::float16, {3, 2}}, 0),
           [](const Point& p) { return number(DataType::float16, static_cast<double>(p[0])); });
}

TEST(Form, Reduce) {
  for (Combine combine : {Combine::sum, Combine::max, Combine::min})
    for (int64_t k : {0, 1, 7, 530}) {
      if (k == 0 && combine != Combine::sum) continue;
      Fixture f;
      const Value x = f.input({3, k, 2, 1});
      f.expect(f.builder.reduce(x, combine, {3, 1}), [&](const Point& p) {
        double value = combine == Combine::sum ? 0 : f.at(x, {p[0], 0, p[1], 0}).f;
        for (int64_t r = 0; r < k; ++r) {
          const double next = f.at(x, {p[0], r, p[1], 0}).f;
          value = combine == Combine::sum   ? value + next
                  : combine == Combine::max ? std::max(value, next)
                                            : std::min(value, next);
        }
        return number(DataType::float32, value);
      });
    }
}

TEST(Form, ReduceAccumulatesHalfInSinglePrecision) {
  Fixture f;
  const Value x = f.input({3, 4000}, DataType::float16, 1, 1);
  const Value y = f.builder.reduce(x, Combine::sum, {1});
  EXPECT_EQ(form_in(f, y).accumulation->accumulator, DataType::float32);
  f.expect(y, [](const Point&) { return number(DataType::float16, 4000); });
}

TEST(Form, Dot) {
  for (DataType type : {DataType::float32, DataType::int32, DataType::float64})
    for (int64_t k : {0, 1, 7}) {
      Fixture f;
      const Value a = f.input({4, k, 2, 3}, type), b = f.input({3, 5, k, 2}, type);
      f.expect(f.builder.dot(a, b, {{3}, {0}, {2, 1}, {3, 2}}), [&](const Point& p) {
        double sum = 0;
        for (int64_t i = 0; i < 2; ++i)
          for (int64_t j = 0; j < k; ++j) {
            const Scalar x = f.at(a, {p[1], j, i, p[0]}), y = f.at(b, {p[0], p[2], j, i});
            sum += is_float(type) ? x.f * y.f : static_cast<double>(x.i * y.i);
          }
        return number(type, sum);
      });
    }
}

TEST(Form, OuterProductHasNoReductionAxes) {
  Fixture f;
  const Value a = f.input({3}), b = f.input({2});
  f.expect(f.builder.dot(a, b, {}),
           [&](const Point& p) { return number(DataType::float32, f.at(a, {p[0]}).f * f.at(b, {p[1]}).f); });
}

struct ConvolutionCase {
  int64_t groups, channels, multiplier;  // channels per group, outputs per group
};

TEST(Form, Convolution) {
  const std::vector<ConvolutionCase> cases = {{1, 3, 2}, {4, 1, 1}, {3, 1, 2},
                                              {2, 3, 2}, {2, 3, 1}, {1, 1, 1}};
  for (size_t round = 0; round < 60; ++round) {
    const ConvolutionCase& c = cases[round % cases.size()];
    Fixture f;
    f.random.seed(static_cast<unsigned>(round));
    const int64_t kh = f.pick(1, 3), kw = f.pick(1, 3);
    ConvolutionAttributes a;
    for (int d = 0; d < 2; ++d) {
      a.strides.push_back(f.pick(1, 3));
      a.dilations.push_back(f.pick(1, 2));
      a.pad_low.push_back(f.pick(-1, 2));
      a.pad_high.push_back(f.pick(-1, 2));
    }
    a.groups = c.groups;
    const int64_t height = f.pick(7, 9), width = f.pick(7, 9);
    const Value x = f.input({2, c.groups * c.channels, height, width});
    const Value w = f.input({c.groups * c.multiplier, c.channels, kh, kw});
    f.expect(f.builder.convolution(x, w, a), [&](const Point& p) {
      double sum = 0;
      for (int64_t i = 0; i < kh; ++i)
        for (int64_t j = 0; j < kw; ++j)
          for (int64_t ic = 0; ic < c.channels; ++ic) {
            const int64_t h = p[2] * a.strides[0] + i * a.dilations[0] - a.pad_low[0];
            const int64_t v = p[3] * a.strides[1] + j * a.dilations[1] - a.pad_low[1];
            if (h < 0 || h >= height || v < 0 || v >= width) continue;
            const int64_t channel = p[1] / c.multiplier * c.channels + ic;
            sum += f.at(x, {p[0], channel, h, v}).f * f.at(w, {p[1], ic, i, j}).f;
          }
      return number(DataType::float32, sum);
    });
  }
}

TEST(Form, ConvolutionChannelsOfGroups) {
  Fixture f;
  const ConvolutionAttributes depthwise{{1}, {1}, {0}, {0}, 4};
  const Value x = f.input({1, 4, 5});
  const IndexExpr plain =
      form_in(f, f.builder.convolution(x, f.input({4, 1, 3}), depthwise)).reads[0].index[1];
  EXPECT_EQ(plain.linear, (LinearIndex{0, {{1, 1}}}));
  EXPECT_TRUE(plain.quasi.empty());
  const Form doubled = form_in(f, f.builder.convolution(x, f.input({8, 1, 3}), depthwise));
  ASSERT_EQ(doubled.reads[0].index[1].quasi.size(), 1u);
  EXPECT_EQ(doubled.reads[0].index[1].quasi[0].divisor, Dim(2));
  EXPECT_TRUE(doubled.reads[0].guards.empty());
  // The axes of the reduction: taps, then the channels of the group even where there is one.
  EXPECT_EQ(doubled.axes.size(), 5u);
}

TEST(Form, ConvolutionGuardsOnlyWhatPaddingReaches) {
  Fixture f;
  // The last window of a stride of 2 over 6 elements ends before the padding at the end.
  const ConvolutionAttributes a{{2, 1}, {1, 1}, {0, 1}, {1, 1}, 1};
  const Value y = f.builder.convolution(f.input({1, 1, 6, 6}), f.input({1, 1, 2, 3}), a);
  const Form form = form_in(f, y);
  ASSERT_EQ(form.reads[0].guards.size(), 1u);
  EXPECT_EQ(form.reads[0].guards[0].expr, form.reads[0].index[3]);
}

TEST(Form, WindowReduce) {
  for (unsigned round = 0; round < 60; ++round) {
    Fixture f;
    f.random.seed(round);
    WindowReduceAttributes a;
    a.combine = round % 2 ? Combine::max : Combine::sum;
    for (int d = 0; d < 2; ++d) {
      a.window.push_back(f.pick(1, 3));
      a.strides.push_back(f.pick(1, 3));
      a.dilations.push_back(f.pick(1, 2));
      a.pad_low.push_back(f.pick(-1, 1));
      a.pad_high.push_back(f.pick(-1, 2));
    }
    const int64_t height = f.pick(6, 9), width = f.pick(6, 9);
    const Value x = f.input({2, height, width});
    f.expect(f.builder.window_reduce(x, a), [&](const Point& p) {
      const bool sum = a.combine == Combine::sum;
      double value = sum ? 0 : -std::numeric_limits<double>::infinity();
      for (int64_t i = 0; i < a.window[0]; ++i)
        for (int64_t j = 0; j < a.window[1]; ++j) {
          const int64_t h = p[1] * a.strides[0] + i * a.dilations[0] - a.pad_low[0];
          const int64_t v = p[2] * a.strides[1] + j * a.dilations[1] - a.pad_low[1];
          if (h < 0 || h >= height || v < 0 || v >= width) continue;
          value = sum ? value + f.at(x, {p[0], h, v}).f : std::max(value, f.at(x, {p[0], h, v}).f);
        }
      return number(DataType::float32, value);
    });
  }
}

TEST(Form, SourcesHaveNone) {
  Fixture f;
  const Value x = f.input({2}), one = f.builder.scalar(DataType::float32, 1), d = f.builder.dim(3);
  for (const Value& v : {x, one, d}) {
    EXPECT_FALSE(has_form(f.graph, v.node));
    EXPECT_THROW(form_of(f.graph, v.node), InternalError);
  }
  EXPECT_TRUE(has_form(f.graph, f.builder.iota({DataType::int64, {3}}, 0).node));
}

TEST(Form, Cases) {
  test::run_cases("graph/form.case", [](const test::Case& c) {
    const Graph graph = parse(c.text("input"));
    return print(form_of(graph, static_cast<NodeId>(graph.size() - 1)));
  });
}

}  // namespace
}  // namespace fusewise::graph
