// What rewrites ask about values: scalars, constants along one axis, uses.
#pragma once

#include <optional>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"
#include "numerics/scalar_op.h"

namespace fusewise::rewrite {

bool is_map(const graph::Node& node, ScalarOp op);
// The node that computes the value if it is a map with this operation, or null.
const graph::Node* map_of(const graph::Graph& graph, graph::Value value, ScalarOp op);
const graph::Node* node_of(const graph::Graph& graph, graph::Value value, graph::Op op);

// Whether a type has exactly one element whatever the symbols are.
bool has_one_element(const graph::TensorType& type);
// The one-element value whose element every element of `value` is: behind broadcasts, or the value itself.
std::optional<graph::Value> uniform_source(const graph::Graph& graph, graph::Value value);
// The number that every element is, when it is a constant of a computable type.
std::optional<Scalar> uniform_constant(const graph::Graph& graph, graph::Value value);
// Such a number, given as the type's value; -0 and +0 differ.
bool is_uniform(const graph::Graph& graph, graph::Value value, double number);
// A value of one element, repeated over a shape of any rank.
graph::Value spread(graph::GraphBuilder& builder, graph::Value one, const Shape& shape);

// A constant (maybe behind a broadcast) that varies along one axis of its shape at most; axis -1 is a single
// number.
struct AxisConstant {
  int axis = -1;
  std::vector<double> values;
};
std::optional<AxisConstant> axis_constant(const graph::Graph& graph, graph::Value value);

// How often each node's result is used; being an output of the graph is a use.
std::vector<int> count_uses(const graph::Graph& graph);

// A node that requires nothing of the symbols' values: it can go without an error being lost. Its operands
// are in the graph.
bool requires_nothing(const graph::Graph& graph, const graph::Node& node);

}  // namespace fusewise::rewrite
