#include "numerics/reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace fusewise {
namespace {

float step(Combine combine, float a, float b) {
  Scalar operands[] = {{DataType::float32, a, 0}, {DataType::float32, b, 0}};
  ScalarOp op = combine == Combine::sum       ? ScalarOp::add
                : combine == Combine::product ? ScalarOp::mul
                : combine == Combine::max     ? ScalarOp::max
                                              : ScalarOp::min;
  return static_cast<float>(evaluate(op, operands, DataType::float32).f);
}

// One block from the words of the definition: lanes as lists, then the tree over those that exist.
float block_by_words(Combine combine, const std::vector<float>& elements, size_t lanes) {
  std::map<size_t, float> value;
  for (size_t r = 0; r < elements.size(); ++r) {
    size_t lane = r % lanes;
    if (!value.count(lane))
      value[lane] = combine == Combine::sum ? 0.0f + elements[r] : elements[r];
    else
      value[lane] = step(combine, value[lane], elements[r]);
  }
  for (size_t width = lanes / 2; width >= 1; width /= 2)
    for (size_t j = 0; j < width; ++j)
      if (value.count(j + width)) value[j] = step(combine, value[j], value[j + width]);
  return value[0];
}

// All blocks as a forest: the sizes of the pieces are the bits of the number of blocks, each piece a perfect tree.
float perfect_tree(Combine combine, const std::vector<float>& blocks, size_t first, size_t count) {
  if (count == 1) return blocks[first];
  float left = perfect_tree(combine, blocks, first, count / 2);
  return step(combine, left, perfect_tree(combine, blocks, first + count / 2, count / 2));
}

float by_words(Combine combine, const std::vector<float>& elements, size_t block, size_t lanes) {
  std::vector<float> blocks;
  for (size_t begin = 0; begin < elements.size(); begin += block) {
    auto first = elements.begin() + static_cast<std::ptrdiff_t>(begin);
    auto last = elements.begin() + static_cast<std::ptrdiff_t>(std::min(elements.size(), begin + block));
    blocks.push_back(block_by_words(combine, {first, last}, lanes));
  }
  std::vector<float> pieces;
  size_t first = 0;
  for (size_t size = size_t{1} << 20; size >= 1; size /= 2)
    if (blocks.size() & size) {
      pieces.push_back(perfect_tree(combine, blocks, first, size));
      first += size;
    }
  float result = pieces.back();
  for (size_t i = pieces.size() - 1; i-- > 0;) result = step(combine, pieces[i], result);
  return result;
}

TEST(Reduction, order_matches_its_words) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 100);
  for (size_t count :
       {1, 2, 3, 7, 15, 16, 17, 31, 33, 100, 511, 512, 513, 527, 1024, 1025, 1536, 2047, 3584, 5000, 9999}) {
    std::vector<float> data(count);
    for (float& x : data) x = normal(random);
    for (Combine combine : {Combine::sum, Combine::product, Combine::max, Combine::min}) {
      if (combine == Combine::product)
        for (float& x : data) x = 1 + x / 100000;
      for (auto [block, lanes] : {std::pair{512, 16}, {64, 4}, {8, 8}, {1, 1}}) {
        float got = reduce_strided(combine, data.data(), static_cast<int64_t>(count), 1, {block, lanes});
        float wanted = by_words(combine, data, static_cast<size_t>(block), static_cast<size_t>(lanes));
        EXPECT_EQ(got, wanted) << count << " " << block << " " << lanes;
      }
    }
  }
}

TEST(Reduction, order_is_not_the_sequential_one) {
  std::vector<float> data(1000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = 1.0f / static_cast<float>(i + 1);
  float sequential = 0;
  for (float x : data) sequential += x;
  EXPECT_NE(reduce_strided(Combine::sum, data.data(), 1000, 1), sequential);
}

TEST(Reduction, empty_gives_the_identity) {
  auto empty = [](Combine combine, DataType type) {
    return reduce_scalars(combine, type, 0,
                          [](int64_t) -> Scalar { throw InternalError("nothing to read"); });
  };
  for (DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64}) {
    EXPECT_EQ(empty(Combine::sum, type).f, 0);
    EXPECT_FALSE(std::signbit(empty(Combine::sum, type).f));
    EXPECT_EQ(empty(Combine::product, type).f, 1);
    EXPECT_EQ(empty(Combine::max, type).f, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(empty(Combine::min, type).f, std::numeric_limits<double>::infinity());
  }
  EXPECT_EQ(empty(Combine::max, DataType::int8).i, -128);
  EXPECT_EQ(empty(Combine::min, DataType::int8).i, 127);
  EXPECT_EQ(empty(Combine::max, DataType::uint32).i, 0);
  EXPECT_EQ(empty(Combine::min, DataType::uint64).i, -1);
  EXPECT_EQ(empty(Combine::max, DataType::int64).i, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(empty(Combine::max, DataType::boolean).i, 0);
  EXPECT_EQ(empty(Combine::min, DataType::boolean).i, 1);
}

TEST(Reduction, special_values) {
  float nan = std::nanf("");
  for (size_t place : {size_t{0}, size_t{5}, size_t{16}, size_t{600}}) {
    std::vector<float> data(700, 1);
    data[place] = nan;
    for (Combine combine : {Combine::sum, Combine::product, Combine::max, Combine::min})
      EXPECT_TRUE(std::isnan(reduce_strided(combine, data.data(), 700, 1)));
  }
  std::vector<float> zeros(20, -0.0f);
  EXPECT_FALSE(std::signbit(reduce_strided(Combine::sum, zeros.data(), 20, 1)));
  EXPECT_FALSE(std::signbit(reduce_strided(Combine::sum, zeros.data(), 1, 1)));
  EXPECT_TRUE(std::signbit(reduce_strided(Combine::max, zeros.data(), 20, 1)));
  zeros[7] = 0;
  EXPECT_FALSE(std::signbit(reduce_strided(Combine::max, zeros.data(), 20, 1)));
  EXPECT_TRUE(std::signbit(reduce_strided(Combine::min, zeros.data(), 20, 1)));
}

TEST(Reduction, integers_wrap_and_halves_accumulate_wide) {
  std::vector<int8_t> bytes(300, 100);
  EXPECT_EQ(reduce_strided(Combine::sum, bytes.data(), 300, 1), static_cast<int8_t>(30000));
  std::vector<int32_t> large(3, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(reduce_strided(Combine::product, large.data(), 3, 1), std::numeric_limits<int32_t>::max());
  auto one = [](int64_t) { return Scalar{DataType::float16, 1, 0}; };
  EXPECT_EQ(reduce_scalars(Combine::sum, DataType::float16, 5000, one).f, 5000);
  EXPECT_EQ(reduce_scalars(Combine::sum, DataType::bfloat16, 5000,
                           [](int64_t) { return Scalar{DataType::bfloat16, 1, 0}; })
                .f,
            4992);
}

TEST(Reduction, strides) {
  std::vector<double> data;
  for (int i = 0; i < 3000; ++i) data.push_back(i % 3 == 0 ? i / 3 : 1e9);
  EXPECT_EQ(reduce_strided(Combine::sum, data.data(), 1000, 3), 499500);
  EXPECT_EQ(reduce_strided(Combine::max, data.data() + 2997, 1000, -3), 999);
}

}  // namespace
}  // namespace fusewise
