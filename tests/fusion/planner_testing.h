// Small graphs and checks that the planner's tests share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "fusion/context.h"
#include "fusion/planner.h"
#include "graph/builder.h"

namespace fusewise::fusion {

using graph::Graph;
using graph::GraphBuilder;
using graph::NodeId;

inline graph::TensorType f32(Shape shape) { return {DataType::float32, std::move(shape)}; }

inline Value weights(GraphBuilder& b, Shape shape) {
  int64_t elements = 1;
  for (const Dim& d : shape) elements *= d.value();
  return b.constant(f32(shape), std::vector<std::byte>(static_cast<size_t>(elements) * 4), "weights");
}

inline machine::Machine test_machine() {
  machine::Machine m;
  m.name = "test";
  m.architecture = "x86-64";
  m.cpu = "x86-64-v3";
  m.contraction_tiles = {{6, 2}, {4, 3}};
  return m;
}

inline PlanOptions test_options(FusionMode mode = FusionMode::on, int threads = 1) {
  PlanOptions options;
  options.mode = mode;
  options.machine = test_machine();
  options.threads = threads;
  return options;
}

// A model node for what is appended from here on.
inline void source(GraphBuilder& b, const std::string& op_type, const std::string& name) {
  Graph& graph = b.graph();
  graph.model_nodes.push_back({name, op_type, name + "_out"});
  b.set_source(static_cast<uint32_t>(graph.model_nodes.size() - 1));
}

inline Value softmax(GraphBuilder& b, Value x) {
  const Shape shape = b.shape(x);
  const int last = static_cast<int>(shape.size()) - 1;
  const Value most = b.broadcast_to(b.reduce(x, Combine::max, {last}, true), shape);
  const Value e = b.map(ScalarOp::exp, {b.map(ScalarOp::sub, {x, most})});
  return b.map(ScalarOp::div, {e, b.broadcast_to(b.reduce(e, Combine::sum, {last}, true), shape)});
}

// (x - mean) / sqrt(var + eps), with the variance as a mean of squares; `swapped`: written another, equal way.
inline Value norm(GraphBuilder& b, Value x, bool swapped = false) {
  const Shape shape = b.shape(x);
  const int last = static_cast<int>(shape.size()) - 1;
  Shape row = shape;
  row.back() = 1;
  const auto mean = [&](Value v) {
    const Value sum = b.reduce(v, Combine::sum, {last}, true);
    const Value factor =
        b.broadcast_to(b.scalar(DataType::float32, 1.0 / static_cast<double>(shape.back().value())), row);
    return swapped ? b.map(ScalarOp::mul, {factor, sum}) : b.map(ScalarOp::mul, {sum, factor});
  };
  const Value centred = b.map(ScalarOp::sub, {x, b.broadcast_to(mean(x), shape)});
  const Value variance = mean(b.map(ScalarOp::mul, {centred, centred}));
  const Value eps = b.broadcast_to(b.scalar(DataType::float32, 1e-5), row);
  const Value deviation = b.map(ScalarOp::sqrt, {b.map(ScalarOp::add, {variance, eps})});
  return b.map(ScalarOp::div, {centred, b.broadcast_to(deviation, shape)});
}

inline Value dense(GraphBuilder& b, Value x, int64_t columns) {
  const int64_t depth = b.shape(x).back().value();
  const Value y = b.matmul(x, weights(b, {depth, columns}));
  return b.map_broadcast(ScalarOp::add, {y, weights(b, {columns})});
}

// Every needed node is computed, each value that crosses a border is stored exactly once, in an order in which
// producers come first (which an acyclic quotient alone permits).
inline void expect_valid(const Graph& graph, const FusionPlan& plan) {
  std::map<Value, int> writer;
  std::set<NodeId> computed;
  std::set<Value> written;
  for (const PlannedRegion& planned : plan.regions)
    for (Value v : planned.region.outputs)
      EXPECT_TRUE(writer.emplace(v, 1).second) << "%" << v.node << " is stored twice";
  for (const PlannedRegion& planned : plan.regions) {
    EXPECT_FALSE(planned.region.outputs.empty());
    EXPECT_TRUE(std::is_sorted(planned.region.nodes.begin(), planned.region.nodes.end()));
    for (Value v : graph::region_inputs(graph, planned.region)) {
      if (!graph::has_form(graph, v.node)) continue;
      EXPECT_TRUE(written.count(v)) << "%" << v.node << " is read before it is stored";
    }
    for (NodeId node : planned.region.nodes) computed.insert(node);
    for (Value v : planned.region.outputs) {
      EXPECT_TRUE(graph::contains(planned.region, v.node));
      written.insert(v);
    }
    const bool once = planned.once;
    for (Value v : graph::region_inputs(graph, planned.region)) {
      if (once) {
        EXPECT_NE(graph.node(v.node).op, graph::Op::input);
      }
    }
  }
  for (const graph::GraphOutput& output : graph.outputs) {
    if (graph::has_form(graph, output.value.node)) {
      EXPECT_TRUE(written.count(output.value)) << output.name;
    }
  }
}

// A random graph of maps, reductions, views and products.
inline Graph random_graph(uint32_t seed, int nodes) {
  Graph graph;
  GraphBuilder b(graph);
  std::mt19937 random(seed);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::vector<Value> values = {b.input("a", f32({16, 32})), b.input("b", f32({16, 32})),
                               weights(b, {16, 32})};
  const Value square = weights(b, {32, 32});
  for (int i = 0; i < nodes; ++i) {
    source(b, "Op", "node" + std::to_string(i));
    const Value x =
        values[pick(std::min<size_t>(values.size(), 8)) + (values.size() > 8 ? values.size() - 8 : 0)];
    const Value y = values[pick(values.size())];
    switch (pick(7)) {
      case 0:
        values.push_back(b.map(ScalarOp::exp, {x}));
        break;
      case 1:
      case 2:
        values.push_back(b.map(ScalarOp::add, {x, y}));
        break;
      case 3:
        values.push_back(softmax(b, x));
        break;
      case 4:
        values.push_back(b.matmul(x, square));
        break;
      case 5:
        values.push_back(b.broadcast_to(b.reduce(x, Combine::sum, {1}, true), {16, 32}));
        break;
      default:
        values.push_back(b.transpose(b.map(ScalarOp::neg, {b.transpose(x, {1, 0})}), {1, 0}));
    }
  }
  b.output(values.back(), "last");
  b.output(values[values.size() / 2], "middle");
  return graph;
}

}  // namespace fusewise::fusion
