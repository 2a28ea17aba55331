// If, Loop and Scan against values worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/error.h"
#include "graph/text.h"
#include "import/run_model.h"

namespace fusewise::import_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Body = std::shared_ptr<OnnxGraphBuilder>;

OnnxTensor boolean(const std::string& name, bool value) {
  return onnx_tensor(name, DataType::boolean, {}, {std::byte{value ? uint8_t{1} : uint8_t{0}}});
}
Tensor flag(bool value) {
  return Tensor::from(DataType::boolean, {}, std::vector<uint8_t>{value ? uint8_t{1} : uint8_t{0}});
}

// A loop's body with its two first inputs, whose condition is the one that it gets.
Body loop_body() {
  auto body = std::make_shared<OnnxGraphBuilder>();
  body->input("i", DataType::int64, {});
  body->input("goes_on", DataType::boolean, {});
  return body;
}

void add_loop(OnnxBuilder& model, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs, const Body& body) {
  model.nodes.push_back({"loop", "Loop", "", inputs, outputs, {{"body", body}}});
  for (const std::string& name : outputs) model.output_without_shape(name, DataType::float32);
}

std::string message(const OnnxBuilder& model) {
  try {
    imported(model);
  } catch (const UnsupportedError& error) {
    return error.what();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// s = s + x[i] with the parent's x and initializer; stacks s, the counter and an outer value.
TEST(Loop, ReadsOuterValuesAndStacksThem) {
  OnnxBuilder model(17);
  model.input("x", DataType::float32, {std::string("n")});
  model.floats("start", {}, {10});
  model.floats("scale", {}, {2});
  model.node("Shape", {"x"}, {}, "shape");
  const Body body = loop_body();
  body->input("s", DataType::float32, {});
  // Not in order, and with a name that is used outside as well.
  body->node("Add", {"s", "scaled"}, {}, "shape");
  body->node("Mul", {"element", "scale"}, {}, "scaled");
  body->node("Gather", {"x", "i"}, {}, "element");
  body->output_without_shape("goes_on", DataType::boolean);
  body->output_without_shape("shape", DataType::float32);
  body->output_without_shape("shape", DataType::float32);
  body->output_without_shape("i", DataType::int64);
  body->output_without_shape("scale", DataType::float32);
  model.node("Squeeze", {"shape"}, {}, "count");
  add_loop(model, {"count", "", "start"}, {"last", "sums", "counters", "scales"}, body);
  const auto y = run(model, {floats({3}, {1, 2, 3})});
  EXPECT_THAT(values(y[0]), ElementsAre(22));
  EXPECT_THAT(values(y[1]), ElementsAre(12, 16, 22));
  EXPECT_THAT(values<int64_t>(y[2]), ElementsAre(0, 1, 2));
  EXPECT_THAT(values(y[3]), ElementsAre(2, 2, 2));
  EXPECT_EQ(run(model, {floats({0}, {})})[1].shape, std::vector<int64_t>{0});
}

// What a framework makes of `while i < n: x = x * 2`.
TEST(Loop, AConditionThatSaysTheCountOnceMoreIsIdle) {
  OnnxBuilder model(17);
  model.input("x", DataType::float32, {std::string("n"), int64_t{2}});
  model.ints("zero", {}, {0});
  model.ints("one", {}, {1});
  model.node("Shape", {"x"}, {{"end", 1}}, "shape");
  model.node("Squeeze", {"shape"}, {}, "n");
  model.node("Less", {"zero", "n"}, {}, "begins");
  const Body body = loop_body();
  body->input("j", DataType::int64, {});
  body->input("m", DataType::int64, {});
  body->node("Add", {"j", "one"}, {}, "next");
  body->node("Less", {"next", "m"}, {}, "inside");
  body->node("Less", {"i", "n"}, {}, "counted");
  body->node("And", {"inside", "counted"}, {}, "both");
  body->node("Gather", {"x", "j"}, {}, "row");
  body->output_without_shape("both", DataType::boolean);
  body->output_without_shape("next", DataType::int64);
  body->output_without_shape("m", DataType::int64);
  body->output_without_shape("row", DataType::float32);
  add_loop(model, {"n", "begins", "zero", "n"}, {"j_last", "m_last", "rows"}, body);
  const graph::Graph graph = imported(model);
  EXPECT_THAT(graph::print(graph), HasSubstr("conditional=0"));
  const auto y = run(model, {ramp({3, 2})});
  EXPECT_THAT(values(y[2]), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values<int64_t>(y[0]), ElementsAre(3));
}

// One iteration less than the count: nothing may be assumed.
TEST(Loop, AConditionThatEndsItEarlierIsNotIdle) {
  OnnxBuilder model(17);
  model.input("x", DataType::float32, {std::string("n")});
  model.ints("two", {}, {2});
  model.floats("start", {}, {1});
  model.node("Shape", {"x"}, {}, "shape");
  model.node("Squeeze", {"shape"}, {}, "n");
  const Body body = loop_body();
  body->input("s", DataType::float32, {});
  body->node("Add", {"i", "two"}, {}, "after_next");
  body->node("Less", {"after_next", "n"}, {}, "inside");
  body->node("Add", {"s", "s"}, {}, "t");
  body->output_without_shape("inside", DataType::boolean);
  body->output_without_shape("t", DataType::float32);
  add_loop(model, {"n", "", "start"}, {"last"}, body);
  EXPECT_THAT(graph::print(imported(model)), HasSubstr("conditional=1"));
  EXPECT_THAT(values(run(model, {ramp({5})})[0]), ElementsAre(16));  // after i = 3: 5 < 5 fails
}

TEST(Loop, OfDataEndsWhereTheDataSays) {
  OnnxBuilder model(17);
  model.input("count", DataType::int64, {int64_t{1}});
  model.input("begins", DataType::boolean, {});
  model.input("x", DataType::float32, {int64_t{2}});
  model.floats("limit", {}, {100});
  const Body body = loop_body();
  body->input("s", DataType::float32, {int64_t{2}});
  body->node("Add", {"s", "s"}, {}, "t");
  body->node("ReduceSum", {"t"}, {{"keepdims", 0}}, "sum");
  body->node("Less", {"sum", "limit"}, {}, "small");
  body->output_without_shape("small", DataType::boolean);
  body->output_without_shape("t", DataType::float32);
  add_loop(model, {"count", "begins", "x"}, {"y"}, body);
  const auto result = [&](int64_t count, bool begins) {
    return values(run(model, {ints({1}, {count}), flag(begins), floats({2}, {1, 2})})[0])[0];
  };
  EXPECT_EQ(result(3, true), 8);
  EXPECT_EQ(result(100, true), 64);
  EXPECT_EQ(result(0, true), 1);
  EXPECT_EQ(result(3, false), 1);
}

TEST(Loop, AConditionThatIsConstant) {
  for (const bool goes_on : {false, true}) {
    OnnxBuilder model(17);
    model.input("x", DataType::float32, {int64_t{1}});
    model.ints("count", {}, {3});
    const Body body = loop_body();
    body->initializer(boolean("constant", goes_on));
    body->input("s", DataType::float32, {int64_t{1}});
    body->node("Add", {"s", "s"}, {}, "t");
    body->output_without_shape("constant", DataType::boolean);
    body->output_without_shape("t", DataType::float32);
    body->output_without_shape("s", DataType::float32);
    add_loop(model, {"count", "", "x"}, {"y", "all"}, body);
    const auto y = run(model, {floats({1}, {1})});
    EXPECT_THAT(values(y[0]), ElementsAre(goes_on ? 8 : 2));
    EXPECT_EQ(y[1].shape, (std::vector<int64_t>{goes_on ? 3 : 1, 1}));
  }
}

TEST(Loop, WhatIsNotThereYetSaysSo) {
  OnnxBuilder model(17);
  model.input("count", DataType::int64, {});
  model.input("x", DataType::float32, {int64_t{1}});
  const Body body = loop_body();
  body->input("s", DataType::float32, {int64_t{1}});
  body->output_without_shape("goes_on", DataType::boolean);
  body->output_without_shape("s", DataType::float32);
  body->output_without_shape("s", DataType::float32);
  add_loop(model, {"count", "", "x"}, {"y", "all"}, body);
  EXPECT_THAT(message(model), HasSubstr("number of iterations that depends on data"));

  OnnxBuilder growing(17);
  growing.input("x", DataType::float32, {int64_t{1}});
  growing.ints("count", {}, {3});
  const Body longer = loop_body();
  longer->input("s", DataType::float32, {std::string("m")});
  longer->node("Concat", {"s", "s"}, {{"axis", 0}}, "t");
  longer->output_without_shape("goes_on", DataType::boolean);
  longer->output_without_shape("t", DataType::float32);
  add_loop(growing, {"count", "", "x"}, {"y"}, longer);
  EXPECT_THAT(message(growing), HasSubstr("begins with shape [1] and goes on with [2]"));
}

TEST(If, InsideALoopReadsBothGraphsAround) {
  OnnxBuilder model(17);
  model.input("x", DataType::float32, {int64_t{2}});
  model.ints("count", {}, {4});
  model.ints("two", {}, {2});
  model.ints("zero", {}, {0});
  const Body body = loop_body(), even = std::make_shared<OnnxGraphBuilder>(),
             odd = std::make_shared<OnnxGraphBuilder>();
  body->input("s", DataType::float32, {int64_t{2}});
  even->node("Add", {"s", "x"}, {}, "t");
  even->output_without_shape("t", DataType::float32);
  odd->floats("minus", {}, {-1});
  odd->node("Mul", {"s", "minus"}, {}, "t");
  odd->output_without_shape("t", DataType::float32);
  body->node("Mod", {"i", "two"}, {}, "rest");
  body->node("Equal", {"rest", "zero"}, {}, "is_even");
  body->node("If", {"is_even"}, {{"then_branch", even}, {"else_branch", odd}}, "t");
  body->output_without_shape("goes_on", DataType::boolean);
  body->output_without_shape("t", DataType::float32);
  add_loop(model, {"count", "", "x"}, {"y"}, body);
  // x, 2x, -2x, -x, x
  EXPECT_THAT(values(run(model, {floats({2}, {1, 3})})[0]), ElementsAre(1, 3));
}

TEST(If, ABodyMayBeAnOuterValueAlone) {
  OnnxBuilder model(17);
  model.input("c", DataType::boolean, {int64_t{1}});
  model.input("x", DataType::float32, {int64_t{2}});
  model.floats("w", {2}, {5, 6});
  const Body outer = std::make_shared<OnnxGraphBuilder>(), weights = std::make_shared<OnnxGraphBuilder>();
  outer->output_without_shape("x", DataType::float32);
  weights->output_without_shape("w", DataType::float32);
  model.node("If", {"c"}, {{"then_branch", outer}, {"else_branch", weights}}, "y");
  model.output_without_shape("y", DataType::float32);
  const auto taken = [&](uint8_t c) {
    return values(
        run(model, {Tensor::from(DataType::boolean, {1}, std::vector<uint8_t>{c}), floats({2}, {1, 2})})[0]);
  };
  EXPECT_THAT(taken(1), ElementsAre(1, 2));
  EXPECT_THAT(taken(0), ElementsAre(5, 6));
}

TEST(Scan, AlongAnyAxisEitherWay) {
  OnnxBuilder model(17);
  model.input("s", DataType::float32, {int64_t{2}});
  model.input("x", DataType::float32, {int64_t{2}, std::string("n")});
  const Body body = std::make_shared<OnnxGraphBuilder>();
  body->input("a", DataType::float32, {int64_t{2}});
  body->input("v", DataType::float32, {int64_t{2}});
  body->node("Add", {"a", "v"}, {}, "sum");
  body->node("Identity", {"sum"}, {}, "copy");
  body->output_without_shape("sum", DataType::float32);
  body->output_without_shape("copy", DataType::float32);
  const std::vector<int64_t> one = {1}, minus_one = {-1};
  model.nodes.push_back({"scan",
                         "Scan",
                         "",
                         {"s", "x"},
                         {"last", "all"},
                         {{"body", body},
                          {"num_scan_inputs", 1},
                          {"scan_input_axes", OnnxAttributeValue(minus_one)},
                          {"scan_input_directions", OnnxAttributeValue(one)},
                          {"scan_output_axes", OnnxAttributeValue(one)},
                          {"scan_output_directions", OnnxAttributeValue(one)}}});
  for (const char* name : {"last", "all"}) model.output_without_shape(name, DataType::float32);
  // Columns (1, 4), (2, 5), (3, 6), from the last one.
  const auto y = run(model, {floats({2}, {10, 20}), floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_THAT(values(y[0]), ElementsAre(16, 35));
  EXPECT_EQ(y[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_THAT(values(y[1]), ElementsAre(16, 15, 13, 35, 31, 26));
}

}  // namespace
}  // namespace fusewise::import_test
