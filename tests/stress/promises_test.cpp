// What default mode promises: an element of a value has the same bits for all of its readers, however often and wherever
// it is computed; and the bits repeat from run to run.
#include <gtest/gtest.h>

#include <functional>

#include "graph/builder.h"
#include "graph/text.h"
#include "stress/graph_runner.h"
#include "support/random.h"
#include "support/random_graphs/random_values.h"

namespace fusewise::test {
namespace {

using compiler::Numerics;
using fusion::FusionMode;
using graph::GraphBuilder;
using graph::Tensor;
using graph::Value;

using Expression = std::function<Value(GraphBuilder&, Value)>;

// Values that a planner may store or compute again, by what computes them.
const std::vector<std::pair<const char*, Expression>>& expressions() {
  static const std::vector<std::pair<const char*, Expression>> all = {
      {"scaled",
       [](GraphBuilder& b, Value x) {
         return b.map_broadcast(ScalarOp::mul, {x, b.scalar(b.type(x).element, 1.0 / 3)});
       }},
      {"scaled_and_shifted",
       [](GraphBuilder& b, Value x) {
         const Value product = b.map_broadcast(ScalarOp::mul, {x, b.scalar(b.type(x).element, 0.7)});
         return b.map_broadcast(ScalarOp::add, {product, b.scalar(b.type(x).element, -1.3)});
       }},
      {"exponential", [](GraphBuilder& b, Value x) { return b.map(ScalarOp::exp, {x}); }},
      {"quotient",
       [](GraphBuilder& b, Value x) {
         return b.map_broadcast(ScalarOp::div, {x, b.scalar(b.type(x).element, 7.0)});
       }},
      {"normalised",
       [](GraphBuilder& b, Value x) {
         const int last = b.type(x).rank() - 1;
         const Value squares = b.reduce(b.map(ScalarOp::mul, {x, x}), Combine::sum, {last}, true);
         return b.map_broadcast(ScalarOp::div, {x, b.map(ScalarOp::sqrt, {squares})});
       }},
      {"product",
       [](GraphBuilder& b, Value x) {
         const Value gram = b.dot(x, x, {{}, {}, {1}, {1}});
         return b.dot(gram, x, {{}, {}, {1}, {0}});
       }},
      {"windowed",
       [](GraphBuilder& b, Value x) {
         graph::WindowReduceAttributes a;
         a.combine = Combine::sum;
         a.window = {3};
         a.strides = a.dilations = {1};
         a.pad_low = a.pad_high = {1};
         return b.map(ScalarOp::tanh, {b.window_reduce(x, a)});
       }},
      {"rounded", [](GraphBuilder& b, Value x) {
         const Value narrow = b.cast(b.map_broadcast(ScalarOp::mul, {x, b.scalar(b.type(x).element, 0.3)}),
                                     DataType::bfloat16);
         return b.map_broadcast(ScalarOp::mul,
                                {b.cast(narrow, b.type(x).element), b.scalar(b.type(x).element, 1.1)});
       }}};
  return all;
}

// t has several readers: its maximum along both axes, what equals it, differences of what is the same, a softmax.
GraphCase compared_with_itself(const Expression& expression, DataType type, int64_t rows, int64_t columns,
                               uint64_t seed) {
  GraphCase what;
  GraphBuilder b(what.graph);
  uint32_t source = 0;
  const auto next = [&] {
    what.graph.model_nodes.push_back({"n" + std::to_string(source), "Op", ""});
    b.set_source(source++);
  };
  next();
  const Value x = b.input("x", {type, {Dim::symbol("n"), columns}});
  what.symbols["n"] = rows;
  Random random(seed);
  Tensor data(type, {rows, columns});
  const auto size = static_cast<size_t>(bytes_of(type));
  for (size_t at = 0; at < data.bytes().size(); at += size)
    store_scalar(data.mutable_bytes().data() + at,
                 random_scalar(type, seed % 2 ? Sort::ordinary : Sort::shifted, random));
  what.inputs = {data};
  const Value t = expression(b, x);
  for (const int axis : {0, 1}) {
    next();
    const Value greatest = b.reduce(t, Combine::max, {axis}, true);
    next();
    const Value tie = b.cast(b.map_broadcast(ScalarOp::equal, {t, greatest}), DataType::float32);
    b.output(b.reduce(tie, Combine::sum, {axis}), "promise.ties." + std::to_string(axis));
    next();
    const Value below = b.map_broadcast(ScalarOp::sub, {t, greatest});
    b.output(b.reduce(below, Combine::max, {axis}), "promise.zero.peak" + std::to_string(axis));
    next();
    const Value e = b.map(ScalarOp::exp, {below});
    b.output(b.map_broadcast(ScalarOp::div, {e, b.reduce(e, Combine::sum, {axis}, true)}),
             "softmax" + std::to_string(axis));
  }
  next();
  const Value twice = b.map(ScalarOp::add, {t, t});
  next();
  const Value fourfold = b.map_broadcast(ScalarOp::mul, {t, b.scalar(type, 4.0)});
  next();
  b.output(b.map(ScalarOp::sub, {b.map(ScalarOp::add, {twice, twice}), fourfold}), "promise.zero.sum");
  next();
  const Value turned = b.transpose(t, {1, 0});
  b.output(
      b.map(ScalarOp::sub, {b.transpose(b.map(ScalarOp::neg, {turned}), {1, 0}), b.map(ScalarOp::neg, {t})}),
      "promise.zero.turned");
  return what;
}

class Promises : public testing::TestWithParam<size_t> {};

TEST_P(Promises, HoldForEveryPlan) {
  const auto& [name, expression] = expressions()[GetParam()];
  for (const DataType type : {DataType::float32, DataType::float16})
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{5, 37}, {17, 3}}) {
      const GraphCase what =
          compared_with_itself(expression, type, rows, columns, static_cast<uint64_t>(rows));
      const GraphOracle oracle(what);
      for (uint64_t plan = 0; plan <= 3; ++plan) {
        const GraphSettings settings{Numerics::default_,
                                     FusionMode::on,
                                     plan % 2 ? "x86-64-v3" : "x86-64-v4",
                                     plan % 2 ? 1 : 5,
                                     plan % 2 ? Execution::lowered : Execution::passed,
                                     plan};
        const GraphOutcome outcome = run_graph(what, oracle, settings);
        EXPECT_EQ(outcome.words, "") << name << ", " << to_text(settings) << "\n" << graph::print(what.graph);
      }
    }
}

// Machine code on threads, where fused multiply-adds and tails of vectors are; the same bits twenty times.
TEST_P(Promises, HoldForMachineCodeAndRepeat) {
  const auto& [name, expression] = expressions()[GetParam()];
  const GraphCase what = compared_with_itself(expression, DataType::float32, 61, 37, 1);
  const GraphOracle oracle(what);
  const GraphSettings random_plan{Numerics::default_, FusionMode::on, "native", 2, Execution::compiled, 1};
  EXPECT_EQ(run_graph(what, oracle, random_plan).words, "") << name;
  const GraphSettings planned{Numerics::default_, FusionMode::on, "native", 5, Execution::compiled, 0};
  EXPECT_EQ(oracle.judge(outputs_of(what, planned, 20), Numerics::default_), "") << name;
}

INSTANTIATE_TEST_SUITE_P(All, Promises, testing::Range(size_t{0}, expressions().size()),
                         [](const auto& which) { return std::string(expressions()[which.param].first); });

}  // namespace
}  // namespace fusewise::test
