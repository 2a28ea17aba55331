// Maps after maps: composed index maps lead to the element that one map after the other leads to, and divisions that
// undo each other go.
#include "graph/form_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fusewise::graph {
namespace {

std::vector<Axis> axes_of(const Shape& shape) {
  std::vector<Axis> axes;
  for (const Dim& d : shape) axes.push_back({d, false});
  return axes;
}

// A value of that shape in an array of such strides.
IndexExpr strided(const std::vector<Dim>& strides, const Dim& offset = 0) {
  IndexExpr index;
  index.linear.constant = offset;
  for (size_t d = 0; d < strides.size(); ++d) add_term(index.linear, static_cast<int>(d), strides[d]);
  return index;
}

IndexExpr dense(const Shape& shape) {
  std::vector<Dim> strides(shape.size());
  Dim stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (!shape[d].is(1)) strides[d] = stride;
    stride = stride * shape[d];
  }
  return strided(strides);
}

int64_t at(const LinearIndex& linear, const std::vector<int64_t>& point, const SymbolValues& symbols) {
  int64_t sum = linear.constant.evaluate(symbols);
  for (const AxisTerm& t : linear.terms)
    sum += t.coefficient.evaluate(symbols) * point[static_cast<size_t>(t.axis)];
  return sum;
}

int64_t at(const IndexExpr& index, const std::vector<int64_t>& point, const SymbolValues& symbols) {
  int64_t sum = at(index.linear, point, symbols);
  for (const QuasiTerm& q : index.quasi) {
    const int64_t inner = at(q.inner, point, symbols), divisor = q.divisor.evaluate(symbols);
    int64_t part = inner / divisor - (inner % divisor < 0 ? 1 : 0);
    if (const int64_t modulus = q.modulus.evaluate(symbols); modulus != 0)
      part = (part % modulus + modulus) % modulus;
    sum += q.coefficient.evaluate(symbols) * part;
  }
  return sum;
}

template <class F>
void each_point(const Shape& shape, const SymbolValues& symbols, F&& f) {
  std::vector<int64_t> extents;
  for (const Dim& d : shape) extents.push_back(d.evaluate(symbols));
  if (std::count(extents.begin(), extents.end(), 0)) return;
  std::vector<int64_t> point(shape.size(), 0);
  for (;;) {
    f(point);
    size_t d = point.size();
    while (d > 0 && ++point[d - 1] == extents[d - 1]) point[--d] = 0;
    if (d == 0) return;
  }
}

// What a value of that shape is as rows of dense memory.
IndexExpr reshaped(const IndexExpr& memory, const Shape& from, const Shape& to) {
  const std::optional<IndexExpr> index = substitute(memory, reshape_index(from, axes_of(to)), axes_of(to));
  EXPECT_TRUE(index);
  return index.value_or(IndexExpr{});
}

TEST(FormIndex, AReshapeOfDenseMemoryIsDense) {
  const Dim n = Dim::symbol("n"), batch = Dim::symbol("batch");
  const std::pair<Shape, Shape> pairs[] = {{{1, 32, 10240}, {1, 320, 32, 32}},
                                           {{1, 320, 32, 32}, {1, 32, 10240}},
                                           {{6, 35}, {14, 15}},
                                           {{2, 3, 4, 5}, {120}},
                                           {{120}, {2, 3, 4, 5}},
                                           {{7, 1, 11}, {77, 1}},
                                           {{batch, n, 768}, {batch, n, 12, 64}},
                                           {{batch, n, 12, 64}, {batch * n, 768}},
                                           {{batch * n, 768}, {batch, n, 12, 64}},
                                           {{4, 6, 10}, {8, 3, 2, 5}},
                                           {{0, 4}, {0, 2, 2}}};
  for (const auto& [from, to] : pairs)
    EXPECT_EQ(reshaped(dense(from), from, to), dense(to)) << to_string(from) << " as " << to_string(to);
}

// The elements of one dimension lie one after the other as before; the others may lie anywhere.
TEST(FormIndex, AReshapeOfAPartSplitsWhatIsContiguous) {
  // Columns 8 ... 15 of rows of 24.
  const IndexExpr part = strided({24, 1}, 8);
  EXPECT_EQ(reshaped(part, {5, 8}, {5, 2, 4}), strided({24, 4, 1}, 8));
  EXPECT_FALSE(reshaped(part, {5, 8}, {40}).quasi.empty());
  EXPECT_FALSE(reshaped(part, {5, 8}, {10, 4}).quasi.empty());
  // A transposed matrix has no rows.
  EXPECT_FALSE(reshaped(strided({1, 5}), {5, 8}, {40}).quasi.empty());
}

// A channel shuffle: where the part from `start` on of a dimension of 12 lies, which is split in 2 x 6 and transposed.
TEST(FormIndex, APartOfASplitDimensionIsLinear) {
  const IndexExpr whole = reshaped(strided({1, 2}), {2, 6}, {12});  // element [g, c] at g + 2 * c
  EXPECT_FALSE(whole.quasi.empty());
  for (const auto& [start, extent, linear] : {std::tuple<int64_t, int64_t, bool>{0, 6, true},
                                              {6, 6, true},
                                              {7, 5, true},
                                              {2, 3, true},
                                              {4, 4, false}}) {
    IndexExpr from_start;
    from_start.linear.constant = start;
    add_term(from_start.linear, 0);
    const auto part = substitute(whole, {from_start}, axes_of({extent}));
    ASSERT_TRUE(part);
    EXPECT_EQ(part->quasi.empty(), linear) << start;
    if (linear) {
      EXPECT_EQ(*part, strided({2}, start % 6 * 2 + start / 6)) << start;
    }
  }
}

TEST(FormIndex, RandomMapsLeadToTheSameElements) {
  std::mt19937 random(5);
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  int linear = 0;
  for (int i = 0; i < 400; ++i) {
    // Factors, grouped in two ways.
    std::vector<Dim> factors;
    SymbolValues symbols;
    for (int64_t k = 2 + pick(4); k > 0; --k) {
      if (pick(8) == 0) {
        const std::string name = "s" + std::to_string(k);
        symbols[name] = pick(4);
        factors.push_back(Dim::symbol(name));
      } else {
        factors.push_back(pick(20) == 0 ? 0 : 1 + pick(4));
      }
    }
    const auto grouped = [&] {
      Shape shape = {1};
      for (const Dim& f : factors) {
        if (pick(2)) shape.push_back(1);
        shape.back() = shape.back() * f;
      }
      return shape;
    };
    const Shape first = grouped(), second = grouped(), third = grouped();
    IndexExpr memory = dense(first);
    if (pick(2)) {
      std::vector<Dim> strides;
      for (size_t d = 0; d < first.size(); ++d) strides.emplace_back(pick(50));
      memory = strided(strides, pick(9));
    }
    const std::vector<IndexExpr> to_first = reshape_index(first, axes_of(second)),
                                 to_second = reshape_index(second, axes_of(third));
    const auto once = substitute(memory, to_first, axes_of(second));
    ASSERT_TRUE(once);
    linear += once->quasi.empty() ? 1 : 0;
    const auto twice = substitute(*once, to_second, axes_of(third));
    each_point(third, symbols, [&](const std::vector<int64_t>& point) {
      std::vector<int64_t> in_second, in_first;
      for (const IndexExpr& e : to_second) in_second.push_back(at(e, point, symbols));
      for (const IndexExpr& e : to_first) in_first.push_back(at(e, in_second, symbols));
      const int64_t wanted = at(memory, in_first, symbols);
      ASSERT_EQ(at(*once, in_second, symbols), wanted) << i;
      if (twice) {
        ASSERT_EQ(at(*twice, point, symbols), wanted) << i;
      }
    });
  }
  EXPECT_GT(linear, 100);
}

}  // namespace
}  // namespace fusewise::graph
