// Host functions against results made by hand.
#include "hostops/hostops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "numerics/scalar_op.h"

namespace fusewise::hostops {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Numbers = std::vector<int64_t>;

const float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

// An operand that owns its elements.
struct Given {
  DataType type;
  Numbers shape;
  std::vector<std::byte> bytes;

  template <class T>
  Given(DataType element, Numbers extents, const std::vector<T>& values)
      : type(element), shape(std::move(extents)), bytes(values.size() * sizeof(T)) {
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  }
};
Given floats(Numbers shape, const std::vector<float>& values) {
  return {DataType::float32, std::move(shape), values};
}
Given ints(Numbers shape, const Numbers& values) { return {DataType::int64, std::move(shape), values}; }

// Keeps what a function delivers; results have room for `room` bytes each.
class Kept final : public Receiver {
 public:
  explicit Kept(size_t room) : room_(room) {}
  void bind(std::span<const int64_t> given) override {
    EXPECT_FALSE(std::exchange(bound_, true));
    sizes.assign(given.begin(), given.end());
  }
  std::byte* result(size_t index) override {
    EXPECT_TRUE(bound_);
    if (results.size() <= index) results.resize(index + 1);
    results[index].resize(room_);
    return results[index].data();
  }
  template <class T = int64_t>
  std::vector<T> values(size_t index, size_t count) const {
    std::vector<T> result(count);
    if (count > 0) std::memcpy(result.data(), results.at(index).data(), count * sizeof(T));
    return result;
  }
  Numbers sizes;
  std::vector<std::vector<std::byte>> results;

 private:
  size_t room_;
  bool bound_ = false;
};

Kept run(Function function, const std::vector<Given>& given, Numbers parameters = {},
         Scratch* shared = nullptr) {
  std::vector<Operand> operands;
  for (const Given& g : given) operands.push_back({g.type, g.shape, g.bytes.data()});
  Kept kept(4096);
  Scratch own;
  call(function, operands, parameters, kept, shared ? *shared : own);
  return kept;
}

TEST(Names, AreSortedAndFound) {
  for (int i = 0; i < 5; ++i) {
    const auto function = static_cast<Function>(i);
    EXPECT_EQ(function_of(name_of(function)), function);
    if (i > 0) {
      EXPECT_LT(name_of(static_cast<Function>(i - 1)), name_of(function));
    }
  }
  EXPECT_FALSE(function_of("no such function"));
}

TEST(NonZero, PositionsInRowMajorOrder) {
  const Kept kept = run(Function::non_zero, {floats({2, 3}, {0, 1, -0.0f, nan_value, 0, -2})});
  EXPECT_THAT(kept.sizes, ElementsAre(3));
  EXPECT_THAT(kept.values(0, 6), ElementsAre(0, 1, 1, 1, 0, 2));
}

TEST(NonZero, EveryTypeAndEmpty) {
  EXPECT_THAT(run(Function::non_zero, {{DataType::boolean, {3}, std::vector<uint8_t>{1, 0, 1}}}).values(0, 2),
              ElementsAre(0, 2));
  EXPECT_THAT(run(Function::non_zero, {{DataType::float16, {3}, std::vector<uint16_t>{0x8000, 0, 1}}}).sizes,
              ElementsAre(1));
  EXPECT_THAT(run(Function::non_zero, {floats({0, 4}, {})}).sizes, ElementsAre(0));
  EXPECT_THAT(run(Function::non_zero, {ints({1}, {7})}).values(0, 1), ElementsAre(0));
}

TEST(ReadSizes, RefusesNegativeOnes) {
  const Kept kept = run(Function::read_sizes, {{DataType::int32, {2}, std::vector<int32_t>{3, 0}}});
  EXPECT_THAT(kept.sizes, ElementsAre(3, 0));
  EXPECT_THAT(kept.values(0, 2), ElementsAre(3, 0));
  EXPECT_THROW(run(Function::read_sizes, {ints({}, {-1})}), UserError);
}

TEST(TopK, LargestAndSmallest) {
  const Given x = floats({2, 4}, {3, 1, 3, 2, -1, -inf, inf, 0});
  const Kept largest = run(Function::top_k, {x}, {3, 1, 1});
  EXPECT_THAT(largest.sizes, IsEmpty());
  EXPECT_THAT(largest.values<float>(0, 6), ElementsAre(3, 3, 2, inf, 0, -1));
  EXPECT_THAT(largest.values(1, 6), ElementsAre(0, 2, 3, 2, 3, 0));
  const Kept smallest = run(Function::top_k, {x}, {2, 0, 1});
  EXPECT_THAT(smallest.values<float>(0, 4), ElementsAre(1, 2, -inf, -1));
  EXPECT_THAT(smallest.values(1, 4), ElementsAre(1, 3, 1, 0));
}

TEST(TopK, UnsortedKeepsTheOrderOfTheOperand) {
  const Kept kept = run(Function::top_k, {ints({5}, {1, 9, 3, 8, 7})}, {3, 1, 0});
  EXPECT_THAT(kept.values(0, 3), ElementsAre(9, 8, 7));
  EXPECT_THAT(kept.values(1, 3), ElementsAre(1, 3, 4));
}

TEST(TopK, NaNIsGreatestAndZerosAreEqual) {
  const Given x = floats({5}, {1, nan_value, 0.0f, -0.0f, nan_value});
  EXPECT_THAT(run(Function::top_k, {x}, {5, 1, 1}).values(1, 5), ElementsAre(1, 4, 0, 2, 3));
  EXPECT_THAT(run(Function::top_k, {x}, {5, 0, 1}).values(1, 5), ElementsAre(2, 3, 0, 1, 4));
}

TEST(TopK, NothingAndTooMuch) {
  EXPECT_NO_THROW(run(Function::top_k, {floats({2, 3}, std::vector<float>(6))}, {0, 1, 1}));
  EXPECT_NO_THROW(run(Function::top_k, {floats({0, 3}, {})}, {2, 1, 1}));
  EXPECT_THROW(run(Function::top_k, {floats({2}, {1, 2})}, {3, 1, 1}), InternalError);
}

TEST(Unique, SortedAndInOrderOfOccurrence) {
  const Given x = ints({6}, {2, 1, 1, 3, 4, 3});
  const Kept sorted = run(Function::unique, {x}, {1});
  EXPECT_THAT(sorted.sizes, ElementsAre(4));
  EXPECT_THAT(sorted.values(0, 4), ElementsAre(1, 0, 3, 4));
  EXPECT_THAT(sorted.values(1, 6), ElementsAre(1, 0, 0, 2, 3, 2));
  EXPECT_THAT(sorted.values(2, 4), ElementsAre(2, 1, 2, 1));
  const Kept found = run(Function::unique, {x}, {0});
  EXPECT_THAT(found.values(0, 4), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(found.values(1, 6), ElementsAre(0, 1, 1, 2, 3, 2));
  EXPECT_THAT(found.values(2, 4), ElementsAre(1, 2, 2, 1));
}

TEST(Unique, RowsNaNAndEmpty) {
  const Kept rows = run(Function::unique, {floats({3, 2}, {1, 0, 0, 5, 1, -0.0f})}, {1});
  EXPECT_THAT(rows.sizes, ElementsAre(2));
  EXPECT_THAT(rows.values(0, 2), ElementsAre(1, 0));
  EXPECT_THAT(rows.values(1, 3), ElementsAre(1, 0, 1));
  EXPECT_THAT(run(Function::unique, {floats({3}, {nan_value, 1, nan_value})}, {1}).sizes, ElementsAre(2));
  EXPECT_THAT(run(Function::unique, {floats({0}, {})}, {1}).sizes, ElementsAre(0));
  EXPECT_THAT(run(Function::unique, {floats({3, 0}, {})}, {1}).sizes, ElementsAre(1));
}

std::vector<Given> boxes(const std::vector<float>& corners, const std::vector<float>& scores, int64_t most,
                         float overlap, float least) {
  const auto count = static_cast<int64_t>(scores.size());
  return {floats({1, count, 4}, corners), floats({1, 1, count}, scores), ints({}, {most}),
          floats({}, {overlap}), floats({}, {least})};
}
const std::vector<float> three = {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 10, 1, 11};

TEST(NonMaxSuppression, DropsWhatOverlaps) {
  const Kept kept = run(Function::non_max_suppression, boxes(three, {0.5f, 0.9f, 0.7f}, 10, 0.5f, 0), {0, 1});
  EXPECT_THAT(kept.sizes, ElementsAre(2));
  EXPECT_THAT(kept.values(0, 6), ElementsAre(0, 0, 1, 0, 0, 2));
}

TEST(NonMaxSuppression, LimitsAndThresholds) {
  EXPECT_THAT(run(Function::non_max_suppression, boxes(three, {0.5f, 0.9f, 0.7f}, 1, 0.5f, 0), {0, 1}).sizes,
              ElementsAre(1));
  EXPECT_THAT(run(Function::non_max_suppression, boxes(three, {0.5f, 0.9f, 0.7f}, 0, 0.5f, 0), {0, 1}).sizes,
              ElementsAre(0));
  EXPECT_THAT(
      run(Function::non_max_suppression, boxes(three, {0.5f, 0.9f, 0.7f}, 9, 0.95f, 0.6f), {0, 1}).sizes,
      ElementsAre(2));
  // Without the threshold a score of -1 counts.
  EXPECT_THAT(run(Function::non_max_suppression, boxes(three, {-1, 0.9f, 0.7f}, 9, 1, 0), {0, 0}).sizes,
              ElementsAre(3));
  EXPECT_THROW(run(Function::non_max_suppression, boxes(three, {1, 1, 1}, 9, 1.5f, 0), {0, 1}), UserError);
}

TEST(NonMaxSuppression, CentresFlippedCornersAndTies) {
  const std::vector<float> centred = {0.5f, 0.5f, 1, 1, 0.6f, 0.5f, 1, 1};
  EXPECT_THAT(run(Function::non_max_suppression, boxes(centred, {1, 2}, 9, 0.5f, 0), {1, 1}).values(0, 3),
              ElementsAre(0, 0, 1));
  const std::vector<float> flipped = {1, 1, 0, 0, 0, 0, 1, 1};
  EXPECT_THAT(run(Function::non_max_suppression, boxes(flipped, {1, 1}, 9, 0.5f, 0), {0, 1}).values(0, 3),
              ElementsAre(0, 0, 0));
  // Boxes without an area overlap nothing.
  EXPECT_THAT(
      run(Function::non_max_suppression, boxes({0, 0, 0, 0, 0, 0, 0, 0}, {1, 1}, 9, 0, 0), {0, 1}).sizes,
      ElementsAre(2));
}

TEST(Calls, ShareScratchAndCheckOperands) {
  Scratch scratch;
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(run(Function::unique, {ints({3}, {5, 5, 1})}, {1}, &scratch).sizes, ElementsAre(2));
  EXPECT_THROW(run(Function::non_zero, {}), InternalError);
}

}  // namespace
}  // namespace fusewise::hostops
