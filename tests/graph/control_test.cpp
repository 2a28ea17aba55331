// Loops and branches in both interpreters, the verifier, and what looks into bodies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/error.h"
#include "graph/body_builder.h"
#include "graph/interpreter/double_interpreter.h"
#include "graph/interpreter/interpreter.h"
#include "graph/shape_rules.h"
#include "graph/statistics.h"
#include "graph/text.h"
#include "graph/verifier.h"

namespace fusewise::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return Tensor::from(DataType::float32, std::move(shape), values);
}
Tensor flag(uint8_t value) { return Tensor::from(DataType::boolean, {}, std::vector<uint8_t>{value}); }
Tensor number(int64_t value) { return Tensor::from(DataType::int64, {}, std::vector<int64_t>{value}); }
std::vector<float> values(const Tensor& tensor) {
  const auto elements = tensor.as<float>();
  return {elements.begin(), elements.end()};
}

// s' = s + x; stacks s backwards and i forwards.
constexpr const char* sums = R"(
%0 = input index=0 name="x" : float32[n]
%1 = input index=1 name="s" : float32[]
%2 = loop %1, %0 trips=[n] counted=0 conditional=0 carried=1 scanned=[-1] stacked=[-1, 1] : float32[], float32[n], int64[n]
body "step" {
  %0 = input index=0 name="i" : int64[]
  %1 = input index=1 name="s" : float32[]
  %2 = input index=2 name="x" : float32[]
  %3 = map %1, %2 op=add : float32[]
  output %3 "s"
  output %1 "before"
  output %0 "i"
}
%3 = result %2 : float32[]
%4 = result %2.1 : float32[n]
%5 = result %2.2 : int64[n]
output %3 "s"
output %4 "before"
output %5 "i"
)";

TEST(Loop, ScansAndStacksBothWays) {
  const Graph graph = parse(sums);
  verify(graph);
  const auto y = interpret(graph, std::vector<Tensor>{floats({3}, {1, 2, 4}), floats({}, {10})});
  EXPECT_THAT(values(y[0]), ElementsAre(17));
  EXPECT_THAT(values(y[1]), ElementsAre(16, 14, 10));  // by place: the last iteration is at 0
  EXPECT_THAT(std::vector<int64_t>(y[2].as<int64_t>().begin(), y[2].as<int64_t>().end()),
              ElementsAre(0, 1, 2));
}

TEST(Loop, WithoutIterationsHandsItsStateOn) {
  const auto y = interpret(parse(sums), std::vector<Tensor>{floats({0}, {}), floats({}, {10})});
  EXPECT_THAT(values(y[0]), ElementsAre(10));
  EXPECT_EQ(y[1].shape, std::vector<int64_t>{0});
}

TEST(Loop, TheBoundsHoldItsResults) {
  const std::vector<Tensor> inputs = {floats({4}, {0.1F, 1e8F, -1e8F, 0.3F}), floats({}, {0})};
  const auto bounded = interpret_bounded(parse(sums), inputs);
  const auto exact = interpret(parse(sums), inputs);
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_TRUE(worst_deviation(bounded[i], exact[i]).within()) << i;
  EXPECT_GT(bounded[0].bound.as<double>()[0], 0);
}

constexpr const char* halves = R"(
constant 0 "half" : float32[] = 0.5
%0 = input index=0 name="most" : int64[]
%1 = input index=1 name="start" : boolean[]
%2 = input index=2 name="x" : float32[]
%3 = constant data=0 : float32[]
%4 = loop %0, %1, %2, %3 trips=[] counted=1 conditional=1 carried=1 scanned=[] stacked=[] : float32[]
body "step" {
  constant 0 "one" : float32[] = 1
  %0 = input index=0 name="i" : int64[]
  %1 = input index=1 name="x" : float32[]
  %2 = input index=2 name="half" : float32[]
  %3 = constant data=0 : float32[]
  %4 = map %1, %2 op=mul : float32[]
  %5 = map %4, %3 op=greater : boolean[]
  output %5 "goes on"
  output %4 "x"
}
%5 = result %4 : float32[]
output %5 "y"
)";

TEST(Loop, EndsWithItsCountOrItsCondition) {
  const Graph graph = parse(halves);
  verify(graph);
  const auto run = [&](int64_t most, bool start, float x) {
    return values(
        interpret(graph, std::vector<Tensor>{number(most), flag(start ? 1 : 0), floats({}, {x})})[0])[0];
  };
  EXPECT_EQ(run(100, true, 16), 1);
  EXPECT_EQ(run(2, true, 16), 4);
  EXPECT_EQ(run(0, true, 16), 16);
  EXPECT_EQ(run(-3, true, 16), 16);
  EXPECT_EQ(run(100, false, 16), 16);
  EXPECT_EQ(run(100, true, 0.5F), 0.25F);
}

TEST(Loop, AnUncertainEndLeavesNothingKnown) {
  const std::vector<Tensor> inputs = {number(100), flag(1), floats({}, {16})};
  // 16 halves to 1 exactly as far as the bound can tell.
  const auto bounded = interpret_bounded(parse(halves), inputs);
  EXPECT_EQ(bounded[0].bound.as<double>()[0], unknown);
}

TEST(Branch, TakesOneBody) {
  const Graph graph = parse(R"(
%0 = input index=0 name="c" : boolean[]
%1 = input index=1 name="x" : float32[2]
%2 = branch %0, %1 : float32[2]
body "then" {
  %0 = input index=0 name="x" : float32[2]
  %1 = map %0 op=neg : float32[2]
  output %1 "y"
}
body "else" {
  %0 = input index=0 name="x" : float32[2]
  output %0 "y"
}
%3 = result %2 : float32[2]
output %3 "y"
)");
  const Tensor x = floats({2}, {1, 2});
  EXPECT_THAT(values(interpret(graph, std::vector<Tensor>{flag(1), x})[0]), ElementsAre(-1, -2));
  EXPECT_THAT(values(interpret(graph, std::vector<Tensor>{flag(0), x})[0]), ElementsAre(1, 2));
  const auto bounded = interpret_bounded(graph, std::vector<Tensor>{flag(0), x});
  EXPECT_EQ(bounded[0].value.as<double>()[1], 2);
}

TEST(Bodies, CountInStatistics) {
  const Graph graph = parse(sums);
  EXPECT_EQ(histogram(graph).at("map add"), 1);
  EXPECT_EQ(flops_of(graph).to_string(), "n");
  EXPECT_EQ(with_bodies(graph).size(), 2u);
}

TEST(Bodies, TheirRequirementsAreTheNodes) {
  const Graph graph = parse(R"(
%0 = input index=0 name="x" : float32[n]
%1 = input index=1 name="y" : float32[m]
%2 = loop %0, %1 trips=[3] counted=0 conditional=0 carried=1 scanned=[] stacked=[] : float32[n]
body "step" {
  %0 = input index=0 name="i" : int64[]
  %1 = input index=1 name="x" : float32[n]
  %2 = input index=2 name="y" : float32[m]
  %3 = reshape %2 : float32[n]
  %4 = map %1, %3 op=add : float32[n]
  output %4 "x"
}
%3 = result %2 : float32[n]
output %3 "y"
)");
  EXPECT_EQ(requirements_of(graph).size(), 1u);
  EXPECT_THROW(interpret(graph, std::vector<Tensor>{floats({2}, {1, 2}), floats({1}, {1})}), UserError);
}

// A loop in a loop in a loop, with one state handed through.
Graph nested(int levels) {
  Graph graph;
  GraphBuilder builder(graph);
  const TensorType type{DataType::float32, {Dim(1)}};
  Value x = builder.input("x", type);
  Body inner;
  for (int level = 0; level < levels; ++level) {
    auto body = std::make_shared<Graph>();
    GraphBuilder b(*body);
    b.input("i", {DataType::int64, {}});
    const Value before = b.input("x", type);
    LoopAttributes loop;
    loop.trips = 1;
    loop.carried = 1;
    b.output(inner ? b.control(Op::loop, {before}, loop, {inner})[0] : b.map(ScalarOp::neg, {before}), "x");
    inner = body;
  }
  LoopAttributes loop;
  loop.trips = 1;
  loop.carried = 1;
  x = builder.control(Op::loop, {x}, loop, {inner})[0];
  builder.output(x, "y");
  return graph;
}

TEST(Bodies, AreNestedToALimit) {
  const Graph deep = nested(deepest_body);
  verify(deep);
  EXPECT_EQ(print(parse(print(deep))), print(deep));
  EXPECT_THAT(values(interpret(deep, std::vector<Tensor>{floats({1}, {2})})[0]), ElementsAre(-2));
  const Graph deeper = nested(deepest_body + 1);
  EXPECT_THROW(verify(deeper), InternalError);
  try {
    parse(print(deeper));
    ADD_FAILURE() << "it is parsed";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nested deeper"));
  }
}

TEST(Bodies, ShareConstantsAndCaptureTheRest) {
  Graph graph;
  GraphBuilder builder(graph);
  const Value x = builder.input("x", {DataType::float32, {Dim(2)}});
  const Value two = builder.scalar(DataType::float32, 2);
  BodyBuilder then_body(builder, "then"), else_body(builder, "else");
  GraphBuilder& b = then_body.builder();
  then_body.output(b.map_broadcast(ScalarOp::mul, {then_body.capture(x), then_body.capture(two)}), "y");
  else_body.output(else_body.capture(x), "y");
  const Value c = builder.input("c", {DataType::boolean, {}});
  builder.output(append_branch(builder, c, then_body, else_body)[0], "y");
  verify(graph);
  EXPECT_EQ(graph.node(c.node + 1).operands.size(), 2u);
  EXPECT_EQ(graph.node(c.node + 1).bodies[0]->constants.size(), 1u);
  EXPECT_THAT(values(interpret(graph, std::vector<Tensor>{floats({2}, {1, 3}), flag(1)})[0]),
              ElementsAre(2, 6));
}

}  // namespace
}  // namespace fusewise::graph
