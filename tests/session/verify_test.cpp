#include "session/verify.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusewise::session {
namespace {

using graph::BoundedTensor;
using graph::Tensor;
using testing::HasSubstr;

constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan = std::numeric_limits<float>::quiet_NaN();

Tensor floats(const std::vector<float>& values) {
  return Tensor::from<float>(DataType::float32, {static_cast<int64_t>(values.size())}, values);
}
Tensor doubles(const std::vector<double>& values) {
  return Tensor::from<double>(DataType::float64, {static_cast<int64_t>(values.size())}, values);
}
BoundedTensor bounded(const std::vector<double>& values, const std::vector<double>& bounds) {
  return {DataType::float32, doubles(values), doubles(bounds)};
}

TEST(CompareExactly, EveryBitCountsButThoseOfNan) {
  const Tensor expected = floats({1, -0.0f, nan, infinity, 0});
  EXPECT_TRUE(compare_exactly("y", expected, expected).passed);
  EXPECT_TRUE(compare_exactly("y", floats({nan}), floats({-nan})).passed);
  const std::vector<std::vector<float>> mutations = {{std::nextafter(1.0f, 2.0f), -0.0f, nan, infinity, 0},
                                                     {1, 0, nan, infinity, 0},
                                                     {1, -0.0f, 1, infinity, 0},
                                                     {1, -0.0f, nan, -infinity, 0},
                                                     {1, -0.0f, nan, infinity, nan},
                                                     {1, -0.0f, nan, infinity, 1e-45f}};
  const int64_t places[] = {0, 1, 2, 3, 4, 4};
  for (size_t i = 0; i < mutations.size(); ++i) {
    const OutputVerdict verdict = compare_exactly("y", expected, floats(mutations[i]));
    EXPECT_FALSE(verdict.passed) << i;
    EXPECT_EQ(verdict.differing, 1) << i;
    EXPECT_EQ(verdict.worst_index, places[i]) << i;
  }
}

TEST(CompareExactly, IntegersAndEmptyTensors) {
  const Tensor big = Tensor::from<int64_t>(DataType::int64, {2}, {INT64_MAX, 7});
  EXPECT_TRUE(compare_exactly("y", big, big).passed);
  // As doubles these are equal.
  EXPECT_FALSE(
      compare_exactly("y", big, Tensor::from<int64_t>(DataType::int64, {2}, {INT64_MAX - 1, 7})).passed);
  const OutputVerdict empty = compare_exactly("y", floats({}), floats({}));
  EXPECT_TRUE(empty.passed);
  EXPECT_EQ(empty.worst_index, -1);
}

TEST(CompareExactly, TypeAndShapeMustAgree) {
  const OutputVerdict type = compare_exactly("y", doubles({1}), floats({1}));
  EXPECT_FALSE(type.passed);
  EXPECT_THAT(type.note, HasSubstr("float32[1] and should be float64[1]"));
  EXPECT_FALSE(compare_exactly("y", floats({1, 2}), floats({1})).passed);
}

TEST(CompareBounded, InsideAndOutside) {
  const BoundedTensor expected = bounded({1, 2, 0}, {0.5, 0.25, 0});
  const Tensor reference = floats({1, 2, 0});
  const OutputVerdict inside = compare_bounded("y", expected, reference, floats({1.25f, 2.25f, 0}));
  EXPECT_TRUE(inside.passed);
  EXPECT_EQ(inside.max_share, 1);
  EXPECT_EQ(inside.worst_index, 1);
  EXPECT_EQ(inside.median_share, 1);
  EXPECT_EQ(inside.max_absolute, 0.25);
  EXPECT_EQ(inside.max_relative, 0.25);
  const OutputVerdict outside = compare_bounded("y", expected, reference, floats({1, 2.5f, 0}));
  EXPECT_FALSE(outside.passed);
  EXPECT_EQ(outside.worst_index, 1);
  EXPECT_EQ(outside.actual, 2.5);
  EXPECT_EQ(outside.expected, 2);
  EXPECT_EQ(outside.tolerance, 0.25);
  EXPECT_FALSE(compare_bounded("y", expected, reference, floats({1, 2, 1e-30f})).passed) << "a bound of 0";
  EXPECT_FALSE(compare_bounded("y", expected, reference, floats({nan, 2, 0})).passed);
  EXPECT_FALSE(compare_bounded("y", expected, reference, floats({1, infinity, 0})).passed);
}

TEST(CompareBounded, CertainInfinitiesAndNan) {
  const BoundedTensor expected = bounded({INFINITY, NAN}, {0, 0});
  const Tensor reference = floats({infinity, nan});
  EXPECT_TRUE(compare_bounded("y", expected, reference, reference).passed);
  EXPECT_FALSE(compare_bounded("y", expected, reference, floats({-infinity, nan})).passed);
  EXPECT_FALSE(compare_bounded("y", expected, reference, floats({3e38f, nan})).passed);
  EXPECT_FALSE(compare_bounded("y", expected, reference, floats({infinity, 0})).passed);
}

TEST(CompareBounded, WithoutABoundTheReferenceCounts) {
  const BoundedTensor expected = bounded({1, 0, 5}, {INFINITY, INFINITY, INFINITY});
  const Tensor reference = floats({1, 100, infinity});
  const OutputVerdict near = compare_bounded("y", expected, reference, floats({1.5f, 100.5f, 7}));
  EXPECT_TRUE(near.passed);
  EXPECT_EQ(near.unbounded, 3);
  EXPECT_FALSE(compare_bounded("y", expected, reference, floats({3, 100, infinity})).passed);
  EXPECT_FALSE(compare_bounded("y", expected, reference, floats({1, nan, infinity})).passed);
}

TEST(CompareWithin, AShareOfTheLargestMagnitude) {
  const Tensor expected = floats({100, 0, -1});
  EXPECT_TRUE(compare_within("y", expected, floats({100.5f, 0.5f, -1.5f}), 1e-2).passed);
  EXPECT_FALSE(compare_within("y", expected, floats({100, 2, -1}), 1e-2).passed);
  EXPECT_FALSE(compare_within("y", expected, floats({100, nan, -1}), 1e-2).passed);
  const Tensor integers = Tensor::from<int32_t>(DataType::int32, {2}, {1000, 0});
  EXPECT_FALSE(
      compare_within("y", integers, Tensor::from<int32_t>(DataType::int32, {2}, {1001, 0}), 1e-2).passed);
}

}  // namespace
}  // namespace fusewise::session
