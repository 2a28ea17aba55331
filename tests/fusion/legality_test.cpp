#include "fusion/legality/list.h"

#include "planner_testing.h"

namespace fusewise::fusion {
namespace {

// Whether the clusters of two nodes may become one.
struct Case {
  Graph graph;
  PlanOptions options = test_options();

  Verdict together(std::vector<NodeId> a, std::vector<NodeId> b) const {
    const PlanContext context = make_context(graph, options, {});
    Partition partition(context);
    Evaluator evaluator(context);
    const auto join = [&](const std::vector<NodeId>& nodes) {
      int cluster = partition.cluster_of(nodes[0]);
      for (size_t i = 1; i < nodes.size(); ++i)
        cluster = partition.merge(cluster, partition.cluster_of(nodes[i]));
      return cluster;
    };
    const int first = join(a), second = join(b);
    return is_legal(make_candidate(context, partition, first, second), {context, partition, evaluator});
  }
};

TEST(Legality, ElementwiseChainsAreLegal) {
  Case c;
  GraphBuilder b(c.graph);
  const Value e = b.map(ScalarOp::exp, {b.input("x", f32({8, 8}))}), n = b.map(ScalarOp::neg, {e});
  b.output(n, "y");
  EXPECT_TRUE(c.together({e.node}, {n.node}).allowed());
}

TEST(Legality, ACycleThroughAThirdKernelIsRefused) {
  Case c;
  GraphBuilder b(c.graph);
  const Value e = b.map(ScalarOp::exp, {b.input("x", f32({8, 8}))}), n = b.map(ScalarOp::neg, {e}),
              s = b.map(ScalarOp::add, {e, n});
  b.output(s, "y");
  EXPECT_EQ(c.together({e.node}, {s.node}).code, "cycle");
  EXPECT_TRUE(c.together({e.node}, {n.node}).allowed());
}

TEST(Legality, ACycleThroughOtherRegionsIsRefusedThoughBothAreConvex) {
  Case c;
  GraphBuilder b(c.graph);
  const Value x = b.input("x", f32({8, 8}));
  const Value a1 = b.map(ScalarOp::exp, {x}), a2 = b.map(ScalarOp::neg, {x});
  const Value b1 = b.map(ScalarOp::tanh, {a1}), b2 = b.map(ScalarOp::sqrt, {a2});
  b.output(b.map(ScalarOp::add, {b1, b2}), "y");
  // {a1, b2} and {a2, b1} are convex each, but each reads what the other writes.
  const PlanContext context = make_context(c.graph, c.options, {});
  Partition partition(context);
  const int first = partition.merge(partition.cluster_of(a1.node), partition.cluster_of(b2.node));
  EXPECT_TRUE(partition.would_cycle(partition.cluster_of(a2.node), partition.cluster_of(b1.node)));
  EXPECT_FALSE(partition.would_cycle(first, partition.cluster_of(a2.node)));
  EXPECT_FALSE(partition.would_cycle(first, partition.cluster_of(b1.node)));
}

TEST(Legality, ConstantWorkAndRunWorkStayApart) {
  Case c;
  GraphBuilder b(c.graph);
  const Value w = b.map(ScalarOp::exp, {weights(b, {8, 8})}),
              s = b.map(ScalarOp::add, {b.input("x", f32({8, 8})), w});
  b.output(s, "y");
  EXPECT_EQ(c.together({w.node}, {s.node}).code, "once");
}

TEST(Legality, SizeAndArgumentsAreLimited) {
  Case c;
  GraphBuilder b(c.graph);
  Value x = b.input("x", f32({8, 8}));
  std::vector<NodeId> chain;
  for (int i = 0; i < 140; ++i) chain.push_back((x = b.map(ScalarOp::exp, {x})).node);
  Value sum = x;
  std::vector<NodeId> wide;
  for (int i = 0; i < 40; ++i)
    wide.push_back((sum = b.map(ScalarOp::add, {sum, b.input("i" + std::to_string(i), f32({8, 8}))})).node);
  b.output(sum, "y");
  EXPECT_EQ(c.together(chain, {wide[0]}).code, "region-size");
  EXPECT_EQ(c.together(wide, {chain.back()}).code, "arguments");
}

TEST(Legality, AGatheredOperandIsCompleteOrCheap) {
  Case c;
  GraphBuilder b(c.graph);
  const Value table = b.input("table", f32({64, 32})), index = b.input("index", {DataType::int64, {16}});
  const Value cheap = b.map(ScalarOp::neg, {table});
  const Value dear = b.map_broadcast(ScalarOp::sub, {cheap, b.reduce(cheap, Combine::max, {0}, true)});
  const Value g1 = b.gather(cheap, index, 0), g2 = b.gather(dear, index, 0);
  b.output(b.map(ScalarOp::add, {g1, g2}), "y");
  const NodeId reduction = static_cast<NodeId>(cheap.node + 1);
  EXPECT_EQ(c.together({reduction, dear.node}, {g2.node}).code, "gathered-operand");
}

TEST(Legality, EveryCheckHasANameAndCheapOnesComeFirst) {
  bool dear = false;
  std::set<std::string_view> names;
  for (const LegalityCheck& check : legality_checks()) {
    EXPECT_TRUE(names.insert(check.name).second);
    EXPECT_GE(check.dear, dear);
    dear = check.dear;
  }
}

}  // namespace
}  // namespace fusewise::fusion
