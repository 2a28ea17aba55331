// Arithmetic. Floats obey few laws: x + 0 turns -0 into 0, x * 0 and x - x lose NaN and infinities, so such
// rules are for integers or for the one zero that is neutral.
#include <cmath>

#include "numerics/error_bound.h"
#include "rewrite/algebra/rule.h"
#include "rewrite/match.h"

namespace fusewise::rewrite {

namespace {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::Value;
using Result = std::optional<Value>;

DataType type_of(const Node& node) { return node.results[0].element; }

// The other operand where one of the two is this number everywhere.
Result beside(const Graph& graph, const Node& node, double number) {
  if (is_uniform(graph, node.operands[1], number)) return node.operands[0];
  if (is_uniform(graph, node.operands[0], number)) return node.operands[1];
  return std::nullopt;
}

Value negated(Rebuilder& r, Value x) { return r.builder().map(ScalarOp::neg, {x}); }

// The operand of a map, whose sources the next node inherits.
Result inside(Rebuilder& r, Value value, ScalarOp op) {
  const Node* node = map_of(r.result(), value, op);
  if (!node) return std::nullopt;
  r.also_from(node->sources);
  return node->operands[0];
}

// x + -0 = x; integers: x + 0 = x
Result add_nothing(Rebuilder& r, const Node& node) {
  return beside(r.result(), node, is_float(type_of(node)) ? -0.0 : 0.0);
}

// a + -b = a - b, -a + b = b - a
Result add_negated(Rebuilder& r, const Node& node) {
  for (size_t i = 0; i < 2; ++i)
    if (const Result b = inside(r, node.operands[i], ScalarOp::neg))
      return r.builder().map(ScalarOp::sub, {node.operands[1 - i], *b});
  return std::nullopt;
}

// x - 0 = x (not x - -0)
Result subtract_nothing(Rebuilder& r, const Node& node) {
  return is_uniform(r.result(), node.operands[1], 0.0) ? Result(node.operands[0]) : std::nullopt;
}

// a - -b = a + b
Result subtract_negated(Rebuilder& r, const Node& node) {
  const Result b = inside(r, node.operands[1], ScalarOp::neg);
  return b ? Result(r.builder().map(ScalarOp::add, {node.operands[0], *b})) : std::nullopt;
}

// x * 1 = x, x * -1 = -x; integers: x * 0 = 0
Result multiply_by_unit(Rebuilder& r, const Node& node) {
  if (const Result x = beside(r.result(), node, 1)) return x;
  if (!is_float(type_of(node))) {
    for (const Value& operand : node.operands)
      if (is_uniform(r.result(), operand, 0)) return operand;
  }
  if (!is_signed(type_of(node))) return std::nullopt;
  const Result x = beside(r.result(), node, -1);
  return x ? Result(negated(r, *x)) : std::nullopt;
}

// -a * -b = a * b, -a / -b = a / b (floats)
Result cancel_signs(Rebuilder& r, const Node& node) {
  const Graph& graph = r.result();
  if (!is_float(type_of(node)) || !map_of(graph, node.operands[0], ScalarOp::neg) ||
      !map_of(graph, node.operands[1], ScalarOp::neg))
    return std::nullopt;
  const Value a = *inside(r, node.operands[0], ScalarOp::neg);
  const Value b = *inside(r, node.operands[1], ScalarOp::neg);
  return r.builder().map(graph::attributes<graph::MapAttributes>(node).op, {a, b});
}

// x / 1 = x, x / -1 = -x
Result divide_by_unit(Rebuilder& r, const Node& node) {
  if (is_uniform(r.result(), node.operands[1], 1)) return node.operands[0];
  if (is_signed(type_of(node)) && is_uniform(r.result(), node.operands[1], -1))
    return negated(r, node.operands[0]);
  return std::nullopt;
}

// x / 2^k = x * 2^-k where 2^-k is a normal number of the type: both round the same exact value once.
Result divide_by_power_of_two(Rebuilder& r, const Node& node) {
  const DataType type = type_of(node);
  const std::optional<Scalar> c = uniform_constant(r.result(), node.operands[1]);
  if (!is_float(type) || !c || !std::isfinite(c->f) || c->f == 0) return std::nullopt;
  int exponent = 0;
  if (std::abs(std::frexp(c->f, &exponent)) != 0.5) return std::nullopt;
  const double inverse = 1 / c->f;
  if (!std::isfinite(inverse) || std::abs(inverse) < least_normal(type) ||
      convert({DataType::float64, inverse, 0}, type).f != inverse)
    return std::nullopt;
  const Value factor = spread(r.builder(), r.builder().scalar(type, inverse), node.results[0].shape);
  return r.builder().map(ScalarOp::mul, {node.operands[0], factor});
}

// -(-x) = x
Result negate_twice(Rebuilder& r, const Node& node) { return inside(r, node.operands[0], ScalarOp::neg); }

// ||x|| = |x|; signed: |-x| = |x|
Result magnitude_of_magnitude(Rebuilder& r, const Node& node) {
  if (map_of(r.result(), node.operands[0], ScalarOp::abs)) return node.operands[0];
  if (!is_signed(type_of(node))) return std::nullopt;
  const Result x = inside(r, node.operands[0], ScalarOp::neg);
  return x ? Result(r.builder().map(ScalarOp::abs, {*x})) : std::nullopt;
}

// round(x) = x where x is rounded already, in whatever direction; or an integer
Result round_twice(Rebuilder& r, const Node& node) {
  if (!is_float(type_of(node))) return node.operands[0];
  for (ScalarOp op : {ScalarOp::ceil, ScalarOp::floor, ScalarOp::round, ScalarOp::trunc})
    if (map_of(r.result(), node.operands[0], op)) return node.operands[0];
  return std::nullopt;
}

// max(x, x) = x, min(x, x) = x
Result extreme_of_equals(Rebuilder&, const Node& node) {
  return node.operands[0] == node.operands[1] ? Result(node.operands[0]) : std::nullopt;
}

// max(x, -inf) = x, min(x, inf) = x
Result extreme_without_bound(Rebuilder& r, const Node& node) {
  if (!is_float(type_of(node))) return std::nullopt;
  return beside(r.result(), node, is_map(node, ScalarOp::max) ? -INFINITY : INFINITY);
}

// max(max(x, a), b) = max(x, max(a, b)) for constants a, b; the same for min. A NaN stays one, and of the
// zeros the greater is +0 in either order.
Result extreme_of_constants(Rebuilder& r, const Node& node) {
  const Graph& graph = r.result();
  const ScalarOp op = graph::attributes<graph::MapAttributes>(node).op;
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<Scalar> b = uniform_constant(graph, node.operands[i]);
    const Node* inner = map_of(graph, node.operands[1 - i], op);
    if (!b || !inner) continue;
    for (size_t k = 0; k < 2; ++k) {
      const std::optional<Scalar> a = uniform_constant(graph, inner->operands[k]);
      if (!a) continue;
      const Value x = inner->operands[1 - k];
      r.also_from(inner->sources);
      const Scalar both[] = {*a, *b};
      const Value bound = r.builder().scalar_of(evaluate(op, both, type_of(node)), type_of(node));
      return r.builder().map(op, {x, spread(r.builder(), bound, node.results[0].shape)});
    }
  }
  return std::nullopt;
}

// x ^ 0 = 1, for NaN too
Result power_of_zero(Rebuilder& r, const Node& node) {
  if (!is_uniform(r.result(), node.operands[1], 0.0) && !is_uniform(r.result(), node.operands[1], -0.0))
    return std::nullopt;
  return spread(r.builder(), r.builder().scalar(type_of(node), 1), node.results[0].shape);
}

constexpr AlgebraRule rows[] = {
    {"add_nothing", Op::map, ScalarOp::add, add_nothing},
    {"add_negated", Op::map, ScalarOp::add, add_negated},
    {"subtract_nothing", Op::map, ScalarOp::sub, subtract_nothing},
    {"subtract_negated", Op::map, ScalarOp::sub, subtract_negated},
    {"multiply_by_unit", Op::map, ScalarOp::mul, multiply_by_unit},
    {"multiply_negated", Op::map, ScalarOp::mul, cancel_signs},
    {"divide_by_unit", Op::map, ScalarOp::div, divide_by_unit},
    {"divide_by_power_of_two", Op::map, ScalarOp::div, divide_by_power_of_two},
    {"divide_negated", Op::map, ScalarOp::div, cancel_signs},
    {"negate_twice", Op::map, ScalarOp::neg, negate_twice},
    {"magnitude_of_magnitude", Op::map, ScalarOp::abs, magnitude_of_magnitude},
    {"ceil_twice", Op::map, ScalarOp::ceil, round_twice},
    {"floor_twice", Op::map, ScalarOp::floor, round_twice},
    {"round_twice", Op::map, ScalarOp::round, round_twice},
    {"trunc_twice", Op::map, ScalarOp::trunc, round_twice},
    {"max_of_equals", Op::map, ScalarOp::max, extreme_of_equals},
    {"min_of_equals", Op::map, ScalarOp::min, extreme_of_equals},
    {"max_without_bound", Op::map, ScalarOp::max, extreme_without_bound},
    {"min_without_bound", Op::map, ScalarOp::min, extreme_without_bound},
    {"max_of_constants", Op::map, ScalarOp::max, extreme_of_constants},
    {"min_of_constants", Op::map, ScalarOp::min, extreme_of_constants},
    {"power_of_zero", Op::map, ScalarOp::pow, power_of_zero},
};

}  // namespace

std::span<const AlgebraRule> arithmetic_rules() { return rows; }

}  // namespace fusewise::rewrite
