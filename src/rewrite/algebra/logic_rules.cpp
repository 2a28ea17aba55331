// Booleans, comparisons and selection.
#include "rewrite/algebra/rule.h"
#include "rewrite/match.h"

namespace fusewise::rewrite {

namespace {

using graph::Node;
using graph::Op;
using graph::Value;
using Result = std::optional<Value>;

// not not x = x
Result not_not(Rebuilder& r, const Node& node) {
  const Node* inner = map_of(r.result(), node.operands[0], ScalarOp::not_);
  return inner ? Result(inner->operands[0]) : std::nullopt;
}

// not (a = b) = (a != b), and back: holds for NaN, as not (a < b) = (a >= b) does not
Result not_equal_to(Rebuilder& r, const Node& node) {
  for (const auto& [op, opposite] :
       {std::pair(ScalarOp::equal, ScalarOp::not_equal), std::pair(ScalarOp::not_equal, ScalarOp::equal)}) {
    const Node* inner = map_of(r.result(), node.operands[0], op);
    if (!inner) continue;
    r.also_from(inner->sources);
    const Value a = inner->operands[0], b = inner->operands[1];
    return r.builder().map(opposite, {a, b});
  }
  return std::nullopt;
}

// x and x = x, x or x = x
Result with_itself(Rebuilder&, const Node& node) {
  return node.operands[0] == node.operands[1] ? Result(node.operands[0]) : std::nullopt;
}

// true and x = x, false and x = false; false or x = x, true or x = true
Result with_constant(Rebuilder& r, const Node& node) {
  if (node.results[0].element != DataType::boolean) return std::nullopt;
  const bool is_and = is_map(node, ScalarOp::and_);
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<Scalar> c = uniform_constant(r.result(), node.operands[i]);
    if (c) return (c->i != 0) == is_and ? node.operands[1 - i] : node.operands[i];
  }
  return std::nullopt;
}

// c ? a : a = a
Result select_equals(Rebuilder&, const Node& node) {
  return node.operands[1] == node.operands[2] ? Result(node.operands[1]) : std::nullopt;
}

// true ? a : b = a, false ? a : b = b
Result select_by_constant(Rebuilder& r, const Node& node) {
  const std::optional<Scalar> c = uniform_constant(r.result(), node.operands[0]);
  return c ? Result(node.operands[c->i != 0 ? 1 : 2]) : std::nullopt;
}

// not c ? a : b = c ? b : a
Result select_by_negation(Rebuilder& r, const Node& node) {
  const Node* inner = map_of(r.result(), node.operands[0], ScalarOp::not_);
  if (!inner) return std::nullopt;
  r.also_from(inner->sources);
  const Value c = inner->operands[0];
  return r.builder().map(ScalarOp::select, {c, node.operands[2], node.operands[1]});
}

constexpr AlgebraRule rows[] = {
    {"not_not", Op::map, ScalarOp::not_, not_not},
    {"not_equal_to", Op::map, ScalarOp::not_, not_equal_to},
    {"and_with_itself", Op::map, ScalarOp::and_, with_itself},
    {"or_with_itself", Op::map, ScalarOp::or_, with_itself},
    {"and_with_constant", Op::map, ScalarOp::and_, with_constant},
    {"or_with_constant", Op::map, ScalarOp::or_, with_constant},
    {"select_equals", Op::map, ScalarOp::select, select_equals},
    {"select_by_constant", Op::map, ScalarOp::select, select_by_constant},
    {"select_by_negation", Op::map, ScalarOp::select, select_by_negation},
};

}  // namespace

std::span<const AlgebraRule> logic_rules() { return rows; }

}  // namespace fusewise::rewrite
