#include "fusion/planner.h"

#include "base/error.h"
#include "planner_testing.h"

namespace fusewise::fusion {
namespace {

int run_regions(const FusionPlan& plan) {
  return static_cast<int>(std::count_if(plan.regions.begin(), plan.regions.end(),
                                        [](const PlannedRegion& r) { return !r.once; }));
}

TEST(Planner, SoftmaxIsOneKernel) {
  Graph graph;
  GraphBuilder b(graph);
  b.output(softmax(b, b.input("x", f32({64, 512}))), "y");
  const FusionPlan plan = make_plan(graph, test_options());
  expect_valid(graph, plan);
  EXPECT_EQ(run_regions(plan), 1);
  EXPECT_TRUE(plan.cuts.empty());
  EXPECT_GT(plan.predicted_microseconds, plan.lower_bound_microseconds);
}

TEST(Planner, NormIsOneKernelHoweverItIsWritten) {
  for (const bool swapped : {false, true}) {
    Graph graph;
    GraphBuilder b(graph);
    b.output(norm(b, b.input("x", f32({128, 768})), swapped), "y");
    const FusionPlan plan = make_plan(graph, test_options());
    expect_valid(graph, plan);
    EXPECT_EQ(run_regions(plan), 1) << swapped;
  }
}

TEST(Planner, AnEpilogueAndAResidualJoinTheirProduct) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({128, 256})), residual = b.input("r", f32({128, 256}));
  const Value y = b.map(ScalarOp::add, {dense(b, x, 256), residual});
  b.output(b.map(ScalarOp::tanh, {y}), "y");
  const FusionPlan plan = make_plan(graph, test_options());
  expect_valid(graph, plan);
  EXPECT_EQ(run_regions(plan), 1);
}

TEST(Planner, AResidualBlockOfConvolutionsIsOneKernelEach) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({1, 64, 56, 56}));
  const graph::ConvolutionAttributes same{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1};
  const auto block = [&](Value v) {
    const Value y = b.convolution(v, weights(b, {64, 64, 3, 3}), same);
    return b.map(ScalarOp::add, {y, b.broadcast(weights(b, {64}), b.shape(y), {1})});
  };
  const auto relu = [&](Value v) {
    return b.map_broadcast(ScalarOp::max, {v, b.scalar(DataType::float32, 0.0)});
  };
  b.output(relu(b.map(ScalarOp::add, {block(relu(block(x))), x})), "y");
  const FusionPlan plan = make_plan(graph, test_options());
  expect_valid(graph, plan);
  EXPECT_EQ(run_regions(plan), 2);
  ASSERT_EQ(plan.cuts.size(), 1u);
}

TEST(Planner, OffIsOneKernelPerPrimitive) {
  Graph graph;
  GraphBuilder b(graph);
  b.output(softmax(b, b.input("x", f32({8, 16}))), "y");
  const FusionPlan plan = make_plan(graph, test_options(FusionMode::off));
  expect_valid(graph, plan);
  for (const PlannedRegion& planned : plan.regions) EXPECT_EQ(planned.region.nodes.size(), 1u);
  for (const CutEdge& cut : plan.cuts) EXPECT_EQ(cut.reason, "mode");
}

TEST(Planner, OperatorsIsOneKernelPerModelOperator) {
  Graph graph;
  GraphBuilder b(graph);
  Value x = b.input("x", f32({8, 16}));
  source(b, "Softmax", "first");
  x = softmax(b, x);
  source(b, "Exp", "second");
  x = b.map(ScalarOp::exp, {x});
  source(b, "Transpose", "third");
  x = b.transpose(x, {1, 0});
  source(b, "Neg", "fourth");
  b.output(b.map(ScalarOp::neg, {x}), "y");
  const FusionPlan plan = make_plan(graph, test_options(FusionMode::operators));
  expect_valid(graph, plan);
  EXPECT_EQ(run_regions(plan), 3);
  EXPECT_EQ(plan.operators_split, 0);
}

TEST(Planner, WhatDependsOnConstantsRunsOnce) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({64, 64}));
  const Value scaled = b.map(ScalarOp::exp, {weights(b, {64, 64})});
  b.output(b.map(ScalarOp::add, {x, scaled}), "y");
  const FusionPlan plan = make_plan(graph, test_options());
  expect_valid(graph, plan);
  ASSERT_EQ(plan.regions.size(), 2u);
  EXPECT_TRUE(plan.regions[0].once);
  EXPECT_FALSE(plan.regions[1].once);
  ASSERT_EQ(plan.cuts.size(), 1u);
  EXPECT_EQ(plan.cuts[0].reason, "once");
}

TEST(Planner, RandomGraphsGiveValidPlansInEveryMode) {
  for (uint32_t seed = 0; seed < 40; ++seed)
    for (const FusionMode mode : {FusionMode::on, FusionMode::operators, FusionMode::off}) {
      const Graph graph = random_graph(seed, 25);
      SCOPED_TRACE("seed " + std::to_string(seed));
      const FusionPlan plan = make_plan(graph, test_options(mode, 2));
      expect_valid(graph, plan);
      for (const CutEdge& cut : plan.cuts) {
        EXPECT_FALSE(cut.reason.empty());
        EXPECT_FALSE(cut.detail.empty());
      }
    }
}

TEST(Planner, FusionIsNotPredictedSlowerThanNone) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Graph graph = random_graph(seed, 25);
    const double on = make_plan(graph, test_options()).predicted_microseconds;
    EXPECT_LE(on, make_plan(graph, test_options(FusionMode::off)).predicted_microseconds * 1.0001) << seed;
    EXPECT_LE(on, make_plan(graph, test_options(FusionMode::operators)).predicted_microseconds * 1.0001)
        << seed;
  }
}

bool same_regions(const FusionPlan& a, const FusionPlan& b) {
  return std::equal(a.regions.begin(), a.regions.end(), b.regions.begin(), b.regions.end(),
                    [](const PlannedRegion& x, const PlannedRegion& y) {
                      return x.region == y.region && x.schedule == y.schedule;
                    });
}

TEST(Planner, NamesDoNotMatterAndRunsRepeat) {
  Graph graph = random_graph(7, 30);
  const FusionPlan plan = make_plan(graph, test_options());
  EXPECT_TRUE(same_regions(plan, make_plan(graph, test_options())));
  for (auto& node : graph.model_nodes) node.name = "renamed" + node.name + "x";
  EXPECT_TRUE(same_regions(plan, make_plan(graph, test_options())));
}

// Two independent branches, appended in either order.
Graph branches(bool swapped) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({64, 256}));
  const auto left = [&] { return dense(b, softmax(b, x), 64); };
  const auto right = [&] { return b.map(ScalarOp::tanh, {dense(b, x, 64)}); };
  Value l, r;
  if (swapped) {
    r = right();
    l = left();
  } else {
    l = left();
    r = right();
  }
  b.output(b.map(ScalarOp::add, {l, r}), "y");
  return graph;
}

TEST(Planner, TheOrderOfIndependentNodesDoesNotMatter) {
  const auto sizes = [](const FusionPlan& plan) {
    std::multiset<size_t> result;
    for (const PlannedRegion& planned : plan.regions) result.insert(planned.region.nodes.size());
    return result;
  };
  const FusionPlan plan = make_plan(branches(false), test_options()),
                   swapped = make_plan(branches(true), test_options());
  EXPECT_EQ(sizes(plan), sizes(swapped));
  EXPECT_NEAR(plan.predicted_microseconds, swapped.predicted_microseconds,
              1e-6 * plan.predicted_microseconds);
}

TEST(Planner, RepeatedLayersArePlannedAlike) {
  Graph graph;
  GraphBuilder b(graph);
  Value x = b.input("x", f32({128, 256}));
  for (int layer = 0; layer < 6; ++layer) {
    const Value h = b.map(ScalarOp::tanh, {dense(b, norm(b, x), 1024)});
    x = b.map(ScalarOp::add, {dense(b, h, 256), x});
  }
  b.output(x, "y");
  const FusionPlan plan = make_plan(graph, test_options());
  expect_valid(graph, plan);
  EXPECT_EQ(plan.regions.size() % 6, 0u);
  std::map<std::vector<size_t>, int> sizes;
  for (size_t r = 0; r < plan.regions.size(); ++r)
    sizes[{plan.regions[r].region.nodes.size(), plan.regions[r].schedule.stages.size()}]++;
  for (const auto& [size, count] : sizes) EXPECT_EQ(count % 6, 0);
}

Graph long_chain(size_t nodes, bool all_different) {
  Graph graph;
  GraphBuilder b(graph);
  Value x = b.input("x", f32({8, 64}));
  for (int i = 0; graph.size() < nodes; ++i) {
    x = b.map(ScalarOp::exp, {b.map(ScalarOp::add, {x, x})});
    if (i % 10 == 9)
      x = b.broadcast_to(b.reduce(x, Combine::sum, {1}, true), {8, all_different ? 64 + i / 10 : 64});
  }
  b.output(x, "y");
  return graph;
}

// The time itself is what bench/scale_bench measures; regions that are looked at are what it is spent on.
TEST(Planner, LookedAtRegionsGrowWithTheGraphOrLess) {
  for (const bool all_different : {false, true}) {
    const Graph small = long_chain(5000, all_different), large = long_chain(20000, all_different);
    const FusionPlan few = make_plan(small, test_options()), many = make_plan(large, test_options());
    EXPECT_LE(static_cast<double>(many.candidates), 4.1 * static_cast<double>(few.candidates));
    EXPECT_LT(many.regions.size(), large.size() / 4);
    expect_valid(large, many);
  }
}

TEST(Planner, ForbiddenEdgesAndBarriersStayCut) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({64, 64}));
  const Value e = b.map(ScalarOp::exp, {x}), n = b.map(ScalarOp::neg, {e}), t = b.map(ScalarOp::tanh, {n});
  b.output(t, "y");
  EXPECT_EQ(make_plan(graph, test_options()).regions.size(), 1u);
  PlanOptions options = test_options();
  options.constraints.forbidden.insert({e.node, n.node});
  const FusionPlan cut = make_plan(graph, options);
  ASSERT_EQ(cut.regions.size(), 2u);
  EXPECT_EQ(cut.cuts.at(0).reason, "forbidden");
  options.constraints = {};
  options.constraints.barriers.insert(n.node);
  const FusionPlan stored = make_plan(graph, options);
  ASSERT_EQ(stored.cuts.size(), 1u);
  EXPECT_EQ(stored.cuts.at(0).reason, "barrier");
  EXPECT_EQ(stored.cuts.at(0).from, n.node);
  options.constraints = {};
  options.constraints.most_merges = 0;
  EXPECT_EQ(make_plan(graph, options).regions.size(), 3u);
}

TEST(Planner, AForcedGroupThatCannotBeOneKernelSaysWhy) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({64, 64}));
  const Value first = b.map(ScalarOp::exp, {x});
  const Value sum = b.broadcast_to(b.reduce(first, Combine::sum, {1}, true), {64, 64});
  const Value last = b.map(ScalarOp::add, {first, sum});
  b.output(last, "y");
  PlanOptions options = test_options();
  GroupConstraint group;
  group.name = "mine";
  group.nodes = {first.node, last.node};
  options.constraints.groups = {group};
  try {
    make_plan(graph, options);
    FAIL() << "a group around a node that stays outside was accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("'mine'"), testing::HasSubstr("[cycle]")));
  }
}

// Attention of several heads, each part a model node of its own.
Graph attention(int64_t rows) {
  Graph graph;
  GraphBuilder b(graph);
  const Value q = b.input("q", f32({12, rows, 64})), k = b.input("k", f32({12, rows, 64})),
              v = b.input("v", f32({12, rows, 64}));
  source(b, "MatMul", "scores");
  const Value scores = b.matmul(q, b.transpose(k, {0, 2, 1}));
  source(b, "Softmax", "softmax");
  const Value weights_of_values = softmax(b, scores);
  source(b, "MatMul", "context");
  b.output(b.matmul(weights_of_values, v), "y");
  return graph;
}

TEST(Planner, AttentionCanBeForcedIntoOneKernelWithARowTile) {
  const Graph graph = attention(256);
  PlanOptions options = test_options();
  GroupConstraint group;
  group.name = "attention";
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph::has_form(graph, id)) group.nodes.push_back(id);
  group.grid_tile = 32;
  options.constraints.groups = {group};
  const FusionPlan plan = make_plan(graph, options);
  expect_valid(graph, plan);
  ASSERT_EQ(plan.regions.size(), 1u);
  EXPECT_TRUE(plan.regions[0].pinned);
  const auto& loops = plan.regions[0].schedule.stages[0].loops;
  EXPECT_TRUE(
      std::any_of(loops.begin(), loops.end(), [](const schedule::LoopChoice& l) { return l.tile == 32; }));
}

}  // namespace
}  // namespace fusewise::fusion
