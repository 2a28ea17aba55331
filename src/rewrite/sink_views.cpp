#include "rewrite/sink_views.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "rewrite/match.h"
#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

namespace {

using graph::BroadcastAttributes;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;

// The same map over other operands.
Value map_over(Rebuilder& r, const Node& node, std::vector<Value> operands) {
  const Shape shape = r.builder().shape(operands[0]);
  return r.builder().append(Op::map, std::move(operands), node.attributes,
                            graph::TensorType{node.results[0].element, shape});
}

// The view below the map, from the model nodes of the one above.
Value view_below(Rebuilder& r, const Node& view, Value value, const Shape& shape) {
  r.builder().set_sources(view.sources);
  if (view.op == Op::reshape) return r.builder().reshape(value, shape);
  return r.builder().broadcast(value, shape, graph::attributes<BroadcastAttributes>(view).dims);
}

// A broadcast of more than one element, to which the other operands have to be equal.
const Node* leading_broadcast(const Graph& graph, const Node& node) {
  const Node* uniform = nullptr;
  for (const Value& operand : node.operands) {
    const Node* candidate = node_of(graph, operand, Op::broadcast);
    if (!candidate) continue;
    if (!has_one_element(graph.type(candidate->operands[0]))) return candidate;
    if (!uniform) uniform = candidate;
  }
  return uniform;
}

std::optional<Value> sink_broadcast(Rebuilder& r, const Node& node) {
  const Graph& graph = r.result();
  const Node* view = leading_broadcast(graph, node);
  if (!view) return std::nullopt;
  const Shape& source = graph.type(view->operands[0]).shape;
  std::vector<Value> operands;
  std::vector<bool> uniform;
  for (const Value& operand : node.operands) {
    const Node* other = node_of(graph, operand, Op::broadcast);
    if (other && graph.type(other->operands[0]).shape == source && other->attributes == view->attributes) {
      operands.push_back(other->operands[0]);
      uniform.push_back(false);
    } else if (const std::optional<Value> one = uniform_source(graph, operand)) {
      operands.push_back(*one);
      uniform.push_back(true);
    } else {
      return std::nullopt;
    }
  }
  for (size_t i = 0; i < operands.size(); ++i)
    if (uniform[i]) operands[i] = spread(r.builder(), operands[i], source);
  return view_below(r, *view, map_over(r, node, std::move(operands)), node.results[0].shape);
}

// For each result dimension of a reshape the operand dimension that it is: those at both ends that agree.
std::vector<int> kept_dims(const Shape& from, const Shape& to) {
  std::vector<int> kept(to.size(), -1);
  const size_t common = std::min(from.size(), to.size());
  size_t head = 0, tail = 0;
  for (; head < common && from[head] == to[head]; ++head) kept[head] = static_cast<int>(head);
  for (; head + tail < common && from[from.size() - 1 - tail] == to[to.size() - 1 - tail]; ++tail)
    kept[to.size() - 1 - tail] = static_cast<int>(from.size() - 1 - tail);
  return kept;
}

// An operand of a map, before the reshape that another operand goes through.
class Unreshaped {
 public:
  Unreshaped(Rebuilder& r, const Shape& from, const Shape& to)
      : r_(r), from_(from), kept_(kept_dims(from, to)) {}

  bool possible(Value operand) const {
    const Graph& graph = r_.result();
    const Node& node = graph.node(operand.node);
    if (node.op == Op::reshape) return graph.type(node.operands[0]).shape == from_;
    if (node.op == Op::constant || uniform_source(graph, operand)) return true;
    if (node.op != Op::broadcast) return false;
    const Shape& shape = graph.type(node.operands[0]).shape;
    const std::vector<int>& dims = graph::attributes<BroadcastAttributes>(node).dims;
    for (size_t d = 0; d < shape.size(); ++d)
      if (!shape[d].is(1) && kept_[static_cast<size_t>(dims[d])] < 0) return false;
    return true;
  }

  Value of(Value operand) const {
    const Graph& graph = r_.result();
    if (const std::optional<Value> one = uniform_source(graph, operand))
      return spread(r_.builder(), *one, from_);
    const Node& node = graph.node(operand.node);
    if (node.op == Op::reshape) return node.operands[0];
    if (node.op == Op::constant) return r_.builder().reshape(operand, from_);
    const Shape& shape = graph.type(node.operands[0]).shape;
    const std::vector<int>& places = graph::attributes<BroadcastAttributes>(node).dims;
    Shape own;  // without the dimensions of 1 that the reshape drops
    std::vector<int> dims;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int place = kept_[static_cast<size_t>(places[d])];
      if (place < 0) continue;
      own.push_back(shape[d]);
      dims.push_back(place);
    }
    const Value source = r_.builder().reshape(node.operands[0], std::move(own));
    return r_.builder().broadcast(source, from_, std::move(dims));
  }

 private:
  Rebuilder& r_;
  Shape from_;
  std::vector<int> kept_;
};

std::optional<Value> sink_reshape(Rebuilder& r, const Node& node) {
  const Graph& graph = r.result();
  const Node* view = nullptr;
  for (const Value& operand : node.operands)
    if (!view) view = node_of(graph, operand, Op::reshape);
  if (!view) return std::nullopt;
  const Unreshaped unreshaped(r, graph.type(view->operands[0]).shape, node.results[0].shape);
  for (const Value& operand : node.operands)
    if (!unreshaped.possible(operand)) return std::nullopt;
  std::vector<Value> operands;
  for (const Value& operand : node.operands) operands.push_back(unreshaped.of(operand));
  return view_below(r, *view, map_over(r, node, std::move(operands)), node.results[0].shape);
}

}  // namespace

Rewritten sink_views(Graph graph, const RewriteContext&) {
  Rebuilder rebuilder(std::move(graph));
  for (NodeId id = 0; id < rebuilder.size(); ++id) {
    const Node& node = rebuilder.begin(id);
    std::optional<Value> value;
    if (node.op == Op::map) value = sink_broadcast(rebuilder, node);
    // Shapes of one element have no end to move to: each would sink past the other.
    if (node.op == Op::map && !value && !has_one_element(node.results[0]))
      value = sink_reshape(rebuilder, node);
    if (value) {
      rebuilder.replace(id, *value, Rebuilder::Sources::leave);
    } else {
      rebuilder.keep(id);
    }
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite
