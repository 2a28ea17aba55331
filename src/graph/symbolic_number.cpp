#include "graph/symbolic_number.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "numerics/scalar_op.h"

namespace fusewise::graph {

namespace {

using Number = std::optional<Dim>;

// Whole numbers below this are exact in float32.
constexpr double most_whole = 0x1p24;

// 1, 0, or not known.
Number is_less(const Dim& a, const Dim& b) {
  const Dim difference = a - b;
  if (const auto high = difference.upper_bound(); high && *high < 0) return Dim(1);
  if (const auto low = difference.lower_bound(); low && *low >= 0) return Dim(0);
  return std::nullopt;
}
Number is_equal(const Dim& a, const Dim& b) {
  if (a == b) return Dim(1);
  const Number below = is_less(a, b), above = is_less(b, a);
  if ((below && below->is(1)) || (above && above->is(1))) return Dim(0);
  return std::nullopt;
}
Number negated(const Number& truth) { return truth ? Number(Dim(1) - *truth) : std::nullopt; }

Number of_map(const Node& node, const std::vector<Number>& x) {
  const ScalarOp op = attributes<MapAttributes>(node).op;
  const bool is_truth = node.results[0].element == DataType::boolean;
  // One of two may decide.
  if (is_truth && (op == ScalarOp::and_ || op == ScalarOp::or_)) {
    const int64_t decisive = op == ScalarOp::and_ ? 0 : 1;
    if (std::ranges::any_of(x, [&](const Number& n) { return n && n->is(decisive); })) return Dim(decisive);
  }
  if (!std::ranges::all_of(x, [](const Number& n) { return n.has_value(); })) return std::nullopt;
  switch (op) {
    case ScalarOp::add:
      return *x[0] + *x[1];
    case ScalarOp::sub:
      return *x[0] - *x[1];
    case ScalarOp::mul:
      return *x[0] * *x[1];
    case ScalarOp::neg:
      return Dim(0) - *x[0];
    case ScalarOp::min:
      return min(*x[0], *x[1]);
    case ScalarOp::max:
      return max(*x[0], *x[1]);
    case ScalarOp::cast:
      return is_truth ? negated(is_equal(*x[0], 0)) : x[0];
    case ScalarOp::less:
      return is_less(*x[0], *x[1]);
    case ScalarOp::less_equal:
      return negated(is_less(*x[1], *x[0]));
    case ScalarOp::greater:
      return is_less(*x[1], *x[0]);
    case ScalarOp::greater_equal:
      return negated(is_less(*x[0], *x[1]));
    case ScalarOp::equal:
      return is_equal(*x[0], *x[1]);
    case ScalarOp::not_equal:
      return negated(is_equal(*x[0], *x[1]));
    case ScalarOp::and_:
      return is_truth ? Number(*x[0] * *x[1]) : std::nullopt;
    case ScalarOp::or_:
      return is_truth ? Number(max(*x[0], *x[1])) : std::nullopt;
    case ScalarOp::not_:
      return is_truth ? negated(x[0]) : std::nullopt;
    default:
      return std::nullopt;
  }
}

bool is_number(const TensorType& type) { return is_computable(type.element) && product(type.shape).is(1); }

class Evaluation {
 public:
  Evaluation(const Graph& graph, const SymbolicGivens& givens) : graph_(graph), givens_(givens) {}

  Number of(Value value) {
    const std::vector<NodeId> cone = cone_of(value.node);
    for (NodeId id : cone) numbers_[id] = evaluate(id);
    return numbers_[value.node];
  }

 private:
  // The nodes that the value needs, operands first.
  std::vector<NodeId> cone_of(NodeId id) const {
    std::vector<NodeId> cone, pending = {id};
    std::vector<bool> seen(graph_.size(), false);
    while (!pending.empty()) {
      const NodeId next = pending.back();
      pending.pop_back();
      if (seen[next]) continue;
      seen[next] = true;
      cone.push_back(next);
      if (is_number(graph_.node(next).results[0]) && kind_of(graph_.node(next).op) != Kind::control)
        for (const Value& operand : graph_.node(next).operands) pending.push_back(operand.node);
    }
    std::ranges::sort(cone);
    return cone;
  }

  Number evaluate(NodeId id) const {
    const Node& node = graph_.node(id);
    if (kind_of(node.op) == Kind::control || !is_number(node.results[0])) return std::nullopt;
    std::vector<Number> operands;
    for (const Value& operand : node.operands) {
      const auto known = numbers_.find(operand.node);
      operands.push_back(known == numbers_.end() ? std::nullopt : known->second);
    }
    switch (node.op) {
      case Op::input: {
        const auto given = givens_.values.find({id, 0});
        return given == givens_.values.end() ? std::nullopt : Number(given->second);
      }
      case Op::constant: {
        const Scalar number =
            load_scalar(constant_of(graph_, {id, 0})->bytes.data(), node.results[0].element);
        if (number.type == DataType::uint64 && number.i < 0) return std::nullopt;
        if (!is_float(number.type)) return Dim(number.i);
        if (!(std::abs(number.f) < most_whole) || number.f != std::trunc(number.f)) return std::nullopt;
        return Dim(static_cast<int64_t>(number.f));
      }
      case Op::dims:
        return attributes<DimsAttributes>(node).dims[0].substitute(givens_.symbols);
      case Op::map:
        return of_map(node, operands);
      case Op::broadcast:
      case Op::reshape:
      case Op::transpose:
        return operands[0];
      default:
        return std::nullopt;
    }
  }

  const Graph& graph_;
  const SymbolicGivens& givens_;
  std::map<NodeId, Number> numbers_;
};

}  // namespace

std::optional<Dim> symbolic_number(const Graph& graph, Value value, const SymbolicGivens& givens) {
  return Evaluation(graph, givens).of(value);
}

}  // namespace fusewise::graph
