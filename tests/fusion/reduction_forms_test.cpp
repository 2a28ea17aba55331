// Which form of a reduction the planner chooses: parts where there are few blocks and threads to spare, one pass where
// rows do not fit a cache, neither where it does not pay or the order is fixed.
#include "fusion/tiles/reduction_forms.h"

#include "fusion/evaluate.h"
#include "fusion/plan_json.h"
#include "planner_testing.h"

namespace fusewise::fusion {
namespace {

constexpr ReductionOrder free_order = {schedule::free_block, 16};

PlanOptions options_for(int threads, ReductionOrder order = free_order) {
  PlanOptions options = test_options(FusionMode::on, threads);
  options.order = order;
  return options;
}

struct Forms {
  int partial = 0, carried = 0, regions = 0;
  friend bool operator==(const Forms&, const Forms&) = default;
};
Forms forms_of(const FusionPlan& plan) {
  Forms forms;
  for (const PlannedRegion& region : plan.regions) {
    ++forms.regions;
    for (const schedule::StageChoice& s : region.schedule.stages) {
      forms.partial += s.partial ? 1 : 0;
      forms.carried += s.reuse == schedule::Reuse::carry ? 1 : 0;
    }
  }
  return forms;
}

Graph softmax_of(int64_t rows, int64_t length) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({rows, length}));
  source(b, "Softmax", "soft");
  b.output(softmax(b, x), "y");
  return graph;
}

TEST(ReductionForms, OneLongRowRunsInParts) {
  const Graph graph = softmax_of(1, 262144);
  const FusionPlan plan = make_plan(graph, options_for(4));
  EXPECT_GE(forms_of(plan).partial, 1);
  expect_valid(graph, plan);
  PlanOptions options = options_for(4);
  options.constraints = constraints_from_json(graph, to_json_text(graph, plan), options.machine);
  const FusionPlan again = make_plan(graph, options);
  ASSERT_EQ(again.regions.size(), plan.regions.size());
  for (size_t r = 0; r < plan.regions.size(); ++r)
    EXPECT_TRUE(again.regions[r].schedule == plan.regions[r].schedule);
}

TEST(ReductionForms, AFixedOrderKeepsItsPasses) {
  const Forms forms = forms_of(make_plan(softmax_of(1, 262144), options_for(4, {})));
  EXPECT_EQ(forms.partial + forms.carried, 0);
}

TEST(ReductionForms, OneThreadNeedsNoParts) {
  EXPECT_EQ(forms_of(make_plan(softmax_of(1, 262144), options_for(1))).partial, 0);
}

TEST(ReductionForms, RowsBeyondTheCachesRunInOnePass) {
  const Graph graph = softmax_of(8, 4194304);
  const PlanOptions options = options_for(1);
  const PlanContext context = make_context(graph, options, {});
  graph::Region region;
  for (NodeId n = 0; n < graph.size(); ++n)
    if (graph::has_form(graph, n)) region.nodes.push_back(n);
  region.outputs = {graph.outputs[0].value};
  Evaluator evaluator(context);
  const Evaluated& evaluated = evaluator.evaluate(region);
  ASSERT_TRUE(evaluated.verdict.allowed()) << evaluated.verdict.code;
  int carried = 0;
  for (const schedule::StageChoice& s : evaluated.schedule.stages)
    carried += s.reuse == schedule::Reuse::carry ? 1 : 0;
  EXPECT_EQ(carried, 1);
  EXPECT_LT(evaluated.estimate.scratch_bytes, options.machine.l2_bytes);
}

TEST(ReductionForms, ShortRowsStayAsTheyAre) {
  for (int threads : {1, 4})
    EXPECT_EQ(forms_of(make_plan(softmax_of(4096, 512), options_for(threads))), (Forms{0, 0, 1}));
}

TEST(ReductionForms, FewResultsOfManyElements) {
  const auto plan_of = [](Shape shape, std::vector<int> axes) {
    Graph graph;
    GraphBuilder b(graph);
    const Value x = b.input("x", f32(shape));
    const Value half = b.scalar(DataType::float32, 0.5);
    b.output(b.map_broadcast(ScalarOp::mul, {b.reduce(x, Combine::sum, axes), half}), "y");
    return forms_of(make_plan(graph, options_for(4)));
  };
  EXPECT_EQ(plan_of({832, 832}, {0, 1}), (Forms{1, 0, 1}));
  EXPECT_EQ(plan_of({1, 524288}, {1}), (Forms{1, 0, 1}));
  EXPECT_EQ(plan_of({4096, 1024}, {1}), (Forms{0, 0, 1}));
}

}  // namespace
}  // namespace fusewise::fusion
