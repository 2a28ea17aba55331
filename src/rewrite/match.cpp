#include "rewrite/match.h"

#include <algorithm>
#include <cmath>

#include "graph/shape_rules.h"

namespace fusewise::rewrite {

using graph::BroadcastAttributes;
using graph::ConstantData;
using graph::Graph;
using graph::MapAttributes;
using graph::Node;
using graph::Op;
using graph::Value;

bool is_map(const Node& node, ScalarOp op) {
  return node.op == Op::map && graph::attributes<MapAttributes>(node).op == op;
}

const Node* map_of(const Graph& graph, Value value, ScalarOp op) {
  const Node& node = graph.node(value.node);
  return is_map(node, op) ? &node : nullptr;
}

const Node* node_of(const Graph& graph, Value value, Op op) {
  const Node& node = graph.node(value.node);
  return node.op == op ? &node : nullptr;
}

bool has_one_element(const graph::TensorType& type) {
  return std::ranges::all_of(type.shape, [](const Dim& d) { return d.is(1); });
}

std::optional<Value> uniform_source(const Graph& graph, Value value) {
  while (!has_one_element(graph.type(value))) {
    const Node& node = graph.node(value.node);
    if (node.op != Op::broadcast) return std::nullopt;
    value = node.operands[0];
  }
  return value;
}

std::optional<Scalar> uniform_constant(const Graph& graph, Value value) {
  const std::optional<Value> source = uniform_source(graph, value);
  if (!source) return std::nullopt;
  const ConstantData* data = graph::constant_of(graph, *source);
  if (!data || !is_computable(data->type.element)) return std::nullopt;
  return load_scalar(data->bytes.data(), data->type.element);
}

bool is_uniform(const Graph& graph, Value value, double number) {
  const std::optional<Scalar> found = uniform_constant(graph, value);
  if (!found) return false;
  if (!is_float(found->type)) {
    const bool huge = found->type == DataType::uint64 && found->i < 0;
    return !huge && static_cast<double>(found->i) == number && std::abs(number) < 0x1p53;
  }
  return found->f == number && std::signbit(found->f) == std::signbit(number);
}

Value spread(graph::GraphBuilder& builder, Value one, const Shape& shape) {
  if (builder.shape(one).size() > shape.size()) one = builder.reshape(one, {});
  return builder.broadcast_to(one, shape);
}

std::optional<AxisConstant> axis_constant(const Graph& graph, Value value) {
  const Shape& shape = graph.type(value).shape;
  std::vector<int> places;
  const Node* node = node_of(graph, value, Op::broadcast);
  const ConstantData* data = graph::constant_of(graph, node ? node->operands[0] : value);
  if (!data || !is_computable(data->type.element) || !is_float(data->type.element)) return std::nullopt;
  if (node) places = graph::attributes<BroadcastAttributes>(*node).dims;
  AxisConstant result;
  int64_t count = 1;
  for (size_t d = 0; d < data->type.shape.size(); ++d) {
    const Dim& extent = data->type.shape[d];
    if (extent.is(1)) continue;
    const int axis = node ? places[d] : static_cast<int>(d);
    if (result.axis >= 0 || shape[static_cast<size_t>(axis)] != extent) return std::nullopt;
    result.axis = axis;
    count = extent.value();
  }
  const int bytes = bytes_of(data->type.element);
  for (int64_t i = 0; i < count; ++i)
    result.values.push_back(load_scalar(data->bytes.data() + i * bytes, data->type.element).f);
  return result;
}

std::vector<int> count_uses(const Graph& graph) {
  std::vector<int> uses(graph.size(), 0);
  for (graph::NodeId id = 0; id < graph.size(); ++id)
    for (const Value& operand : graph.node(id).operands) ++uses[operand.node];
  for (const graph::GraphOutput& output : graph.outputs) ++uses[output.value.node];
  return uses;
}

bool requires_nothing(const Graph& graph, const Node& node) {
  return graph::infer(graph, node).requirements.empty();
}

}  // namespace fusewise::rewrite
