// Reductions and windows against slow loops that follow the text of numerics/reduction_order.h.
#include "interpreter_testing.h"

#include <map>
#include <optional>

namespace fusewise::graph::testing {
namespace {

Scalar as_accumulator(const Scalar& x) { return convert(x, accumulator_of(x.type)); }

Scalar combine_two(Combine combine, const Scalar& a, const Scalar& b) {
  constexpr ScalarOp ops[] = {ScalarOp::add, ScalarOp::mul, ScalarOp::max, ScalarOp::min};
  const Scalar operands[] = {a, b};
  return evaluate(ops[static_cast<size_t>(combine)], operands, a.type);
}

Scalar empty_value(Combine combine, DataType type) {
  if (combine == Combine::sum) return convert({DataType::int64, 0, 0}, type);
  if (combine == Combine::product) return convert({DataType::int64, 0, 1}, type);
  const double infinity = combine == Combine::max ? -INFINITY : INFINITY;
  if (is_float(type)) return convert({DataType::float64, infinity, 0}, type);
  if (type == DataType::boolean) return {type, 0, combine == Combine::min};
  return convert({DataType::float64, infinity, 0}, type);  // saturates
}

// Blocks and lanes by name: a map from level to the block waiting there is the binary counter.
Scalar slow_reduce(Combine combine, const std::vector<Scalar>& values, DataType type) {
  if (values.empty()) return empty_value(combine, type);
  const DataType wide = accumulator_of(type);
  std::map<int, Scalar> waiting;
  for (size_t first = 0; first < values.size(); first += 512) {
    std::vector<std::optional<Scalar>> lanes(16);
    for (size_t r = first; r < std::min(values.size(), first + 512); ++r) {
      std::optional<Scalar>& lane = lanes[(r - first) % 16];
      const Scalar start = lane ? *lane : empty_value(combine, wide);
      lane = combine_two(combine, start, as_accumulator(values[r]));
    }
    for (size_t width : {8, 4, 2, 1})
      for (size_t j = 0; j < width; ++j)
        if (lanes[j + width]) lanes[j] = combine_two(combine, *lanes[j], *lanes[j + width]);
    Scalar block = *lanes[0];
    int level = 0;
    for (; waiting.count(level); ++level) {
      block = combine_two(combine, waiting[level], block);
      waiting.erase(level);
    }
    waiting[level] = block;
  }
  std::optional<Scalar> result;  // low levels hold the later blocks
  for (const auto& [level, block] : waiting) result = result ? combine_two(combine, block, *result) : block;
  return convert(*result, type);
}

constexpr Combine all_combines[] = {Combine::sum, Combine::product, Combine::max, Combine::min};

bool allowed(Combine combine, DataType type) {
  return type != DataType::boolean || combine == Combine::max || combine == Combine::min;
}

void check_reduce(const Tensor& x, Combine combine, const std::vector<int>& axes, int threads = 1) {
  const Tensor y = run_op(
      {x},
      [&](GraphBuilder& b, const std::vector<Value>& v) {
        return b.append(Op::reduce, {v[0]}, ReduceAttributes{combine, axes});
      },
      threads);
  std::vector<std::vector<Scalar>> groups(static_cast<size_t>(y.count()));
  std::vector<int64_t> kept_shape;
  const auto reduced = [&](size_t d) {
    return std::find(axes.begin(), axes.end(), static_cast<int>(d)) != axes.end();
  };
  for (size_t d = 0; d < x.shape.size(); ++d)
    if (!reduced(d)) kept_shape.push_back(x.shape[d]);
  ASSERT_EQ(y.shape, kept_shape);
  for_each_index(x.shape, [&](const std::vector<int64_t>& index, int64_t flat) {
    std::vector<int64_t> kept;
    for (size_t d = 0; d < index.size(); ++d)
      if (!reduced(d)) kept.push_back(index[d]);
    groups[static_cast<size_t>(flat_index(kept_shape, kept))].push_back(element_at(x, flat));
  });
  Tensor expected(x.element, kept_shape);
  for (size_t i = 0; i < groups.size(); ++i)
    set_element(expected, static_cast<int64_t>(i), slow_reduce(combine, groups[i], x.element));
  EXPECT_TRUE(same_tensors(y, expected))
      << "combine " << static_cast<int>(combine) << " of " << to_string(x.shape);
}

TEST(InterpreterReduce, FollowsTheStrictOrderForEveryLength) {
  std::mt19937 random(1);
  for (const int64_t n : {0, 1, 2, 7, 15, 16, 17, 31, 100, 511, 512, 513, 528, 1024, 1537, 3000, 3584})
    for (const Combine combine : all_combines)
      check_reduce(random_tensor(random, DataType::float32, {2, n}), combine, {1});
}

TEST(InterpreterReduce, EveryTypeAndAxes) {
  std::mt19937 random(2);
  for (const DataType type : all_types) {
    for (const Combine combine : all_combines) {
      if (!allowed(combine, type)) continue;
      for (const std::vector<int>& axes : {std::vector<int>{0}, {1}, {0, 2}, {1, 3}, {0, 1, 2, 3}})
        check_reduce(random_tensor(random, type, {3, 5, 1, 41}), combine, axes);
      check_reduce(random_tensor(random, type, {0, 3}), combine, {0});
      check_reduce(random_tensor(random, type, {0, 3}), combine, {1});
    }
  }
}

TEST(InterpreterReduce, SpecialValues) {
  std::mt19937 random(3);
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64})
    for (const Combine combine : all_combines)
      for (int i = 0; i < 20; ++i) check_reduce(random_tensor(random, type, {5, 6}, true), combine, {1});
  const Tensor zeros = Tensor::from<float>(DataType::float32, {2}, {-0.0f, 0.0f});
  const auto reduced = [&](Combine combine) {
    return run_op({zeros},
                  [&](GraphBuilder& b, const std::vector<Value>& v) { return b.reduce(v[0], combine, {0}); });
  };
  EXPECT_FALSE(std::signbit(reduced(Combine::max).as<float>()[0]));
  EXPECT_TRUE(std::signbit(reduced(Combine::min).as<float>()[0]));
}

TEST(InterpreterReduce, ThreadsDoNotMatter) {
  std::mt19937 random(4);
  const Tensor x = random_tensor(random, DataType::float32, {700, 300});
  const auto run = [&](int threads) {
    return run_op(
        {x}, [](GraphBuilder& b, const std::vector<Value>& v) { return b.reduce(v[0], Combine::sum, {1}); },
        threads);
  };
  EXPECT_TRUE(same_tensors(run(1), run(3)));
}

void check_window(const Tensor& x, const WindowReduceAttributes& a) {
  const Tensor y =
      run_op({x}, [&](GraphBuilder& b, const std::vector<Value>& v) { return b.window_reduce(v[0], a); });
  const size_t outer = x.shape.size() - a.window.size();
  Tensor expected(x.element, y.shape);
  for_each_index(y.shape, [&](const std::vector<int64_t>& out, int64_t flat) {
    Scalar value = empty_value(a.combine, accumulator_of(x.element));
    for_each_index(a.window, [&](const std::vector<int64_t>& tap, int64_t) {
      std::vector<int64_t> at(out);
      for (size_t d = 0; d < tap.size(); ++d) {
        at[outer + d] = out[outer + d] * a.strides[d] - a.pad_low[d] + tap[d] * a.dilations[d];
        if (at[outer + d] < 0 || at[outer + d] >= x.shape[outer + d]) return;
      }
      value = combine_two(a.combine, value, as_accumulator(element_at(x, flat_index(x.shape, at))));
    });
    set_element(expected, flat, convert(value, x.element));
  });
  EXPECT_TRUE(same_tensors(y, expected)) << to_string(x.shape);
}

TEST(InterpreterWindow, AgreesWithSlowLoops) {
  std::mt19937 random(5);
  for (const DataType type : all_types) {
    for (const Combine combine : all_combines) {
      if (!allowed(combine, type)) continue;
      check_window(random_tensor(random, type, {2, 3, 7, 6}),
                   {combine, {3, 2}, {2, 1}, {1, 2}, {1, 0}, {1, 1}});
      check_window(random_tensor(random, type, {3, 11}, true), {combine, {4}, {1}, {1}, {3}, {3}});
      check_window(random_tensor(random, type, {1, 4, 3, 5}),
                   {combine, {2, 1, 3}, {1, 2, 2}, {1, 1, 1}, {0, 0, 1}, {1, 0, 0}});
      check_window(random_tensor(random, type, {0, 5}), {combine, {2}, {1}, {1}, {0}, {0}});
      check_window(random_tensor(random, type, {2, 2}),
                   {combine, {1}, {1}, {1}, {3}, {2}});  // windows of padding only
    }
  }
}

}  // namespace
}  // namespace fusewise::graph::testing
