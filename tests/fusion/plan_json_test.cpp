#include "fusion/plan_json.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "fusion/model_nodes.h"
#include "planner_testing.h"

namespace fusewise::fusion {
namespace {

using Json = nlohmann::ordered_json;

Graph model() {
  Graph graph;
  graph.name = "model";
  GraphBuilder b(graph);
  Value x = b.input("x", f32({64, 128}));
  source(b, "Gemm", "first");
  x = dense(b, x, 256);
  source(b, "Tanh", "act");
  x = b.map(ScalarOp::tanh, {x});
  source(b, "Softmax", "soft");
  x = softmax(b, x);
  source(b, "Transpose", "turn");
  x = b.transpose(x, {1, 0});
  source(b, "Gemm", "");
  b.output(dense(b, x, 32), "y");
  return graph;
}

bool equal(const FusionPlan& a, const FusionPlan& b) {
  if (a.regions.size() != b.regions.size()) return false;
  for (size_t i = 0; i < a.regions.size(); ++i)
    if (!(a.regions[i].region == b.regions[i].region) || !(a.regions[i].schedule == b.regions[i].schedule))
      return false;
  return true;
}

TEST(PlanJson, AWrittenPlanReplays) {
  const Graph graph = model();
  for (const FusionMode mode : {FusionMode::on, FusionMode::operators, FusionMode::off}) {
    PlanOptions options = test_options(mode);
    const FusionPlan plan = make_plan(graph, options);
    const std::string text = to_json_text(graph, plan);
    EXPECT_EQ(Json::parse(text).at("schema"), "fusewise.plan/1");
    options.constraints = constraints_from_json(graph, text, options.machine);
    const FusionPlan again = make_plan(graph, options);
    EXPECT_TRUE(equal(plan, again)) << static_cast<int>(mode);
    EXPECT_TRUE(again.regions.front().pinned);
    expect_valid(graph, again);
  }
}

TEST(PlanJson, AnotherMachineKeepsGroupsAndSaysSo) {
  const Graph graph = model();
  PlanOptions options = test_options();
  const std::string text = to_json_text(graph, make_plan(graph, options));
  options.machine.name = "other";
  options.constraints = constraints_from_json(graph, text, options.machine);
  ASSERT_EQ(options.constraints.notes.size(), 1u);
  EXPECT_THAT(options.constraints.notes[0], testing::HasSubstr("tiles are chosen anew"));
  EXPECT_TRUE(equal(make_plan(graph, test_options()), make_plan(graph, options)));
}

TEST(PlanJson, PinnedGroupsStayAndTheRestIsPlanned) {
  const Graph graph = model();
  PlanOptions options = test_options();
  options.constraints = constraints_from_json(
      graph,
      R"({"schema": "fusewise.plan/1", "groups": [{"members": ["act"], "pin": true}, {"members": ["soft"]}]})",
      options.machine);
  const FusionPlan plan = make_plan(graph, options);
  expect_valid(graph, plan);
  const auto pinned = std::count_if(plan.regions.begin(), plan.regions.end(),
                                    [](const PlannedRegion& r) { return r.pinned; });
  EXPECT_EQ(pinned, 1);
  const bool cut =
      std::any_of(plan.cuts.begin(), plan.cuts.end(), [](const CutEdge& c) { return c.reason == "pinned"; });
  EXPECT_TRUE(cut);
}

TEST(PlanJson, ForbidAndBarriersAreRead) {
  const Graph graph = model();
  PlanOptions options = test_options();
  options.constraints = constraints_from_json(
      graph,
      R"({"schema": "fusewise.plan/1", "forbid": [["first", "act"]], "barriers": ["soft_out"], "max_fusions": 99})",
      options.machine);
  EXPECT_EQ(options.constraints.barriers.size(), 1u);
  EXPECT_EQ(options.constraints.most_merges, 99);
  const FusionPlan plan = make_plan(graph, options);
  const bool forbidden = std::any_of(plan.cuts.begin(), plan.cuts.end(),
                                     [](const CutEdge& c) { return c.reason == "forbidden"; });
  EXPECT_TRUE(forbidden);
}

std::string error_of(const Graph& graph, const std::string& text) {
  try {
    constraints_from_json(graph, text, test_machine());
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(PlanJson, WhatDoesNotFitIsRefusedByName) {
  const Graph graph = model();
  EXPECT_THAT(error_of(graph, "nonsense"), testing::HasSubstr("not JSON"));
  EXPECT_THAT(error_of(graph, R"({"schema": "fusewise.plan/9"})"), testing::HasSubstr("fusewise.plan/9"));
  EXPECT_THAT(error_of(graph, R"({"schema": "fusewise.plan/1", "groups": [{"name": "mine", "pin": true,
      "nodes": [{"source": 0, "name": "other", "op": "Conv"}]}]})"),
              testing::AllOf(testing::HasSubstr("mine does not fit"), testing::HasSubstr("'other'")));
  EXPECT_THAT(error_of(graph, R"({"schema": "fusewise.plan/1", "groups": [{"pin": true,
      "nodes": [{"source": 1, "name": "act", "op": "Tanh", "primitive": 7}]}]})"),
              testing::HasSubstr("number 7"));
  EXPECT_THAT(error_of(graph, R"({"schema": "fusewise.plan/1", "groups": 3})"), testing::HasSubstr("plan"));
}

TEST(PlanJson, AMovedNodeIsFoundByItsName) {
  const Graph graph = model();
  PlanOptions options = test_options();
  options.constraints = constraints_from_json(graph, R"({"schema": "fusewise.plan/1", "groups": [{"pin": true,
      "nodes": [{"source": 77, "name": "act", "op": "Tanh", "primitive": 0, "kind": "map"}]}]})",
                                              options.machine);
  ASSERT_EQ(options.constraints.groups.size(), 1u);
  EXPECT_EQ(graph.node(options.constraints.groups[0].nodes[0]).sources[0], 1u);
}

TEST(ModelNodes, NamesTensorsNumbersAndPatterns) {
  Graph graph = model();
  EXPECT_THAT(resolve_model_nodes(graph, "act"), testing::ElementsAre(1u));
  EXPECT_THAT(resolve_model_nodes(graph, "soft_out"), testing::ElementsAre(2u));
  EXPECT_THAT(resolve_model_nodes(graph, "Gemm#1"), testing::ElementsAre(4u));
  EXPECT_THAT(resolve_model_nodes(graph, "#3"), testing::ElementsAre(3u));
  EXPECT_THAT(resolve_model_nodes(graph, "?oft*"), testing::ElementsAre(2u));
  EXPECT_THROW(resolve_model_nodes(graph, "Gemm#2"), UserError);
  graph.model_nodes[1].name = graph.model_nodes[2].name = "twice";
  try {
    resolve_model_nodes(graph, "twice");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("#1 Tanh"), testing::HasSubstr("#2 Softmax")));
  }
}

}  // namespace
}  // namespace fusewise::fusion
