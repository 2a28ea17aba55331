#include "rewrite/pow_to_multiply.h"

#include <cmath>
#include <optional>

#include "rewrite/match.h"
#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;

bool is_not_negative(const Graph& graph, Value value, int depth);

bool map_is_not_negative(const Graph& graph, const Node& node, int depth) {
  const auto operand = [&](size_t i) { return is_not_negative(graph, node.operands[i], depth - 1); };
  switch (graph::attributes<graph::MapAttributes>(node).op) {
    case ScalarOp::abs:
    case ScalarOp::exp:
      return true;
    case ScalarOp::mul:
      return node.operands[0] == node.operands[1] || (operand(0) && operand(1));
    case ScalarOp::add:
    case ScalarOp::div:
    case ScalarOp::min:
      return operand(0) && operand(1);
    case ScalarOp::max:
      return operand(0) || operand(1);
    case ScalarOp::cast:
      return is_float(graph.type(node.operands[0]).element) && operand(0);
    case ScalarOp::sqrt:
      return operand(0);
    default:
      return false;
  }
}

// At least +0, or NaN; looks only a few nodes up.
bool is_not_negative(const Graph& graph, Value value, int depth) {
  if (depth == 0) return false;
  if (const std::optional<Scalar> number = uniform_constant(graph, value)) return !std::signbit(number->f);
  const Node& node = graph.node(value.node);
  switch (node.op) {
    case Op::map:
      return map_is_not_negative(graph, node, depth);
    case Op::broadcast:
    case Op::reshape:
    case Op::transpose:
      return is_not_negative(graph, node.operands[0], depth - 1);
    case Op::reduce:  // the greatest of no elements is -inf
      return graph::attributes<graph::ReduceAttributes>(node).combine != Combine::max &&
             is_not_negative(graph, node.operands[0], depth - 1);
    default:
      return false;
  }
}

std::optional<Value> multiplied(Rebuilder& r, const Node& node) {
  constexpr int depth = 8;
  if (!is_map(node, ScalarOp::pow)) return std::nullopt;
  const std::optional<Scalar> exponent = uniform_constant(r.result(), node.operands[1]);
  if (!exponent) return std::nullopt;
  const Value x = node.operands[0];
  auto& b = r.builder();
  const auto inverse = [&](Value y) {
    const Value one = spread(b, b.scalar(node.results[0].element, 1), node.results[0].shape);
    return b.map(ScalarOp::div, {one, y});
  };
  if (exponent->f == 1) return x;
  if (exponent->f == -1) return inverse(x);
  if (std::abs(exponent->f) == 0.5) {
    if (!is_not_negative(r.result(), x, depth)) return std::nullopt;
    const Value root = b.map(ScalarOp::sqrt, {x});
    return exponent->f > 0 ? root : inverse(root);
  }
  if (exponent->f != 2 && exponent->f != 3 && exponent->f != 4) return std::nullopt;
  const Value square = b.map(ScalarOp::mul, {x, x});
  if (exponent->f == 2) return square;
  return b.map(ScalarOp::mul, {square, exponent->f == 3 ? x : square});
}

}  // namespace

Rewritten pow_to_multiply(Graph graph, const RewriteContext&) {
  Rebuilder rebuilder(std::move(graph));
  for (NodeId id = 0; id < rebuilder.size(); ++id) {
    const Node& node = rebuilder.begin(id);
    if (const std::optional<Value> value = multiplied(rebuilder, node)) {
      rebuilder.replace(id, *value);
    } else {
      rebuilder.keep(id);
    }
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite
