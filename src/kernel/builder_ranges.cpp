// What the builder knows about the values of expressions.
#include <algorithm>

#include "kernel/evaluate.h"
#include "kernel/index_math.h"
#include "kernel/kernel.h"

namespace fusewise::kernel {

namespace {

Range range_neg(const Range& a) { return range_mul(a, {-1, -1}); }

Range range_floor_div(const Range& a, const Range& b) {
  if (b.low == b.high && b.low > 0) {
    return {infinite(a.low) ? a.low : floor_divide(a.low, b.low),
            infinite(a.high) ? a.high : floor_divide(a.high, b.low)};
  }
  if (a.low >= 0 && b.low >= 0) return {0, a.high};
  return {};
}

Range range_floor_mod(const Range& a, const Range& b) {
  if (b.low < 0) return {};
  const int64_t below = infinite(b.high) ? highest : std::max<int64_t>(b.high - 1, 0);
  return {0, a.low >= 0 ? std::min(a.high, below) : below};
}

}  // namespace

bool Builder::is_index(ExprId a) const { return kernel_.exprs[a].type == Type{DataType::int64, 1}; }

Builder::Known& Builder::known(VariableId variable) {
  if (variable >= variables_.size())
    variables_.resize(std::max<size_t>(size_t{variable} + 1, kernel_.variables.size()));
  return variables_[variable];
}

void Builder::set_range(VariableId variable, int64_t low, int64_t high) {
  Known& entry = known(variable);
  entry.range = {low, high};
  // What was derived without this knowledge is derived again when next asked for.
  if (entry.read != none && facts_.size() > entry.read) facts_.resize(entry.read);
}

void Builder::set_bound(VariableId variable, ExprId bound) { known(variable).bound = bound; }

Range Builder::range_of_expr(const Expr& e, const std::function<Range(ExprId)>& operand) const {
  if (e.type != Type{DataType::int64, 1}) return {};
  switch (e.kind) {
    case ExprKind::constant:
      return {e.value, e.value};
    case ExprKind::parameter:
      return {0, highest};
    case ExprKind::read: {
      const size_t variable = static_cast<size_t>(e.value);
      return variable < variables_.size() ? variables_[variable].range : Range{};
    }
    case ExprKind::native:
      if (e.native == Native::floor_div) return range_floor_div(operand(e.a), operand(e.b));
      if (e.native == Native::floor_mod) return range_floor_mod(operand(e.a), operand(e.b));
      return {};
    case ExprKind::apply:
      break;
    default:
      return {};
  }
  switch (e.op) {
    case ScalarOp::add:
      return range_add(operand(e.a), operand(e.b));
    case ScalarOp::sub:
      return range_add(operand(e.a), range_neg(operand(e.b)));
    case ScalarOp::mul:
      return range_mul(operand(e.a), operand(e.b));
    case ScalarOp::min: {
      const Range a = operand(e.a), b = operand(e.b);
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    }
    case ScalarOp::max: {
      const Range a = operand(e.a), b = operand(e.b);
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    }
    case ScalarOp::select: {
      const Range a = operand(e.b), b = operand(e.c);
      return {std::min(a.low, b.low), std::max(a.high, b.high)};
    }
    default:
      return {};
  }
}

// Operands come before what uses them, so one pass over what is new suffices.
const Builder::Facts& Builder::facts(ExprId a) {
  while (facts_.size() <= a) {
    const ExprId id = static_cast<ExprId>(facts_.size());
    const Expr& e = kernel_.exprs[id];
    Facts entry;
    entry.range =
        range_of_expr(e, [&](ExprId operand) { return operand < id ? facts_[operand].range : Range{}; });
    if (e.kind == ExprKind::read) entry.rank = static_cast<uint32_t>(e.value) + 1;
    if (e.kind == ExprKind::load) entry.rank = none;
    for (const ExprId operand : {e.a, e.b, e.c})
      if (operand < id) entry.rank = std::max(entry.rank, facts_[operand].rank);
    facts_.push_back(entry);
  }
  return facts_[a];
}

bool Builder::is_bounded(ExprId a) { return facts(a).rank != none && facts(a).range != Range{}; }

Range Builder::range(ExprId a) { return facts(a).range; }

// What outer loops determine first: variables of outer loops are created first.
bool Builder::before(ExprId a, ExprId b) {
  const uint32_t rank_a = facts(a).rank;
  const uint32_t rank_b = facts(b).rank;
  return rank_a != rank_b ? rank_a < rank_b : a < b;
}

namespace {

// The range of a bound of a loop; bounds are small, and this asks for nothing else.
struct BoundRange {
  const Kernel& kernel;
  const std::function<Range(const Expr&, const std::function<Range(ExprId)>&)>& step;
  int budget = 200;
  Range operator()(ExprId id) {
    if (--budget < 0) return {};
    return step(kernel.exprs[id], [this](ExprId operand) { return (*this)(operand); });
  }
};

}  // namespace

// Learns ranges from a statement and all below it. A variable that two statements define is left alone.
void Builder::learn(StmtId root) {
  const std::function<Range(const Expr&, const std::function<Range(ExprId)>&)> step =
      [this](const Expr& e, const std::function<Range(ExprId)>& operand) {
        return range_of_expr(e, operand);
      };
  std::vector<bool> defined(kernel_.variables.size());
  std::vector<StmtId> work = {root};
  while (!work.empty()) {
    const Stmt& stmt = kernel_.stmts[work.back()];
    work.pop_back();
    work.insert(work.end(), stmt.children.rbegin(), stmt.children.rend());
    const bool is_loop = stmt.kind == StmtKind::loop;
    if (!is_loop && stmt.kind != StmtKind::let) continue;
    if (kernel_.variables[stmt.target].type != Type{DataType::int64, 1}) continue;
    Known& entry = known(stmt.target);
    if (defined[stmt.target]) {
      entry = {};
      continue;
    }
    defined[stmt.target] = true;
    const Range first = BoundRange{kernel_, step}(stmt.a);
    entry.range = first;
    if (!is_loop) continue;
    const Range end = BoundRange{kernel_, step}(stmt.b);
    entry.range.high = infinite(end.high) ? end.high : end.high - 1;
    entry.bound = stmt.b;
  }
  facts_.clear();
}

}  // namespace fusewise::kernel
