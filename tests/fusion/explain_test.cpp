#include "fusion/explain.h"

#include <nlohmann/json.hpp>

#include "fusion/model_nodes.h"
#include "planner_testing.h"

namespace fusewise::fusion {
namespace {

// 0 Gemm -> 1 Tanh -> 2 Softmax, and 3 Exp beside them.
Graph model() {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({512, 512}));
  source(b, "Gemm", "gemm");
  const Value g = dense(b, x, 4096);
  source(b, "Tanh", "tanh");
  const Value t = b.map(ScalarOp::tanh, {g});
  source(b, "Softmax", "softmax");
  b.output(softmax(b, t), "y");
  source(b, "Exp", "exp");
  b.output(b.map(ScalarOp::exp, {x}), "z");
  return graph;
}

TEST(Explain, EveryEdgeOfTheModelHasARow) {
  const Graph graph = model();
  const FusionPlan plan = make_plan(graph, test_options());
  const std::vector<ExplainRow> rows = explain_model(graph, plan);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].from, 0u);
  EXPECT_EQ(rows[0].to, 1u);
  EXPECT_TRUE(rows[0].fused);
  EXPECT_GT(rows[0].ms_now, 0);
  EXPECT_FALSE(rows[1].fused);
  EXPECT_EQ(rows[1].reason, "cost");
  ASSERT_TRUE(rows[1].ms_if_fused.has_value());
  EXPECT_GT(*rows[1].ms_if_fused, rows[1].ms_now * 0.97);
  EXPECT_FALSE(rows[1].needs.empty());
  EXPECT_EQ(explain_node(graph, plan, 2).size(), 1u);
  const auto json = nlohmann::json::parse(explain_to_json_text(graph, rows));
  for (const char* field : {"from", "to", "fused", "reason", "ms_now", "ms_if_fused", "needs"})
    EXPECT_TRUE(json["rows"][0].contains(field));
  EXPECT_EQ(json["rows"][1]["to"], "softmax");
}

TEST(Explain, PairsArePricedTheOtherWay) {
  const Graph graph = model();
  const PlanOptions options = test_options();
  const FusionPlan plan = make_plan(graph, options);
  const ExplainRow fused = explain_pair(graph, plan, options, 0, 1);
  EXPECT_TRUE(fused.fused);
  ASSERT_TRUE(fused.ms_if_apart.has_value());
  EXPECT_GT(*fused.ms_if_apart, fused.ms_now);
  const ExplainRow beside = explain_pair(graph, plan, options, 2, 3);
  EXPECT_FALSE(beside.fused);
  EXPECT_FALSE(beside.reason.empty());
  EXPECT_THAT(describe_kernels(graph, plan, options, 0),
              testing::AllOf(testing::HasSubstr("Gemm 'gemm', Tanh 'tanh'"), testing::HasSubstr("bound by")));
}

TEST(Explain, PreparedConstantsAreNoReason) {
  Graph graph;
  GraphBuilder b(graph);
  source(b, "Softmax", "softmax");
  const Value s = softmax(b, b.input("x", f32({512, 512})));
  source(b, "Gemm", "gemm");
  const Value scaled = b.map_broadcast(ScalarOp::mul, {weights(b, {512, 4096}), weights(b, {4096})});
  b.output(b.matmul(s, scaled), "y");
  const PlanOptions options = test_options(FusionMode::operators);
  const FusionPlan plan = make_plan(graph, options);
  ASSERT_TRUE(
      std::any_of(plan.regions.begin(), plan.regions.end(), [](const PlannedRegion& r) { return r.once; }));
  EXPECT_NE(explain_pair(graph, plan, options, 0, 1).reason, "once");
}

TEST(Explain, SharedConstantsNameNoKernel) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({8, 8}));
  source(b, "Min", "first");
  const Value bound = b.broadcast_to(b.scalar(DataType::float32, 6.0), {8, 8});
  const Value first = b.map(ScalarOp::min, {x, bound});
  source(b, "Min", "second");
  const Value second = b.map(ScalarOp::min, {b.map(ScalarOp::exp, {first}), bound});
  b.output(second, "y");
  EXPECT_EQ(model_nodes_of(graph, {{bound.node, second.node}, {second}}), std::vector<uint32_t>{1});
  EXPECT_EQ(model_nodes_of(graph, {{bound.node, first.node, second.node}, {second}}),
            (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(model_nodes_of(graph, {{bound.node}, {bound}}), std::vector<uint32_t>{0});
}

TEST(Explain, OffNamesTheMode) {
  const Graph graph = model();
  const std::vector<ExplainRow> rows = explain_model(graph, make_plan(graph, test_options(FusionMode::off)));
  for (const ExplainRow& row : rows) EXPECT_EQ(row.reason, "mode");
}

}  // namespace
}  // namespace fusewise::fusion
