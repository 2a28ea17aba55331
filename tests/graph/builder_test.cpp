#include "graph/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "graph/region.h"
#include "graph/shape_rules.h"
#include "graph/statistics.h"
#include "graph/verifier.h"

namespace fusewise::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DataType f32 = DataType::float32;

struct Fixture {
  Graph graph;
  GraphBuilder b{graph};
  Value in(Shape shape, DataType type = f32) { return b.input("x", {type, std::move(shape)}); }
  Shape shape(Value v) const { return graph.type(v).shape; }
  std::string text(Value v) const { return to_string(graph.type(v)); }
};

void expect_refusal(const std::function<void()>& body, const std::string& words) {
  try {
    body();
    ADD_FAILURE() << "nothing refuses: " << words;
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

TEST(GraphTables, FollowTheList) {
  EXPECT_EQ(name_of(Op::window_reduce), "window_reduce");
  EXPECT_EQ(kind_of(Op::pad), Kind::view);
  EXPECT_EQ(kind_of(Op::convolution), Kind::contract);
  EXPECT_EQ(arity_of(Op::concat), -1);
  EXPECT_EQ(arity_of(Op::gather), 2);
  EXPECT_EQ(op_of("gather"), Op::gather);
  EXPECT_EQ(op_of("softmax"), std::nullopt);
  EXPECT_THROW(name_of(static_cast<Op>(200)), InternalError);
  EXPECT_EQ(to_string(TensorType{f32, {Dim::symbol("batch"), 768}}), "float32[batch, 768]");
  EXPECT_EQ(to_string(TensorType{DataType::boolean, {}}), "boolean[]");
}

TEST(Graph, CopiesHaveNodesOfTheirOwn) {
  Fixture f;
  const Value x = f.in({3});
  const Value y = f.b.map(ScalarOp::neg, {x});
  const Graph copy = f.graph;
  const Node& node = f.graph.node(y.node);
  f.graph.mutable_node(y.node).sources = {7};
  for (int i = 0; i < 1000; ++i) f.b.map(ScalarOp::neg, {x});
  EXPECT_EQ(&node, &f.graph.node(y.node)) << "a node keeps its place";
  EXPECT_THAT(node.sources, ElementsAre(7));
  EXPECT_TRUE(copy.node(y.node).sources.empty());
  EXPECT_EQ(copy.size(), 2U);
}

TEST(Graph, ArrangingRenumbersAllThatNamesNodes) {
  Fixture f;
  const Value x = f.in({3}), dead = f.b.map(ScalarOp::neg, {x}), y = f.b.map(ScalarOp::exp, {x}),
              late = f.b.map(ScalarOp::abs, {x}), z = f.b.map(ScalarOp::add, {y, late});
  f.b.output(z, "z");
  f.b.output(y, "y");
  const std::vector<NodeId> order = {x.node, late.node, y.node, z.node};
  f.graph.arrange(order);
  verify(f.graph);
  ASSERT_EQ(f.graph.size(), 4U);
  EXPECT_THAT(f.graph.node(3).operands, ElementsAre(Value{2, 0}, Value{1, 0}));
  EXPECT_EQ(f.graph.outputs[0].value, (Value{3, 0}));
  EXPECT_EQ(f.graph.outputs[1].value, (Value{2, 0}));
  EXPECT_EQ(f.graph.inputs[0].node, 0U);
  EXPECT_THROW(f.graph.arrange(std::vector<NodeId>{0, 2, 3}), InternalError) << "node 3 reads node 1";
  static_cast<void>(dead);
}

TEST(GraphTables, UsersConstantsAndRegions) {
  Fixture f;
  const Value x = f.in({3}), y = f.in({3});
  const Value square = f.b.map(ScalarOp::mul, {x, x}), sum = f.b.map(ScalarOp::add, {square, y});
  const Value one = f.b.scalar(f32, 1);
  EXPECT_THAT(users(f.graph)[x.node], ElementsAre(square.node, square.node));
  EXPECT_THAT(users(f.graph)[square.node], ElementsAre(sum.node));
  EXPECT_EQ(constant_of(f.graph, x), nullptr);
  ASSERT_NE(constant_of(f.graph, one), nullptr);
  EXPECT_EQ(constant_of(f.graph, one)->type.element, f32);
  const Region region{{square.node, sum.node}, {sum}};
  EXPECT_THAT(region_inputs(f.graph, region), ElementsAre(x, y));
  EXPECT_TRUE(contains(region, sum.node));
  EXPECT_FALSE(contains(region, one.node));
}

TEST(GraphBuilder, WhatChangesNothingReturnsItsOperand) {
  Fixture f;
  const Value x = f.in({2, 3}), zero = f.b.scalar(f32, 0);
  const size_t size = f.graph.size();
  EXPECT_EQ(f.b.cast(x, f32), x);
  EXPECT_EQ(f.b.broadcast_to(x, {2, 3}), x);
  EXPECT_EQ(f.b.reshape(x, {2, 3}), x);
  EXPECT_EQ(f.b.transpose(x, {0, 1}), x);
  EXPECT_EQ(f.b.slice(x, {0, 0}, {1, 1}, {2, 3}), x);
  EXPECT_EQ(f.b.pad(x, zero, {0, 0}, {0, 0}), x);
  EXPECT_EQ(f.b.concat({x}, 1), x);
  EXPECT_EQ(f.b.reduce(x, Combine::sum, {}), x);
  EXPECT_EQ(f.graph.size(), size);
  // A reversal of equal shape, and bad arguments of equal shape, are not taken for nothing.
  EXPECT_NE(f.b.slice(x, {1, 0}, {-1, 1}, {2, 3}), x);
  expect_refusal([&] { f.b.transpose(x, {0, 0}); }, "named twice");
  expect_refusal([&] { f.b.concat({x}, 2); }, "axis 2 is outside");
}

TEST(GraphBuilder, SharesScalarsBitByBit) {
  Fixture f;
  EXPECT_EQ(f.b.scalar(f32, 1), f.b.scalar(f32, 1.0));
  EXPECT_NE(f.b.scalar(f32, 0.0), f.b.scalar(f32, -0.0));
  EXPECT_NE(f.b.scalar(f32, 1), f.b.scalar(DataType::float64, 1));
  EXPECT_EQ(constant_of(f.graph, f.b.scalar(DataType::float16, 0.5))->bytes.size(), 2u);
  const ConstantData* least = constant_of(f.graph, f.b.scalar(DataType::int64, INT64_MIN));
  EXPECT_EQ(load_scalar(least->bytes.data(), DataType::int64).i, INT64_MIN);
  expect_refusal([&] { f.b.scalar(DataType::string, 1); }, "nothing computes in the type string");
}

TEST(GraphBuilder, KeepsSources) {
  Fixture f;
  f.graph.model_nodes.resize(3);
  const Value x = f.in({2});
  f.b.set_source(2);
  const Value y = f.b.map(ScalarOp::neg, {x});
  f.b.set_sources(std::vector<uint32_t>{1, 0});
  const Value z = f.b.map(ScalarOp::exp, {y});
  EXPECT_TRUE(f.graph.node(x.node).sources.empty());
  EXPECT_THAT(f.graph.node(y.node).sources, ElementsAre(2u));
  EXPECT_THAT(f.graph.node(z.node).sources, ElementsAre(1u, 0u));
  verify(f.graph);
}

TEST(GraphBuilder, BroadcastsAsNumPy) {
  Fixture f;
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  const auto sum = [&](Shape a, Shape b) {
    return f.shape(f.b.map_broadcast(ScalarOp::add, {f.in(std::move(a)), f.in(std::move(b))}));
  };
  EXPECT_EQ(sum({2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(sum({2, 1}, {1, 3}), (Shape{2, 3}));
  EXPECT_EQ(sum({}, {0}), (Shape{0}));
  EXPECT_EQ(sum({1}, {0}), (Shape{0}));
  EXPECT_EQ(sum({n, 1}, {n, 4}), (Shape{n, 4}));
  EXPECT_EQ(sum({n}, {1}), (Shape{n}));
  EXPECT_EQ(sum({n}, {4}), (Shape{4}));
  EXPECT_EQ(sum({n}, {m + 2}), (Shape{m + 2}));
  EXPECT_EQ(sum({n}, {m}), (Shape{max(n, m)}));
  expect_refusal([&] { sum({2}, {3}); }, "shapes [2] and [3] do not broadcast");
  expect_refusal([&] { sum({0}, {3}); }, "do not broadcast");
  expect_refusal([&] { sum({n + 2}, {n + 3}); }, "do not broadcast");
  expect_refusal([&] { f.b.broadcast_to(f.in({2, 3}), {3}); }, "does not broadcast to the shape [3]");
  expect_refusal([&] { f.b.broadcast_to(f.in({2}), {1}); }, "does not become 1");
}

TEST(GraphBuilder, UnknownBroadcastsStateTheirRequirement) {
  Fixture f;
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  const Value sum = f.b.map_broadcast(ScalarOp::add, {f.in({n}), f.in({m})});
  const NodeId left = f.graph.node(sum.node).operands[0].node;
  const std::vector<Requirement> all = requirements_of(f.graph, left);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(to_string(all[0]), "n == max(m, n) or n == 1");
  EXPECT_TRUE(holds(all[0], {{"n", 1}, {"m", 7}}));
  EXPECT_FALSE(holds(all[0], {{"n", 3}, {"m", 7}}));
  EXPECT_FALSE(holds(all[0], {{"n", 0}, {"m", 1}}));  // NumPy's one pair that max does not cover
  f.b.map_broadcast(ScalarOp::sub, {f.in({n}), f.in({m})});
  EXPECT_EQ(requirements_of(f.graph).size(), 2u);
}

TEST(GraphBuilder, MatmulAsNumPy) {
  Fixture f;
  const Dim n = Dim::symbol("n");
  const auto product = [&](Shape a, Shape b) {
    return f.shape(f.b.matmul(f.in(std::move(a)), f.in(std::move(b))));
  };
  EXPECT_EQ(product({2, 3}, {3, 5}), (Shape{2, 5}));
  EXPECT_EQ(product({3}, {3}), (Shape{}));
  EXPECT_EQ(product({3}, {3, 5}), (Shape{5}));
  EXPECT_EQ(product({2, 3}, {3}), (Shape{2}));
  EXPECT_EQ(product({7, 2, 3}, {3}), (Shape{7, 2}));
  EXPECT_EQ(product({3}, {7, 3, 5}), (Shape{7, 5}));
  EXPECT_EQ(product({n, 2, 3}, {3, 5}), (Shape{n, 2, 5}));
  EXPECT_EQ(product({2, 3}, {7, 3, 5}), (Shape{7, 2, 5}));
  EXPECT_EQ(product({n, 1, 2, 3}, {4, 3, 5}), (Shape{n, 4, 2, 5}));
  EXPECT_EQ(product({6, 2, 3}, {1, 1, 3, 5}), (Shape{1, 6, 2, 5}));
  EXPECT_EQ(product({2, 0}, {0, 5}), (Shape{2, 5}));
  expect_refusal([&] { product({2, 3}, {4, 5}); }, "contracted dimensions 3 and 4 differ");
  expect_refusal([&] { product({2, 2, 3}, {3, 3, 5}); }, "do not broadcast");
  expect_refusal([&] { product({}, {3}); }, "a scalar is no matrix");
  verify(f.graph);
}

TEST(GraphBuilder, MatmulWithOneRightMatrixNeedsNoBatch) {
  Fixture f;
  const Value y = f.b.matmul(f.in({6, 2, 3}), f.in({1, 3, 5}));
  const auto& a = attributes<DotAttributes>(f.graph.node(y.node));
  EXPECT_TRUE(a.lhs_batch.empty());
}

TEST(GraphBuilder, ReduceKeepsDimensions) {
  Fixture f;
  const Value x = f.in({2, 3, 5});
  EXPECT_EQ(f.shape(f.b.reduce(x, Combine::max, {2, 0})), (Shape{3}));
  EXPECT_EQ(f.shape(f.b.reduce(x, Combine::max, {2, 0}, true)), (Shape{1, 3, 1}));
  expect_refusal([&] { f.b.reduce(x, Combine::max, {3}, true); }, "outside");
  expect_refusal([&] { f.b.reduce(x, Combine::max, {1, 1}); }, "named twice");
}

TEST(GraphBuilder, RefusesConstantsOfTheWrongSize) {
  Fixture f;
  expect_refusal([&] { f.b.constant({f32, {3}}, std::vector<std::byte>(8), "w"); },
                 "constant 'w' of type float32[3] needs 12 bytes and has 8");
  EXPECT_EQ(f.text(f.b.constant({DataType::int4, {3}}, std::vector<std::byte>(2))), "int4[3]");
  expect_refusal([&] { f.b.constant({f32, {Dim::symbol("n")}}, std::vector<std::byte>(8)); },
                 "no constant number");
  EXPECT_TRUE(f.graph.constants.size() == 1);
}

TEST(Requirements, OfShapesThatAreNotKnownToFit) {
  Fixture f;
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  const auto all = [&](Value v) {
    std::vector<std::string> texts;
    for (const Requirement& r : requirements_of(f.graph, v.node)) texts.push_back(to_string(r));
    return texts;
  };
  EXPECT_THAT(all(f.b.reshape(f.in({n, 4}), {2, n * 2})), ElementsAre());
  EXPECT_THAT(all(f.b.reshape(f.in({n}), {m, 2})), ElementsAre("n == 2*m"));
  EXPECT_THAT(all(f.b.concat({f.in({n, 2}), f.in({3, 2})}, 1)), ElementsAre("n == 3"));
  EXPECT_THAT(all(f.b.matmul(f.in({2, n}), f.in({m, 2}))), ElementsAre("n == m"));
  EXPECT_THAT(all(f.b.slice(f.in({n}), {2}, {1}, {n - 2})), ElementsAre("n - 2 >= 0"));
  EXPECT_THAT(all(f.b.gather(f.in({n}), f.in({4}, DataType::int64), 0)), ElementsAre("n >= 1"));
  EXPECT_THAT(all(f.b.gather(f.in({n}), f.in({0}, DataType::int64), 0)), ElementsAre());
  const Value x = f.in({1, 4, n});
  EXPECT_THAT(all(f.b.convolution(x, f.in({2, 4, 3}), {{1}, {1}, {1}, {1}, 1})), ElementsAre());
  EXPECT_THAT(all(f.b.convolution(x, f.in({2, 4, 3}), {{1}, {1}, {0}, {0}, 1})), ElementsAre("n - 2 >= 0"));
}

TEST(Statistics, CountOperationsAndArithmetic) {
  Fixture f;
  const Dim n = Dim::symbol("n");
  const Value x = f.in({n, 8, 5, 5}), w = f.in({4, 2, 3, 3});
  const Value c = f.b.convolution(x, w, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 4});
  EXPECT_EQ(flops_of(f.graph, c.node), n * Dim(4 * 25 * 2 * 9 * 2));
  const Value r = f.b.map(ScalarOp::exp, {c});
  EXPECT_EQ(flops_of(f.graph, r.node), n * Dim(100));
  const Value s = f.b.reduce(r, Combine::sum, {2, 3});
  EXPECT_EQ(flops_of(f.graph, s.node), n * Dim(100));
  const Value d = f.b.matmul(s, f.in({4, 7}));
  EXPECT_EQ(flops_of(f.graph, d.node), n * Dim(2 * 4 * 7));
  const Value p = f.b.window_reduce(r, {Combine::max, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}});
  EXPECT_EQ(flops_of(f.graph, p.node), n * Dim(4 * 4 * 4));
  EXPECT_EQ(flops_of(f.graph, f.b.transpose(d, {1, 0}).node), Dim(0));
  f.b.map(ScalarOp::exp, {d});
  EXPECT_EQ(histogram(f.graph).at("map exp"), 2);
  EXPECT_EQ(histogram(f.graph).at("input"), 3);
}

Graph two_nodes() {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.input("x", {f32, {2, 3}});
  b.output(b.map(ScalarOp::neg, {x}), "y");
  b.scalar(f32, 1);
  return graph;
}

void expect_invalid(const Graph& graph, const std::string& words) {
  try {
    verify(graph);
    ADD_FAILURE() << "the verifier accepts: " << words;
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

TEST(Verifier, NamesTheNode) {
  verify(two_nodes());
  const TensorType type{f32, {2, 3}};
  const auto with = [&](Node node) {
    Graph graph = two_nodes();
    graph.model_nodes.push_back({"encoder/Add", "Add", "sum"});
    graph.append(std::move(node));
    return graph;
  };
  const MapAttributes neg{ScalarOp::neg};
  verify(with({Op::map, {{0, 0}}, neg, {type}, {0}}));
  expect_invalid(with({Op::map, {{3, 0}}, neg, {type}, {}}),
                 "node %3 (map): operand %3 does not come before it");
  expect_invalid(with({Op::map, {{0, 1}}, neg, {type}, {}}), "operand %0");
  expect_invalid(with({Op::map, {{0, 0}, {1, 0}}, neg, {type}, {}}), "neg takes 1 operands, not 2");
  expect_invalid(with({Op::map, {{0, 0}}, ConcatAttributes{0}, {type}, {}}), "attributes");
  expect_invalid(with({Op::map, {{0, 0}}, neg, {{f32, {3, 2}}}, {0}}),
                 "node %3 (map) of Add 'encoder/Add': its type is float32[3, 2] and should be float32[2, 3]");
  expect_invalid(with({Op::map, {{0, 0}}, neg, {}, {}}), "no result");
  expect_invalid(with({Op::map, {{0, 0}}, neg, {type, type}, {}}), "another number of results");
  expect_invalid(with({Op::map, {{0, 0}}, neg, {type}, {1}}), "model node 1 does not exist");
  expect_invalid(with({Op::input, {}, InputAttributes{}, {type}, {}}), "not in the list of inputs");
  expect_invalid(with({Op::constant, {}, ConstantAttributes{1}, {type}, {}}), "constant 1 does not exist");
  expect_invalid(with({Op::constant, {}, ConstantAttributes{0}, {type}, {}}),
                 "its data has the type float32[]");
  expect_invalid(with({Op::reduce, {{0, 0}}, ReduceAttributes{Combine::sum, {1, 0}}, {{f32, {}}}, {}}),
                 "not sorted");
}

TEST(Verifier, ChecksInputsOutputsAndConstants) {
  Graph graph = two_nodes();
  graph.outputs.push_back({{9, 0}, "z"});
  expect_invalid(graph, "output 'z'");
  graph = two_nodes();
  graph.inputs.push_back({1, "z"});
  expect_invalid(graph, "input 'z' is no input node");
  graph = two_nodes();
  graph.inputs.push_back({0, "z"});
  expect_invalid(graph, "input 'z' names a node of another input");
  graph = two_nodes();
  graph.constants[0].bytes = graph.constants[0].bytes.first(3);
  expect_invalid(graph, "its data has 3 bytes");
}

}  // namespace
}  // namespace fusewise::graph
