// Random convolutions and dot products, and chains of sums and products with constants along random
// dimensions, in random order and with random uses: folded or not, the numbers stay.
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "rewrite/fold_scale_into_weights.h"
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
    Value x = pick(2) == 0 ? convolution() : dot();
    const int steps = 1 + pick(5);
    for (int step = 0; step < steps; ++step) {
      if (pick(8) == 0) b_.output(x, "inner " + std::to_string(step));
      const Value constant = along_random_axis(b_.shape(x));
      static constexpr ScalarOp ops[] = {ScalarOp::add, ScalarOp::sub, ScalarOp::mul, ScalarOp::mul};
      const ScalarOp op = ops[pick(4)];
      x = pick(2) == 0 ? b_.map(op, {x, constant}) : b_.map(op, {constant, x});
      if (pick(10) == 0) x = b_.map(ScalarOp::mul, {x, x});
    }
    b_.output(x, "y");
    return std::move(graph_);
  }

 private:
  static constexpr DataType f64 = DataType::float64;

  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  Value constant(std::vector<int64_t> shape) {
    const graph::Tensor data = testing::random_tensor(random_, f64, shape, false);
    return b_.constant({f64, {shape.begin(), shape.end()}}, {data.bytes().begin(), data.bytes().end()});
  }

  // Square on purpose now and then: a wrong axis then fits.
  Value convolution() {
    const int64_t groups = 1 + pick(3), channels = groups * (1 + pick(2)),
                  width = pick(2) == 0 ? channels : 1 + pick(4);
    const Value x =
        b_.input("x", {f64, {pick(2) == 0 ? Dim::symbol("n") : Dim(channels), groups * 2, width, 3}});
    return b_.convolution(x, constant({channels, 2, 1, 3}), {{1, 1}, {1, 1}, {0, 1}, {0, 1}, groups});
  }
  Value dot() {
    const int64_t rows = 1 + pick(4), inner = 1 + pick(3), columns = pick(2) == 0 ? rows : 1 + pick(4);
    if (pick(2) == 0)
      return b_.dot(b_.input("x", {f64, {2, rows, inner}}), constant({columns, 2, inner}),
                    {{0}, {1}, {2}, {2}});
    return b_.dot(constant({rows, inner, 2}), b_.input("x", {f64, {inner, columns}}), {{}, {}, {1}, {0}});
  }

  Value along_random_axis(const Shape& shape) {
    const int axis = pick(static_cast<int>(shape.size()) + 1) - 1;
    if (axis < 0) return b_.broadcast_to(b_.scalar(f64, 0.75), shape);
    const Dim& extent = shape[static_cast<size_t>(axis)];
    if (!extent.is_constant()) return b_.broadcast(constant({1}), shape, {axis});
    if (pick(3) > 0 || static_cast<size_t>(axis) + 1 == shape.size())
      return b_.broadcast(constant({extent.value()}), shape, {axis});
    return b_.broadcast(constant({extent.value(), 1}), shape, {axis, axis + 1});
  }

  std::mt19937 random_;
  Graph graph_;
  GraphBuilder b_;
};

TEST(RandomScales, FoldingKeepsTheNumbers) {
  int changed = 0;
  for (unsigned seed = 1; seed <= 1000 && !::testing::Test::HasFailure(); ++seed) {
    const Graph before = Generator(seed).graph();
    const auto [after, is_changed] = fold_scale_into_weights(before, {});
    graph::verify(after);
    EXPECT_EQ(is_changed, !same_graph(before, after));
    changed += is_changed ? 1 : 0;
    testing::expect_same_results(before, after, Exactness::changes_rounding, seed, false);
  }
  EXPECT_GT(changed, 200);
}

}  // namespace
}  // namespace fusewise::rewrite
