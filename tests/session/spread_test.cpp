#include "session/spread.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/builder.h"

namespace fusewise::session {
namespace {

using graph::BoundedTensor;
using graph::Tensor;
using testing::HasSubstr;

Tensor floats(const std::vector<float>& values) {
  return Tensor::from<float>(DataType::float32, {static_cast<int64_t>(values.size())}, values);
}
BoundedTensor exact(const std::vector<double>& values) {
  const std::vector<int64_t> shape = {static_cast<int64_t>(values.size())};
  return {DataType::float32, Tensor::from<double>(DataType::float64, shape, values),
          Tensor::from<double>(DataType::float64, shape, std::vector<double>(values.size(), INFINITY))};
}

// 1000 numbers near 1, with an error of `size` and one of `single` at the first.
std::vector<float> numbers(double size, double single = 0) {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) {
    const double error = i == 0 && single != 0 ? single : size * (i % 2 == 0 ? 1 : -1);
    values.push_back(static_cast<float>(1 + i * 1e-4 + error));
  }
  return values;
}
std::vector<double> exact_numbers() {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(1 + i * 1e-4);
  return values;
}

OutputVerdict verdict(const std::vector<float>& reference, const std::vector<float>& actual,
                      bool decides = false) {
  OutputVerdict verdict;
  verdict.passed = true;
  hold_to_spread(verdict, exact(exact_numbers()), floats(reference), floats(actual), decides);
  return verdict;
}

TEST(Spread, ErrorsOfTheReferencesSizePass) {
  const OutputVerdict same = verdict(numbers(1e-5), numbers(-1.2e-5));
  EXPECT_TRUE(same.passed);
  EXPECT_NEAR(same.spread, 1.2, 0.05);
  EXPECT_FALSE(verdict(numbers(1e-5), numbers(3e-5)).passed);
  EXPECT_THAT(verdict(numbers(1e-5), numbers(3e-5)).note,
              HasSubstr("times those that the interpreter makes"));
}

TEST(Spread, OneLargeErrorIsEnough) {
  EXPECT_TRUE(verdict(numbers(1e-5), numbers(1e-5, 3e-5)).passed);
  EXPECT_FALSE(verdict(numbers(1e-5), numbers(1e-5, 6e-5)).passed);
}

TEST(Spread, APerfectReferenceLeavesRoomForRounding) {
  EXPECT_TRUE(verdict(numbers(0), numbers(0)).passed);
  EXPECT_TRUE(verdict(numbers(0), numbers(8e-8)).passed);
  EXPECT_FALSE(verdict(numbers(0), numbers(1e-6)).passed);
}

TEST(Spread, DecisionsMayFallDifferently) {
  EXPECT_TRUE(verdict(numbers(1e-5), numbers(1e-5, 0.2), true).passed);
  EXPECT_TRUE(verdict(numbers(1e-5), numbers(1e-2), true).passed);
  EXPECT_FALSE(verdict(numbers(1e-5), numbers(0.1), true).passed);
}

TEST(Spread, AFewElementsSayLittle) {
  OutputVerdict few;
  few.passed = true;
  hold_to_spread(few, exact({1}), floats({1}), floats({1.0001f}), false);
  EXPECT_TRUE(few.passed);
  hold_to_spread(few, exact({1}), floats({1}), floats({3}), false);
  EXPECT_FALSE(few.passed);
}

TEST(Spread, WhatIsNotFiniteOrNoFloatSaysNothing) {
  OutputVerdict none;
  none.passed = true;
  hold_to_spread(none, exact({NAN, INFINITY, 1}), floats({NAN, INFINITY, 1}), floats({NAN, INFINITY, NAN}),
                 false);
  EXPECT_TRUE(none.passed);
  const Tensor integers = Tensor::from<int32_t>(DataType::int32, {1}, {5});
  BoundedTensor five = exact({5});
  five.element = DataType::int32;
  hold_to_spread(none, five, integers, Tensor::from<int32_t>(DataType::int32, {1}, {6}), false);
  EXPECT_TRUE(none.passed);
  EXPECT_EQ(none.spread, 0);
}

TEST(Spread, DecisionsOnRoundedNumbers) {
  const auto graph_with = [](bool rounded, ScalarOp op) {
    graph::Graph graph;
    graph::GraphBuilder b(graph);
    const graph::Value x = b.input("x", {DataType::float32, {4}}), z = b.input("z", {DataType::float32, {4}});
    const graph::Value number = rounded ? b.map(ScalarOp::exp, {x}) : x;
    b.output(arity_of(op) == 2 ? b.map(op, {number, z}) : b.map(op, {number}), "y");
    return graph;
  };
  EXPECT_FALSE(decides_on_rounded_numbers(graph_with(true, ScalarOp::max)));
  EXPECT_TRUE(decides_on_rounded_numbers(graph_with(true, ScalarOp::less)));
  EXPECT_TRUE(decides_on_rounded_numbers(graph_with(true, ScalarOp::round)));
  EXPECT_FALSE(decides_on_rounded_numbers(graph_with(false, ScalarOp::less)));
  EXPECT_FALSE(decides_on_rounded_numbers(graph_with(false, ScalarOp::round)));
}

}  // namespace
}  // namespace fusewise::session
