// Views in place: where they lie, whose memory it is, and why some stay kernels.
#include "base/error.h"
#include "fusion/choose_in_place.h"
#include "fusion/explain.h"
#include "fusion/layouts.h"
#include "fusion/plan_json.h"
#include "planner_testing.h"
#include "schedule/memory_index.h"

namespace fusewise::fusion {
namespace {

using testing::ElementsAre;

Value work(GraphBuilder& b, Value x) { return b.map(ScalarOp::exp, {x}); }

Assemblies place_all(const Graph& graph, const schedule::Layouts& layouts = {}) {
  std::set<NodeId> nodes;
  for (NodeId n = 0; n < graph.size(); ++n)
    if (graph.node(n).op == graph::Op::concat || is_movable_view(graph, n)) nodes.insert(n);
  return place_in_memory(graph, nodes, constant_only(graph), layouts);
}

void expect_at(const Graph& graph, const Assemblies& assemblies, Value v, Value host, const Dim& offset,
               const std::vector<Dim>& strides) {
  ASSERT_TRUE(assemblies.places.count(v)) << v.node;
  const Place& place = assemblies.places.at(v);
  EXPECT_TRUE(schedule::is_strided(place.memory));
  EXPECT_EQ(place.host, host);
  EXPECT_EQ(place.memory.linear.constant, offset);
  EXPECT_EQ(schedule::strides_of(place.memory, graph.type(v).shape.size()), strides);
}

TEST(Views, AreReadWhereTheirOperandsLie) {
  Graph graph;
  GraphBuilder b(graph);
  const Dim n = Dim::symbol("n");
  const Value x = b.input("x", f32({n, 24})), y = work(b, x);
  const Value rows = b.reshape(y, {n * 2, 12}), part = b.slice(y, {0, 8}, {1, 2}, {n, 6}),
              turned = b.transpose(part, {1, 0}), of_input = b.reshape(x, {n, 4, 6});
  for (Value v : {rows, turned, of_input}) b.output(work(b, v), "y" + std::to_string(v.node));
  const Assemblies assemblies = place_all(graph);
  expect_at(graph, assemblies, rows, y, 0, {12, 1});
  expect_at(graph, assemblies, part, y, 8, {24, 2});
  expect_at(graph, assemblies, turned, y, 8, {2, 24});
  expect_at(graph, assemblies, of_input, x, 0, {24, 6, 1});
  EXPECT_TRUE(assemblies.copies.empty());
  EXPECT_TRUE(assemblies.refused.empty());
  const schedule::Layouts layouts = with_places({}, graph, assemblies);
  EXPECT_FALSE(layouts.count(rows));
  EXPECT_THAT(layouts.at(turned).order, ElementsAre(1, 0));
}

// Rows that a transpose has scattered are no rows of any memory, unless the operand is written that way.
TEST(Views, OperandsAreWrittenToWhereTheViewBelongs) {
  Graph graph;
  GraphBuilder b(graph);
  const Value heads = work(b, b.input("x", f32({2, 3, 5, 4})));
  const Value turned = b.transpose(heads, {0, 2, 1, 3}), rows = b.reshape(turned, {2, 5, 12});
  b.output(work(b, rows), "y");
  const Assemblies assemblies = place_all(graph);
  expect_at(graph, assemblies, heads, rows, 0, {60, 4, 12, 1});
  expect_at(graph, assemblies, turned, rows, 0, {60, 12, 4, 1});
  EXPECT_FALSE(assemblies.places.count(rows));
  EXPECT_TRUE(assemblies.in_place(rows.node));
}

TEST(Views, OutputsAreWrittenDirectlyOrCopied) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({4, 6})), y = work(b, x);
  const Value direct = b.transpose(y, {1, 0}), of_input = b.reshape(x, {24}),
              cut = b.slice(work(b, y), {0, 0}, {1, 1}, {4, 3});
  for (Value v : {direct, of_input, cut}) b.output(v, "y" + std::to_string(v.node));
  const Assemblies assemblies = place_all(graph);
  expect_at(graph, assemblies, y, direct, 0, {1, 4});
  EXPECT_EQ(assemblies.refused.at(of_input.node).reason, "part-input");
  EXPECT_EQ(assemblies.refused.at(cut.node).reason, "view-output");
}

// The whole of a channel shuffle lies at no strides; its parts do.
TEST(Views, PartsOfAShuffledConcatenationLieInTheShuffledWhole) {
  Graph graph;
  GraphBuilder b(graph);
  const Value p = work(b, b.input("p", f32({1, 4, 3}))), q = work(b, b.input("q", f32({1, 4, 3})));
  const Value whole = b.concat({p, q}, 1);
  const Value mixed = b.reshape(b.transpose(b.reshape(whole, {1, 2, 4, 3}), {0, 2, 1, 3}), {1, 8, 3});
  b.output(work(b, mixed), "y");
  const Assemblies assemblies = place_all(graph);
  EXPECT_EQ(assemblies.places.at(p).host, mixed);
  EXPECT_EQ(assemblies.places.at(p).memory.linear.constant, Dim(0));
  EXPECT_EQ(assemblies.places.at(q).memory.linear.constant, Dim(3));
  EXPECT_EQ(schedule::strides_of(assemblies.places.at(q).memory, 3)[1], Dim(6));
  EXPECT_FALSE(schedule::is_strided(assemblies.places.at(whole).memory));
  EXPECT_TRUE(assemblies.copies.empty());
  // Somebody else reads the concatenation: it has to lie somewhere as a whole.
  b.output(work(b, whole), "z");
  const Assemblies read = place_all(graph);
  EXPECT_FALSE(read.places.count(whole));
  EXPECT_EQ(read.places.at(p).host, whole);
}

TEST(Views, WhatStandsAloneReadsInOnePiece) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({4, 6})), y = work(b, x), z = work(b, y), u = work(b, z);
  const Value rows = b.reshape(y, {24}), turned = b.transpose(z, {1, 0}),
              cut = b.slice(u, {0, 0}, {1, 1}, {4, 3});
  for (Value v : {rows, turned, cut}) b.output(b.prefix(v, {}), "y" + std::to_string(v.node));
  const Assemblies assemblies = place_all(graph);
  expect_at(graph, assemblies, rows, y, 0, {1});
  expect_at(graph, assemblies, z, turned, 0, {1, 4});
  EXPECT_FALSE(assemblies.in_place(cut.node));
}

// A slice that two kernels read is stored by neither.
TEST(Views, ASliceThatTwoKernelsReadCostsNoCopy) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({64, 256}));
  const Value product = b.matmul(x, weights(b, {256, 512}));
  const Value part = b.reshape(b.slice(product, {0, 128}, {1, 1}, {64, 256}), {64, 4, 64});
  const Value flat = b.reshape(part, {64 * 4, 64});
  b.output(b.matmul(flat, weights(b, {64, 64})), "a");
  b.output(b.matmul(b.transpose(part, {1, 0, 2}), weights(b, {4, 64, 32})), "b");
  const FusionPlan plan = make_plan(graph, test_options());
  expect_valid(graph, plan);
  for (const PlannedRegion& planned : plan.regions) {
    if (planned.once || planned.assembled) continue;
    const bool computes =
        std::any_of(planned.region.nodes.begin(), planned.region.nodes.end(),
                    [&](NodeId n) { return graph::kind_of(graph.node(n).op) != graph::Kind::view; });
    EXPECT_TRUE(computes) << "a kernel only moves elements";
  }
  EXPECT_TRUE(plan.assemblies.copies.empty());
}

TEST(Views, APlanFileKeepsThemAndTheirPrices) {
  Graph graph;
  GraphBuilder b(graph);
  source(b, "Exp", "first");
  const Value y = b.matmul(b.input("x", f32({32, 64})), weights(b, {64, 1024}));
  source(b, "Reshape", "view");
  const Value view = b.reshape(y, {1024, 32});
  source(b, "MatMul", "last");
  b.output(b.matmul(view, weights(b, {32, 48})), "y");
  PlanOptions options = test_options();
  options.constraints.assembled = {view.node};
  const FusionPlan plan = make_plan(graph, options);
  EXPECT_TRUE(plan.assemblies.in_place(view.node));
  for (const ExplainRow& row : explain_model(graph, plan))
    if (graph.model_nodes[row.to].op_type == "Reshape") {
      EXPECT_EQ(row.reason, "view");
      EXPECT_THAT(row.needs, testing::StartsWith("nothing"));
    }
  options.constraints = constraints_from_json(graph, to_json_text(graph, plan), options.machine);
  EXPECT_EQ(options.constraints.assembled, std::set<NodeId>{view.node});
  EXPECT_EQ(make_plan(graph, options).assemblies.places, plan.assemblies.places);
}

}  // namespace
}  // namespace fusewise::fusion
