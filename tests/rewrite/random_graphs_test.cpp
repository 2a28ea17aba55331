// Random graphs of chains, views, reductions and constants, rewritten in strict and in default mode: strict
// results are the same bits, on numbers of every kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "graph/builder.h"
#include "rewrite/rewrite_testing.h"

namespace fusewise::rewrite {
namespace {

using graph::Graph;
using graph::GraphBuilder;
using graph::Value;

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed), b_(graph_) {}

  Graph graph() {
    const DataType types[] = {DataType::float32,  DataType::float32, DataType::float64, DataType::float16,
                              DataType::bfloat16, DataType::int8,    DataType::int32,   DataType::uint8};
    const DataType type = types[pick(std::size(types))];
    for (int i = 0; i < 2; ++i) {
      Shape shape;
      for (size_t d = 0, rank = pick(4); d < rank; ++d) shape.push_back(extent());
      values_.push_back(b_.input("x" + std::to_string(i), {type, std::move(shape)}));
    }
    for (int step = 0; step < 24; ++step) {
      graph_.model_nodes.push_back({"n" + std::to_string(step), "Op", ""});
      b_.set_source(static_cast<uint32_t>(step));
      try {
        values_.push_back(next(values_[values_.size() - 1 - std::min(pick(4), values_.size() - 1)]));
      } catch (const UserError&) {
        continue;  // this operation does not fit these operands
      }
    }
    for (size_t i = 0; i < 3; ++i)
      b_.output(values_[values_.size() - 1 - pick(values_.size())], "y" + std::to_string(i));
    b_.output(values_.back(), "y");
    return std::move(graph_);
  }

 private:
  size_t pick(size_t count) { return random_() % count; }
  Dim extent() {
    static const Dim extents[] = {1, 2, 3, 1, 5, 0};
    return pick(8) == 0 ? Dim::symbol("n") : extents[pick(std::size(extents))];
  }

  Value constant_like(Value x) {
    const graph::TensorType type = b_.type(x);
    const bool fixed = std::ranges::all_of(type.shape, [](const Dim& d) { return d.is_constant(); });
    if (pick(2) == 0 || !fixed || product(type.shape).value() > 100) {
      static constexpr double numbers[] = {0, 1, -1, 2, 0.5, -0.0, 3, INFINITY, -INFINITY, 0.1, 8};
      const double number = numbers[pick(std::size(numbers))];
      const Value scalar = is_float(type.element) ? b_.scalar(type.element, number)
                                                  : b_.scalar(type.element, static_cast<int64_t>(pick(6)));
      return b_.broadcast_to(scalar, type.shape);
    }
    const graph::Tensor data =
        testing::random_tensor(random_, type.element, graph::evaluate_shape(type.shape, {}), pick(3) == 0);
    const std::span<const std::byte> bytes = data.bytes();
    return b_.constant(type, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }

  Value partner(Value x) {
    if (pick(3) == 0) return constant_like(x);
    for (int i = 0; i < 4; ++i) {
      const Value other = values_[pick(values_.size())];
      if (b_.type(other) == b_.type(x)) return other;
    }
    return b_.broadcast_to(values_[pick(values_.size())], b_.shape(x));
  }

  Value unary(Value x) {
    static constexpr ScalarOp ops[] = {ScalarOp::neg,   ScalarOp::abs,   ScalarOp::floor, ScalarOp::ceil,
                                       ScalarOp::round, ScalarOp::exp,   ScalarOp::sqrt,  ScalarOp::tanh,
                                       ScalarOp::neg,   ScalarOp::trunc, ScalarOp::not_};
    return b_.map(ops[pick(std::size(ops))], {x});
  }
  Value binary(Value x) {
    static constexpr ScalarOp ops[] = {ScalarOp::add, ScalarOp::sub,   ScalarOp::mul, ScalarOp::div,
                                       ScalarOp::max, ScalarOp::min,   ScalarOp::pow, ScalarOp::less,
                                       ScalarOp::add, ScalarOp::equal, ScalarOp::or_, ScalarOp::and_};
    const Value y = partner(x);
    return pick(2) == 0 ? b_.map(ops[pick(std::size(ops))], {x, y})
                        : b_.map(ops[pick(std::size(ops))], {y, x});
  }
  Value select(Value x) {
    for (const Value& c : values_)
      if (b_.type(c).element == DataType::boolean && b_.shape(c) == b_.shape(x))
        return b_.map(ScalarOp::select, {c, x, partner(x)});
    return b_.map(ScalarOp::select, {b_.map(ScalarOp::less, {x, partner(x)}), x, constant_like(x)});
  }

  Value reshape(Value x) {
    Shape shape = b_.shape(x);
    if (pick(2) == 0) {
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(pick(shape.size() + 1)), Dim(1));
    } else if (shape.size() >= 2) {
      const size_t d = pick(shape.size() - 1);
      shape[d] = shape[d] * shape[d + 1];
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    }
    return b_.reshape(x, shape);
  }
  Value transpose(Value x) {
    std::vector<int> permutation(b_.shape(x).size());
    std::iota(permutation.begin(), permutation.end(), 0);
    std::ranges::shuffle(permutation, random_);
    return b_.transpose(x, permutation);
  }
  Value broadcast(Value x) {
    Shape shape = b_.shape(x);
    if (shape.size() > 4) return x;
    for (Dim& d : shape)
      if (d.is(1) && pick(2) == 0) d = 2 + static_cast<int>(pick(2));
    std::vector<int> dims(shape.size());
    std::iota(dims.begin(), dims.end(), 0);
    const size_t place = pick(shape.size() + 1);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(place), Dim(pick(2) == 0 ? 3 : 1));
    for (int& d : dims) d += static_cast<size_t>(d) >= place ? 1 : 0;
    return b_.broadcast(x, shape, dims);
  }
  Value slice(Value x) {
    Shape shape = b_.shape(x);
    std::vector<Dim> starts(shape.size(), Dim(0));
    std::vector<int64_t> steps(shape.size(), 1);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!shape[d].is_constant() || shape[d].value() < 2 || pick(2) == 0) continue;
      starts[d] = shape[d] - 1;
      steps[d] = -1;
      if (pick(2) == 0) shape[d] = shape[d] - 1;
    }
    return b_.slice(x, starts, steps, shape);
  }
  Value reduce(Value x) {
    if (b_.shape(x).empty()) return x;
    static constexpr Combine ways[] = {Combine::sum, Combine::max, Combine::min, Combine::product};
    return b_.reduce(x, ways[pick(4)], {static_cast<int>(pick(b_.shape(x).size()))}, pick(2) == 0);
  }
  Value cast(Value x) {
    static constexpr DataType types[] = {DataType::float32, DataType::int32,  DataType::float16,
                                         DataType::float64, DataType::int8,   DataType::boolean,
                                         DataType::uint8,   DataType::float32};
    return b_.cast(x, types[pick(std::size(types))]);
  }

  Value next(Value x) {
    switch (pick(14)) {
      case 0:
      case 1:
        return unary(x);
      case 2:
        return reshape(x);
      case 3:
      case 4:
        return transpose(x);
      case 5:
        return broadcast(x);
      case 6:
        return slice(x);
      case 7:
        return reduce(x);
      case 8:
        return cast(x);
      case 9:
        return select(x);
      case 10:
        return constant_like(x);
      default:
        return binary(x);
    }
  }

  std::mt19937 random_;
  Graph graph_;
  GraphBuilder b_;
  std::vector<Value> values_;
};

// Symbols may have to be equal that no random input makes equal: such graphs are few.
TEST(RandomGraphs, StrictModeKeepsEveryBit) {
  int ran = 0;
  for (unsigned seed = 1; seed <= 1500 && !::testing::Test::HasFailure(); ++seed) {
    const Graph before = Generator(seed).graph();
    graph::verify(before);
    DriverOptions options;
    options.allowed = Exactness::exact;
    ran += testing::compare_results(before, run_rewrites(before, options), Exactness::exact, seed) ? 1 : 0;
  }
  EXPECT_GT(ran, 1000);
}

TEST(RandomGraphs, EachExactRewriteKeepsEveryBit) {
  for (unsigned seed = 1; seed <= 150 && !::testing::Test::HasFailure(); ++seed) {
    const Graph before = Generator(seed).graph();
    for (const Rewrite& rewrite : rewrites())
      if (rewrite.exactness == Exactness::exact) {
        const auto [after, changed] = rewrite.apply(before, {});
        EXPECT_EQ(changed, !same_graph(before, after)) << rewrite.name << " seed " << seed;
        testing::compare_results(before, after, Exactness::exact, seed);
      }
  }
}

// Every inner value is an output too: then nothing may be taken away that somebody looks at.
TEST(RandomGraphs, InnerValuesAsOutputs) {
  for (unsigned seed = 2001; seed <= 2200 && !::testing::Test::HasFailure(); ++seed) {
    Graph before = Generator(seed).graph();
    for (graph::NodeId id = 0; id < before.size(); ++id)
      before.outputs.push_back({{id, 0}, "inner " + std::to_string(id)});
    DriverOptions options;
    options.allowed = Exactness::exact;
    testing::compare_results(before, run_rewrites(before, options), Exactness::exact, seed);
  }
}

TEST(RandomGraphs, RewritingTwiceChangesNothing) {
  for (unsigned seed = 1; seed <= 300 && !::testing::Test::HasFailure(); ++seed) {
    const Graph once = run_rewrites(Generator(seed).graph());
    DriverOptions options;
    options.observe = [&](const Step& step, const Graph& graph) {
      EXPECT_FALSE(step.changed) << step.rewrite.name << " seed " << seed << "\n"
                                 << print(once) << "becomes\n"
                                 << print(graph);
    };
    run_rewrites(once, options);
  }
}

}  // namespace
}  // namespace fusewise::rewrite
