// Concatenations that are put together in place: where parts lie, what is copied and why, and when it pays.
#include "fusion/assemblies.h"

#include "base/error.h"
#include "fusion/choose_in_place.h"
#include "fusion/explain.h"
#include "fusion/layouts.h"
#include "fusion/peak_memory.h"
#include "fusion/plan_json.h"
#include "planner_testing.h"
#include "schedule/memory_index.h"

namespace fusewise::fusion {
namespace {

using testing::ElementsAre;

Assemblies place_all(const Graph& graph, const schedule::Layouts& layouts = {}) {
  std::set<NodeId> wholes;
  for (NodeId n = 0; n < graph.size(); ++n)
    if (graph.node(n).op == graph::Op::concat) wholes.insert(n);
  return place_in_memory(graph, wholes, constant_only(graph), layouts);
}

std::vector<std::string> reasons(const Assemblies& assemblies) {
  std::vector<std::string> result;
  for (const PartCopy& copy : assemblies.copies) result.push_back(copy.reason);
  return result;
}

// Where a value lies: the host, the first element, the strides.
struct At {
  Value host;
  Dim offset;
  std::vector<Dim> strides;
  friend bool operator==(const At&, const At&) = default;
};
At at(const Graph& graph, const Assemblies& assemblies, Value v) {
  const Place& place = assemblies.places.at(v);
  EXPECT_TRUE(schedule::is_strided(place.memory));
  return {place.host, place.memory.linear.constant,
          schedule::strides_of(place.memory, graph.type(v).shape.size())};
}

Value work(GraphBuilder& b, Value x) { return b.map(ScalarOp::exp, {x}); }

TEST(Assemblies, GrowingConcatenationsShareTheLastOne) {
  Graph graph;
  GraphBuilder b(graph);
  std::vector<Value> parts = {work(b, b.input("x", f32({2, 8, 5})))};
  std::vector<Value> wholes;
  for (int i = 1; i < 5; ++i) {
    parts.push_back(work(b, b.slice(parts.back(), {0, 0, 0}, {1, 1, 1}, {2, 3, 5})));
    wholes.push_back(b.concat(parts, 1));
    b.output(work(b, wholes.back()), "y" + std::to_string(i));
  }
  const Assemblies assemblies = place_all(graph);
  EXPECT_TRUE(assemblies.copies.empty());
  const Dim row = b.shape(wholes.back())[1] * 5;
  int64_t begin = 0;
  for (Value part : parts) {
    EXPECT_EQ(at(graph, assemblies, part), (At{wholes.back(), begin * 5, {row, 5, 1}}));
    begin += b.shape(part)[1].value();
  }
  for (size_t i = 0; i + 1 < wholes.size(); ++i)
    EXPECT_EQ(at(graph, assemblies, wholes[i]), (At{wholes.back(), 0, {row, 5, 1}}));
  EXPECT_FALSE(assemblies.places.count(wholes.back()));
  const schedule::Layouts layouts = with_places({}, graph, assemblies);
  EXPECT_THAT(layouts.at(parts[2]).strides, ElementsAre(b.shape(wholes.back())[1] * 5, Dim(5), Dim(1)));
}

TEST(Assemblies, WhatStandsAloneTakesAndMakesItsTensorsInOnePiece) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({4, 6})), p = work(b, x), q = b.prefix(p, {}),
              r = b.map(ScalarOp::neg, {x});
  const Value inner = b.concat({p, q, r}, 1), outer = b.concat({inner, r}, 1);
  b.output(work(b, b.prefix(inner, {})), "sums");
  b.output(work(b, outer), "y");
  const Assemblies assemblies = place_all(graph);
  EXPECT_THAT(reasons(assemblies), ElementsAre("part-alone", "part-alone", "part-shared", "part-alone"));
  EXPECT_EQ(assemblies.places.size(), 1U);
  EXPECT_EQ(assemblies.places.at(r).host, outer);
}

TEST(Assemblies, NothingIsPutWhereOnlyTheRunKnowsASize) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({8}));
  const Value found = b.host({x}, {hostops::Function::non_zero, {}, {"found"}})[0];
  const Dim n = Dim::symbol("found");
  const Value ones = b.broadcast(b.scalar(DataType::float32, 1), {n}, {}),
              rest = b.broadcast(b.scalar(DataType::float32, 2), {8 - n}, {});
  const Value longer = b.concat({work(b, x), work(b, ones)}, 0);
  const Value fixed = b.concat({work(b, ones), work(b, rest)}, 0);
  const Value known = b.concat({work(b, x), b.map(ScalarOp::neg, {x})}, 0);
  for (Value v : {found, longer, fixed, known}) b.output(v, "y" + std::to_string(v.node));
  EXPECT_EQ(b.shape(fixed), Shape{8});
  EXPECT_THAT(place_all(graph).wholes, ElementsAre(known.node));
  PlanOptions options = test_options();
  options.constraints.assembled = {longer.node};
  EXPECT_THROW(make_plan(graph, options), UnsupportedError);
}

TEST(Assemblies, AConcatenationInsideOfAnotherAddsUpItsStarts) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({4, 6}));
  const Value p = work(b, x), q = b.map(ScalarOp::neg, {x}), r = b.map(ScalarOp::abs, {b.concat({p, q}, 0)});
  const Value inner = b.concat({p, q}, 0), outer = b.concat({r, inner}, 1);
  b.output(work(b, outer), "y");
  const Assemblies assemblies = place_in_memory(graph, {inner.node, outer.node}, constant_only(graph), {});
  EXPECT_TRUE(assemblies.copies.empty());
  EXPECT_EQ(at(graph, assemblies, q), (At{outer, 4 * 12 + 6, {12, 1}}));
  EXPECT_EQ(at(graph, assemblies, inner), (At{outer, 6, {12, 1}}));
}

TEST(Assemblies, WhatSomebodyElseOwnsIsCopiedAndSaysWhy) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({3, 4})), w = weights(b, {3, 4}), p = work(b, x), q = work(b, p),
              z = b.map(ScalarOp::neg, {q}), channels = work(b, z);
  const Value first = b.concat({x, w, p, q, q, channels}, 1);
  const Value second = b.concat({z, q}, 1);
  b.output(p, "p");
  b.output(work(b, first), "y");
  b.output(second, "z");
  schedule::Layouts layouts;
  layouts[channels].order = {1, 0};
  const Assemblies assemblies = place_all(graph, layouts);
  // q lies in the later one, the second of its places.
  EXPECT_EQ(assemblies.places.at(q).host, second);
  EXPECT_THAT(reasons(assemblies), ElementsAre("part-input", "part-constant", "part-output", "part-shared",
                                               "part-shared", "part-layout"));
  EXPECT_FALSE(assemblies.places.count(x));
  EXPECT_EQ(assemblies.places.size(), 2u);
  EXPECT_EQ(assemblies.copies[2].to.memory.linear.constant, Dim(8));
}

TEST(Assemblies, AnOutputLiesInNoLargerOne) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({3, 4}));
  const Value inner = b.concat({work(b, x), b.map(ScalarOp::neg, {x})}, 1);
  const Value outer = b.concat({inner, b.map(ScalarOp::abs, {x})}, 1);
  b.output(inner, "inner");
  b.output(outer, "outer");
  const Assemblies assemblies = place_all(graph);
  EXPECT_THAT(reasons(assemblies), ElementsAre("part-output"));
  EXPECT_FALSE(assemblies.places.count(inner));
}

// Layers as DenseNet has them: normalised concatenation, two convolutions, concatenation.
Graph dense_layers(int layers, int64_t size = 28) {
  Graph graph;
  GraphBuilder b(graph);
  const graph::ConvolutionAttributes same{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
      point{{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1};
  source(b, "Conv", "stem");
  std::vector<Value> features = {
      b.convolution(b.input("x", f32({1, 16, size, size})), weights(b, {64, 16, 3, 3}), same)};
  for (int i = 0; i < layers; ++i) {
    source(b, "Concat", "cat" + std::to_string(i));
    Value v = features.size() == 1 ? features[0] : b.concat(features, 1);
    source(b, "BatchNormalization", "norm" + std::to_string(i));
    const Shape shape = b.shape(v);
    v = b.map(ScalarOp::mul, {v, b.broadcast(weights(b, {shape[1]}), shape, {1})});
    v = b.map_broadcast(ScalarOp::max, {v, b.scalar(DataType::float32, 0.0)});
    source(b, "Conv", "narrow" + std::to_string(i));
    v = b.convolution(v, weights(b, {128, shape[1], 1, 1}), point);
    source(b, "Conv", "wide" + std::to_string(i));
    features.push_back(b.convolution(v, weights(b, {32, 128, 3, 3}), same));
  }
  source(b, "Concat", "last");
  b.output(b.map(ScalarOp::tanh, {b.concat(features, 1)}), "y");
  return graph;
}

PlanOptions options_for(const Graph& graph) {
  PlanOptions options = test_options();
  options.layouts = assign_layouts(graph, options.machine, {});
  return options;
}

std::set<NodeId> concatenations(const Graph& graph) {
  std::set<NodeId> nodes;
  for (NodeId n = 0; n < graph.size(); ++n)
    if (graph.node(n).op == graph::Op::concat) nodes.insert(n);
  return nodes;
}

TEST(Assemblies, DenseLayersCopyNothing) {
  const Graph graph = dense_layers(6);
  PlanOptions options = options_for(graph);
  options.constraints.assembled = concatenations(graph);
  const FusionPlan plan = make_plan(graph, options);
  expect_valid(graph, plan);
  size_t assembled = 0;
  for (const PlannedRegion& planned : plan.regions) assembled += planned.assembled ? 1 : 0;
  EXPECT_EQ(assembled, options.constraints.assembled.size());
  EXPECT_TRUE(plan.assemblies.copies.empty());
  std::set<Value> hosts;
  for (const auto& [value, place] : plan.assemblies.places) hosts.insert(place.host);
  EXPECT_EQ(hosts.size(), 1u);
  for (const ExplainRow& row : explain_model(graph, plan))
    if (graph.model_nodes[row.to].op_type == "Concat") {
      EXPECT_EQ(row.reason, "in-place");
      EXPECT_THAT(row.needs, testing::StartsWith("nothing"));
    } else if (graph.model_nodes[row.from].op_type == "Concat") {
      EXPECT_EQ(row.reason, "assembled");
    }
}

TEST(Assemblies, ArePartOfAPlanThatIsNoDearer) {
  const Graph graph = dense_layers(6);
  const PlanOptions options = options_for(graph);
  const FusionPlan plan = make_plan(graph, options);
  expect_valid(graph, plan);
  EXPECT_FALSE(plan.assemblies.wholes.empty());
  PlanOptions apart = options;
  apart.mode = FusionMode::operators;
  EXPECT_LT(plan.predicted_microseconds, make_plan(graph, apart).predicted_microseconds);
}

TEST(Assemblies, OtherModesKeepTheirKernels) {
  const Graph graph = dense_layers(2);
  for (const FusionMode mode : {FusionMode::operators, FusionMode::off}) {
    PlanOptions options = options_for(graph);
    options.mode = mode;
    for (const PlannedRegion& planned : make_plan(graph, options).regions) EXPECT_FALSE(planned.assembled);
  }
}

TEST(Assemblies, APlanFileKeepsThem) {
  const Graph graph = dense_layers(3);
  PlanOptions options = options_for(graph);
  const FusionPlan plan = make_plan(graph, options);
  options.constraints = constraints_from_json(graph, to_json_text(graph, plan), options.machine);
  EXPECT_EQ(options.constraints.assembled, plan.assemblies.wholes);
  const FusionPlan again = make_plan(graph, options);
  ASSERT_EQ(again.regions.size(), plan.regions.size());
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    EXPECT_EQ(again.regions[r].region, plan.regions[r].region);
    EXPECT_EQ(again.regions[r].assembled, plan.regions[r].assembled);
  }
  EXPECT_EQ(again.assemblies.places, plan.assemblies.places);
  std::string wrong = to_json_text(graph, plan);
  wrong.replace(wrong.find("\"pin\""), 0, "\"assembled\": true, ");
  EXPECT_THROW(constraints_from_json(graph, wrong, options.machine), UserError);
}

// A part that is there early would keep room for all of its whole while larger things come and go.
TEST(Assemblies, DoNotRaiseThePeakOfMemory) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({64, 1024}));
  const Value early = b.map(ScalarOp::exp, {b.reduce(x, Combine::max, {1}, true)});
  Value late = x;
  for (int i = 0; i < 4; ++i) late = b.map(ScalarOp::tanh, {b.matmul(late, weights(b, {1024, 1024}))});
  b.output(b.matmul(b.concat({early, late}, 1), weights(b, {1025, 16})), "y");
  for (const Graph& tested : {graph, dense_layers(4)}) {
    const PlanOptions options = options_for(tested);
    PlanOptions off = options;
    off.mode = FusionMode::off;
    const cost::GraphFacts facts = cost::graph_facts(tested, options.machine, {});
    EXPECT_LE(peak_bytes(tested, make_plan(tested, options), facts),
              1.1 * peak_bytes(tested, make_plan(tested, off), facts));
  }
}

// A small concatenation between elementwise nodes stays inside of their kernel.
TEST(Assemblies, DoNotTakeAKernelApart) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({4, 8}));
  b.output(b.map(ScalarOp::tanh, {b.concat({work(b, x), b.map(ScalarOp::neg, {x})}, 1)}), "y");
  const FusionPlan plan = make_plan(graph, test_options());
  EXPECT_TRUE(plan.assemblies.wholes.empty());
}

}  // namespace
}  // namespace fusewise::fusion
