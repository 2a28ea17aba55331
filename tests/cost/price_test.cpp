#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "cost/closed_form.h"
#include "cost/tree_price.h"
#include "graph/builder.h"
#include "schedule/schedule.h"
#include "schedule/tree.h"

namespace fusewise::cost {
namespace {

using graph::Graph;
using graph::GraphBuilder;
using graph::NodeId;
using graph::Value;
using schedule::Placement;
using schedule::StageChoice;

graph::TensorType f32(Shape shape) { return {DataType::float32, std::move(shape)}; }

machine::Machine a_machine() {
  machine::Machine m;
  m.name = "test";
  m.contraction_tiles = {{6, 2}};
  return m;
}

graph::Region whole_region(const Graph& graph) {
  graph::Region region;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph::has_form(graph, id)) region.nodes.push_back(id);
  for (const auto& output : graph.outputs) region.outputs.push_back(output.value);
  std::sort(region.outputs.begin(), region.outputs.end());
  return region;
}

StageChoice root_stage(const Graph& graph, NodeId node, std::vector<schedule::LoopChoice> loops, int grid,
                       int vector) {
  StageChoice s;
  s.node = node;
  s.loops = std::move(loops);
  s.grid_loops = grid;
  s.vector_axis = vector;
  s.storage.resize(graph.type({node, 0}).shape.size());
  std::iota(s.storage.begin(), s.storage.end(), 0);
  return s;
}

Estimate price(const Graph& graph, const std::vector<StageChoice>& stages, int threads = 1,
               const schedule::Layouts& layouts = {}, const machine::Machine& machine = a_machine()) {
  const schedule::RegionForms forms = schedule::region_forms(graph, whole_region(graph));
  schedule::Schedule schedule;
  schedule.stages = stages;
  const schedule::TreeResult tree = schedule::build_tree(forms, schedule, layouts);
  EXPECT_TRUE(tree.verdict.allowed()) << tree.verdict.code << ": " << tree.verdict.detail;
  if (!tree.verdict) return {};
  return price_tree(forms, tree.tree, machine, {.threads = threads, .usual = {}, .constant_bytes = 0});
}

Estimate price_map(ScalarOp op, int64_t rows, int64_t columns, int threads = 1) {
  Graph graph;
  GraphBuilder b(graph);
  const Value y = b.map(op, {b.input("x", f32({rows, columns}))});
  b.output(y, "y");
  return price(graph, {root_stage(graph, y.node, {{0, 1}, {1, 16}}, 1, 1)}, threads);
}

// Divisions by which a reshape finds its operand's dimensions undo each other where those are dense.
TEST(Price, AReshapeOfRowsIsACopy) {
  const auto price_reshape = [](const Shape& from, const Shape& to, const schedule::Layouts& layouts) {
    Graph graph;
    GraphBuilder b(graph);
    const Value y = b.reshape(b.input("x", f32(from)), to);
    b.output(y, "y");
    const int last = static_cast<int>(to.size()) - 1;
    return price(graph, {root_stage(graph, y.node, {{0, 1}, {1, 1}, {2, 1}}, 2, last)}, 1, layouts);
  };
  Graph graph;
  GraphBuilder b(graph);
  const Value y = b.map(ScalarOp::neg, {b.input("x", f32({1, 320, 32, 32}))});
  b.output(y, "y");
  const Estimate copy = price(graph, {root_stage(graph, y.node, {{0, 1}, {1, 1}, {2, 1}}, 2, 3)});
  const Estimate split = price_reshape({1, 32, 10240}, {1, 320, 32, 32}, {});
  EXPECT_NEAR(split.microseconds, copy.microseconds, copy.microseconds * 0.1);
  EXPECT_EQ(split.l1_bytes, copy.l1_bytes);
  const Estimate merged = price_reshape({1, 30, 32, 32}, {1, 1, 1, 30 * 32 * 32}, {});
  EXPECT_NEAR(merged.l1_bytes, 2 * 4 * 30 * 32 * 32, 1);
  // Channels last, every element of a row is somewhere else: dearer, but each is read once.
  const Estimate apart =
      price_reshape({1, 320, 32, 32}, {1, 32, 10, 1024}, {{Value{0, 0}, {{0, 2, 3, 1}, {}, {}}}});
  EXPECT_GT(apart.microseconds, 2 * copy.microseconds);
  EXPECT_LT(apart.microseconds, 40 * copy.microseconds);
}

TEST(Price, GrowsWithSizeAndWithWork) {
  double last = 0;
  for (const int64_t rows : {1, 7, 64, 512, 4096}) {
    const double now = price_map(ScalarOp::exp, rows, 256).microseconds;
    EXPECT_GT(now, last) << rows;
    last = now;
  }
  EXPECT_GT(price_map(ScalarOp::erf, 64, 256).microseconds, price_map(ScalarOp::exp, 64, 256).microseconds);
  EXPECT_GT(price_map(ScalarOp::exp, 64, 256).microseconds, price_map(ScalarOp::neg, 64, 256).microseconds);
}

TEST(Price, ATinyKernelIsAllDispatch) {
  const Estimate e = price_map(ScalarOp::neg, 1, 8);
  EXPECT_EQ(e.bound(), "overhead");
  EXPECT_GE(e.microseconds, a_machine().dispatch_microseconds);
}

TEST(Price, ThreadsHelpWhereThereAreTilesAndNotElsewhere) {
  EXPECT_LT(price_map(ScalarOp::exp, 512, 1024, 2).times().compute,
            0.6 * price_map(ScalarOp::exp, 512, 1024, 1).times().compute);
  EXPECT_DOUBLE_EQ(price_map(ScalarOp::exp, 1, 1024, 2).parallel_efficiency, 0.5);
  EXPECT_NEAR(price_map(ScalarOp::exp, 3, 1024, 2).parallel_efficiency, 0.75, 1e-9);
}

// Several threads have to be woken and waited for, in each phase: small work is done sooner by one, and priced so.
TEST(Price, OneThreadDoesWhatIsTooSmallForMore) {
  const machine::Machine m = a_machine();
  for (const int threads : {2, 8}) {
    const Estimate small = price_map(ScalarOp::neg, 16, 64, threads),
                   large = price_map(ScalarOp::exp, 512, 1024, threads);
    EXPECT_TRUE(small.on_one_thread());
    EXPECT_DOUBLE_EQ(small.microseconds, price_map(ScalarOp::neg, 16, 64, 1).microseconds);
    EXPECT_GT(serial_share(small, m, threads), 1);
    EXPECT_FALSE(large.on_one_thread());
    EXPECT_LT(large.microseconds, large.alone.total);
    const double share = serial_share(large, m, threads);
    EXPECT_GT(share, 0);
    EXPECT_LT(share, 0.1);
    // At that share of the work they save what they cost.
    const double saved = large.alone.total - large.together.total + fork_join_microseconds(large, m);
    EXPECT_NEAR(share * saved, fork_join_microseconds(large, m), 1e-9);
    Estimate twice = large;
    add_phase(twice, large);
    EXPECT_DOUBLE_EQ(fork_join_microseconds(twice, m), 2 * fork_join_microseconds(large, m));
    EXPECT_NEAR(twice.microseconds, 2 * large.microseconds, 1e-9);
    // A phase that one thread would do takes the others' way with them, or they its.
    add_phase(twice, small);
    EXPECT_NEAR(twice.microseconds, 2 * large.microseconds + small.together.total, 1e-9);
  }
  EXPECT_EQ(serial_share(price_map(ScalarOp::exp, 512, 1024, 1), m, 1), 0);
}

TEST(Price, TailsWasteLanes) {
  EXPECT_DOUBLE_EQ(price_map(ScalarOp::exp, 64, 16).tail_waste, 1);
  EXPECT_NEAR(price_map(ScalarOp::exp, 64, 9).tail_waste, 16.0 / 9, 1e-9);
}

// A reduction whose grid has no loop runs on one thread, and the price says so.
TEST(Price, ASingleThreadedReductionIsPricedAsOne) {
  Graph graph;
  GraphBuilder b(graph);
  const Value sum = b.reduce(b.input("x", f32({4096, 256})), Combine::sum, {0});
  b.output(sum, "y");
  const Estimate one = price(graph, {root_stage(graph, sum.node, {}, 0, 0)}, 1);
  const Estimate eight = price(graph, {root_stage(graph, sum.node, {}, 0, 0)}, 8);
  EXPECT_DOUBLE_EQ(eight.parallel_efficiency, 1.0 / 8);
  EXPECT_NEAR(eight.times().compute, one.times().compute, 1e-9);
  const Estimate split = price(graph, {root_stage(graph, sum.node, {{0, 32}}, 1, 0)}, 8);
  EXPECT_LT(split.times().compute, 0.2 * one.times().compute);
}

// exp of a vector, then broadcast over many rows: computed where it is used it is computed once per row.
TEST(Price, AProducerBehindABroadcastIsRecomputedPerElement) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({1024, 256})), v = b.input("v", f32({256}));
  const Value e = b.map(ScalarOp::erf, {v});
  const Value y = b.map(ScalarOp::add, {x, b.broadcast(e, {1024, 256}, {1})});
  b.output(y, "y");
  const Estimate inlined = price(graph, {root_stage(graph, y.node, {{0, 1}, {1, 16}}, 1, 1)});
  EXPECT_NEAR(inlined.recompute, 2, 0.01);  // as many erf as additions, where 256 would do
  Graph plain;
  GraphBuilder p(plain);
  const Value px = p.input("x", f32({1024, 256})), pv = p.input("v", f32({256}));
  const Value py = p.map(ScalarOp::add, {px, p.broadcast(pv, {1024, 256}, {1})});
  p.output(py, "y");
  const Estimate stored = price(plain, {root_stage(plain, py.node, {{0, 1}, {1, 16}}, 1, 1)});
  EXPECT_GT(inlined.microseconds, 3 * stored.microseconds);
  EXPECT_NEAR(stored.recompute, 1, 1e-9);
}

TEST(Price, StridedReadsAreDearerThanContiguousOnes) {
  const auto transposed = [](bool layout) {
    Graph graph;
    GraphBuilder b(graph);
    const Value x = b.input("x", f32({512, 512}));
    const Value y = b.map(ScalarOp::neg, {b.transpose(x, {1, 0})});
    b.output(y, "y");
    schedule::Layouts layouts;
    if (layout) layouts[x] = {{1, 0}, {}};
    return price(graph, {root_stage(graph, y.node, {{0, 1}, {1, 16}}, 1, 1)}, 1, layouts);
  };
  EXPECT_GT(transposed(false).cycles.memory_access, 4 * transposed(true).cycles.memory_access);
  EXPECT_GT(transposed(false).microseconds, 1.5 * transposed(true).microseconds);
}

// Every second element is a masked store of whole vectors where those have masks, and one store a lane elsewhere; lanes
// whole pages apart push each other out of the cache.
TEST(Price, StoresAtStridesCostWhatTheVectorsCanDo) {
  const auto cycles = [](int vector_bits, std::vector<Dim> strides) {
    Graph graph;
    GraphBuilder b(graph);
    const Value y = b.map(ScalarOp::neg, {b.input("x", f32({512, 512}))});
    b.output(y, "y");
    machine::Machine machine = a_machine();
    machine.vector_bits = vector_bits;
    schedule::Layouts layouts;
    if (!strides.empty())
      layouts[y] = schedule::with_strides({0, 1}, std::move(strides), graph.type(y).shape);
    return price(graph, {root_stage(graph, y.node, {{0, 1}, {1, 16}}, 1, 1)}, 1, layouts, machine)
        .cycles.memory_access;
  };
  constexpr double elements = 512 * 512;
  for (const int bits : {128, 256, 512}) EXPECT_LT(cycles(bits, {}), 0.5 * elements);
  for (const int bits : {128, 256}) EXPECT_GT(cycles(bits, {1024, 2}), elements);
  EXPECT_LT(cycles(512, {1024, 2}), 0.5 * elements);
  EXPECT_GT(cycles(512, {512 * 5, 5}), elements);
  EXPECT_GT(cycles(512, {1, 1024}), 10 * elements);
}

Estimate price_product(int64_t rows, int64_t depth, int64_t columns, int64_t row_tile, int64_t column_tile) {
  Graph graph;
  GraphBuilder b(graph);
  const Value y = b.matmul(b.input("a", f32({rows, depth})), b.input("b", f32({depth, columns})));
  b.output(y, "y");
  return price(graph, {root_stage(graph, y.node, {{0, row_tile}, {1, column_tile}, {0, 1}}, 1, 1)});
}

TEST(Price, ARegisterTileDecidesAProductsSpeed) {
  Graph graph;
  GraphBuilder b(graph);
  const Value y = b.matmul(b.input("a", f32({384, 256})), b.input("b", f32({256, 384})));
  b.output(y, "y");
  const auto with = [&](int64_t rows, int64_t columns) {
    return price(graph, {root_stage(graph, y.node, {{0, 96}, {1, columns}, {0, rows}}, 1, 1)});
  };
  const Estimate good = with(6, 16), thin = with(1, 8);
  EXPECT_LT(good.times().compute, 0.4 * thin.times().compute);
  const double peak = 2 * a_machine().fma_per_cycle() * a_machine().gigahertz * 1e3;
  EXPECT_GT(good.flops / peak / good.times().compute, 0.6);
  EXPECT_LE(good.flops / peak / good.times().compute, 1.0);
  EXPECT_TRUE(with(12, 16).spills);
}

TEST(Price, SmallRowTilesStreamTheWeightsAgain) {
  const Estimate small = price_product(512, 1024, 1024, 8, 16),
                 large = price_product(512, 1024, 1024, 64, 16);
  EXPECT_GT(small.l2_bytes, 3 * large.l2_bytes);
}

TEST(ClosedForm, IsMonotoneAndAddsDispatch) {
  const machine::Machine m = a_machine();
  RegionSums sums;
  double last = price_closed_form(sums, m, {}).microseconds;
  EXPECT_GE(last, m.dispatch_microseconds);
  for (int i = 0; i < 20; ++i) {
    sums.cycles += 1000;
    sums.add_value(4096, false, m, {});
    const double now = price_closed_form(sums, m, {}).microseconds;
    EXPECT_GT(now, last);
    last = now;
  }
}

TEST(Facts, EqualNodesHaveEqualSignatures) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", f32({4, 8}));
  const Value first = b.map(ScalarOp::exp, {x}), second = b.map(ScalarOp::exp, {first}),
              other = b.map(ScalarOp::log, {second});
  const Value sum = b.reduce(other, Combine::sum, {1}), most = b.reduce(other, Combine::max, {1});
  b.output(sum, "s");
  b.output(most, "m");
  const GraphFacts facts = graph_facts(graph, a_machine(), {});
  EXPECT_EQ(facts.at(first.node).signature, facts.at(second.node).signature);
  EXPECT_NE(facts.at(first.node).signature, facts.at(other.node).signature);
  EXPECT_NE(facts.at(sum.node).signature, facts.at(most.node).signature);
  EXPECT_TRUE(facts.at(sum.node).accumulates);
  EXPECT_DOUBLE_EQ(facts.at(sum.node).points, 32);
  EXPECT_DOUBLE_EQ(facts.at(sum.node).elements, 4);
}

}  // namespace
}  // namespace fusewise::cost
