// The list, the order, and what the driver does around the rewrites.
#include "rewrite/driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <set>

#include "graph/builder.h"
#include "rewrite/rewrite_testing.h"

namespace fusewise::rewrite {
namespace {

using graph::Graph;
using graph::GraphBuilder;
using graph::NodeId;
using graph::Value;

constexpr DataType f32 = DataType::float32;

// y = x ^ 2 / 3 + -0
Graph small_graph() {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", {f32, {Dim::symbol("n")}});
  const Value square = b.map_broadcast(ScalarOp::pow, {x, b.scalar(f32, 2)});
  const Value third = b.map_broadcast(ScalarOp::div, {square, b.scalar(f32, 3)});
  b.output(b.map_broadcast(ScalarOp::add, {third, b.scalar(f32, -0.0)}), "y");
  return graph;
}

std::multiset<std::string> operations(const Graph& graph) {
  std::multiset<std::string> names;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (const auto* a = std::get_if<graph::MapAttributes>(&graph.node(id).attributes))
      names.emplace(name_of(a->op));
  return names;
}

TEST(List, EveryRewriteHasCasesAReasonAndAPlace) {
  for (const Rewrite& rewrite : rewrites()) {
    EXPECT_TRUE(std::filesystem::exists(std::string(FUSEWISE_TESTS) + "/rewrite/" +
                                        std::string(rewrite.name) + ".case"))
        << rewrite.name;
    EXPECT_FALSE(rewrite.reason.empty());
    EXPECT_EQ(find_rewrite(rewrite.name), &rewrite);
    bool placed = false;
    for (const Stage& stage : stages())
      placed = placed || std::ranges::find(stage.rewrites, rewrite.name) != stage.rewrites.end();
    EXPECT_TRUE(placed) << rewrite.name;
  }
  EXPECT_EQ(find_rewrite("no such rewrite"), nullptr);
}

TEST(Driver, StrictModeRunsExactRewritesOnly) {
  DriverOptions options;
  EXPECT_EQ(operations(run_rewrites(small_graph(), options)), (std::multiset<std::string>{"mul", "mul"}));
  options.allowed = Exactness::exact;
  std::set<std::string_view> ran;
  options.observe = [&](const Step& step, const Graph&) {
    ran.insert(step.rewrite.name);
    EXPECT_EQ(step.rewrite.exactness, Exactness::exact);
  };
  EXPECT_EQ(operations(run_rewrites(small_graph(), options)), (std::multiset<std::string>{"div", "pow"}));
  for (const Rewrite& rewrite : rewrites())
    EXPECT_EQ(ran.contains(rewrite.name), rewrite.exactness == Exactness::exact) << rewrite.name;
}

TEST(Driver, SkipsByNameAndIgnoresOtherNames) {
  DriverOptions options;
  options.skip = {"pow_to_multiply", "a kernel pass"};
  options.observe = [](const Step& step, const Graph&) { EXPECT_NE(step.rewrite.name, "pow_to_multiply"); };
  EXPECT_EQ(operations(run_rewrites(small_graph(), options)), (std::multiset<std::string>{"mul", "pow"}));
}

TEST(Driver, ReportsEachRunWithTheGraphItLeft) {
  DriverOptions options;
  size_t changes = 0, nodes = small_graph().size();
  options.observe = [&](const Step& step, const Graph& graph) {
    EXPECT_EQ(step.nodes_before, nodes);
    EXPECT_EQ(step.nodes_after, graph.size());
    EXPECT_GE(step.milliseconds, 0);
    nodes = graph.size();
    changes += step.changed ? 1 : 0;
  };
  const Graph result = run_rewrites(small_graph(), options);
  EXPECT_EQ(result.size(), nodes);
  EXPECT_GE(changes, 3U);
}

TEST(Driver, ASecondRunChangesNothing) {
  const Graph once = run_rewrites(small_graph());
  DriverOptions options;
  options.observe = [](const Step& step, const Graph&) { EXPECT_FALSE(step.changed) << step.rewrite.name; };
  EXPECT_TRUE(same_graph(run_rewrites(once, options), once));
}

TEST(Driver, WhatFoundNothingWaitsForAChange) {
  std::set<std::string_view> found_nothing, ran;
  DriverOptions options;
  options.observe = [&](const Step& step, const Graph&) {
    EXPECT_FALSE(found_nothing.contains(step.rewrite.name)) << step.rewrite.name;
    if (step.changed)
      found_nothing.clear();
    else
      found_nothing.insert(step.rewrite.name);
    ran.insert(step.rewrite.name);
  };
  run_rewrites(small_graph(), options);
  EXPECT_EQ(ran.size(), rewrites().size()) << "each runs once at least";
}

TEST(Driver, AnEmptyGraph) { EXPECT_EQ(run_rewrites(Graph()).size(), 0U); }

// Whatever repeats along a chain: neutral operations, reshapes and transposes back and forth, equal branches.
Graph long_chain(int length) {
  Graph graph;
  for (int i = 0; i < length; ++i) graph.model_nodes.push_back({"node " + std::to_string(i), "Op", ""});
  GraphBuilder b(graph);
  Value x = b.input("x", {f32, {4, 6}});
  for (int i = 0; i < length; ++i) {
    b.set_source(static_cast<uint32_t>(i));
    switch (i % 8) {
      case 0:
        x = b.map_broadcast(ScalarOp::add, {x, b.scalar(f32, i % 16 == 0 ? 1 : -0.0)});
        break;
      case 1:
        x = b.map(ScalarOp::neg, {x});
        break;
      case 2:
      case 5:
        x = b.transpose(x, {1, 0});
        break;
      case 3:
        x = b.map(ScalarOp::max, {x, b.broadcast_to(b.scalar(f32, i), b.shape(x))});
        break;
      case 4:
        x = b.map(ScalarOp::add, {b.map(ScalarOp::abs, {x}), b.map(ScalarOp::abs, {x})});
        break;
      default:
        x = b.reshape(x, i % 8 == 6 ? Shape{24} : Shape{4, 6});
        break;
    }
  }
  b.output(x, "y");
  return graph;
}

TEST(Driver, LongChainsTakeLinearTime) {
  const auto seconds_for = [](int length) {
    const Graph graph = long_chain(length);
    const std::clock_t begin = std::clock();
    const Graph result = run_rewrites(graph);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;  // of the processor
    EXPECT_LT(result.size(), graph.size());
    return seconds;
  };
  testing::expect_same_results(long_chain(400), run_rewrites(long_chain(400)), Exactness::changes_rounding,
                               1);
  const double small = seconds_for(10'000), large = seconds_for(80'000);
  EXPECT_LT(large, 20 * small + 1) << small << " s and " << large << " s";
}

// A chain of one kind, in which each step could absorb all before it.
TEST(Driver, LongChainsOfOneRuleTakeLinearTime) {
  Graph graph;
  GraphBuilder b(graph);
  Value x = b.input("x", {f32, {3}});
  for (int i = 0; i < 100'000; ++i) {
    graph.model_nodes.push_back({"", "Max", ""});
    b.set_source(static_cast<uint32_t>(i));
    x = b.map_broadcast(ScalarOp::max, {x, b.scalar(f32, i % 100)});
  }
  b.output(x, "y");
  const Graph result = run_rewrites(graph);
  EXPECT_EQ(operations(result), (std::multiset<std::string>{"max"}));
}

}  // namespace
}  // namespace fusewise::rewrite
