#include "kernel/passes/promote_registers.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "kernel/visit.h"

namespace fusewise::kernel {
namespace {

constexpr int64_t most_lanes = 64;
constexpr size_t most_variables = 1024;

// Elements base, base + stride, ... that one access touches.
struct Access {
  int64_t base = 0;
  int64_t stride = 0;
  int lanes = 1;
  int64_t low() const { return stride < 0 ? base + stride * (lanes - 1) : base; }
  int64_t high() const { return stride < 0 ? base : base + stride * (lanes - 1); }
  int64_t element(int lane) const { return base + stride * lane; }
};

// Elements [low, high] that one variable holds.
struct Unit {
  int64_t low = 0, high = 0;
  VariableId variable = none;
  int lanes() const { return static_cast<int>(high - low + 1); }
};

struct Candidate {
  int allocations = 0;
  bool possible = true;
  std::vector<Unit> units;  // while collecting: one per access
};

std::optional<Access> constant_access(const Kernel& kernel, ExprId index) {
  const Expr& expr = kernel.expr(index);
  Access access;
  access.lanes = expr.type.lanes;
  const Expr* base = &expr;
  if (expr.kind == ExprKind::ramp || expr.kind == ExprKind::broadcast) {
    access.stride = expr.kind == ExprKind::ramp ? expr.value : 0;
    base = &kernel.expr(expr.a);
  }
  if (base->kind != ExprKind::constant) return std::nullopt;
  access.base = base->value;
  return access;
}

class Promoter {
 public:
  explicit Promoter(Kernel& kernel)
      : kernel_(kernel), builder_(Builder::resume(kernel)), candidates_(kernel.buffers.size()) {}

  void run() {
    collect();
    for (BufferId buffer = 0; buffer < candidates_.size(); ++buffer) settle(buffer);
    Rewriter* parts = nullptr;
    Rewriter rewriter(
        kernel_, builder_, [&](ExprId, const Expr& expr) { return rewritten_load(expr); },
        [&](StmtId id) -> StmtId {
          const Stmt stmt = kernel_.stmt(id);
          const bool concerns = stmt.kind == StmtKind::allocate || stmt.kind == StmtKind::store;
          if (!concerns || !is_promoted(stmt.target)) return none;
          if (stmt.kind == StmtKind::allocate) return declarations(stmt.target);
          const ExprId mask = stmt.c == none ? none : parts->rewrite(stmt.c);
          return assignment(stmt.target, *constant_access(kernel_, stmt.a), parts->rewrite(stmt.b), mask);
        });
    parts = &rewriter;
    rewriter.rewrite_phases();
  }

 private:
  bool is_promoted(BufferId buffer) const {
    return buffer < candidates_.size() && candidates_[buffer].possible;
  }

  void note(BufferId buffer, ExprId index) {
    const std::optional<Access> access = constant_access(kernel_, index);
    if (access)
      candidates_[buffer].units.push_back({access->low(), access->high(), none});
    else
      candidates_[buffer].possible = false;
  }

  void collect() {
    for (BufferId i = 0; i < candidates_.size(); ++i)
      candidates_[i].possible = kernel_.buffers[i].scope == Scope::registers;
    ExpressionVisitor visitor(kernel_);
    visit_statements(kernel_, [&](StmtId id) {
      const Stmt& stmt = kernel_.stmt(id);
      if (stmt.kind == StmtKind::allocate) ++candidates_[stmt.target].allocations;
      if (stmt.kind == StmtKind::store) note(stmt.target, stmt.a);
      if (stmt.kind == StmtKind::prefetch) candidates_[stmt.target].possible = false;
      if (stmt.kind == StmtKind::alias)
        candidates_[stmt.target].possible = candidates_[static_cast<size_t>(stmt.value)].possible = false;
      for_each_operand(stmt, [&](ExprId operand) {
        visitor.visit(operand, [&](ExprId expr_id) {
          const Expr& expr = kernel_.expr(expr_id);
          if (expr.kind == ExprKind::load) note(static_cast<BufferId>(expr.value), expr.a);
        });
      });
    });
  }

  // Joins the accesses that share elements into the units that become variables.
  void settle(BufferId buffer) {
    Candidate& candidate = candidates_[buffer];
    if (candidate.allocations != 1) candidate.possible = false;
    if (!candidate.possible) return;
    std::sort(candidate.units.begin(), candidate.units.end(),
              [](const Unit& a, const Unit& b) { return a.low < b.low; });
    std::vector<Unit> joined;
    for (const Unit& unit : candidate.units) {
      if (!joined.empty() && unit.low <= joined.back().high)
        joined.back().high = std::max(joined.back().high, unit.high);
      else
        joined.push_back(unit);
    }
    const auto size = builder_.constant_value(kernel_.buffers[buffer].size);
    const bool fits = std::all_of(joined.begin(), joined.end(), [&](const Unit& unit) {
      return unit.lanes() <= most_lanes && unit.low >= 0 && size && unit.high < *size;
    });
    candidate.possible = fits && joined.size() <= most_variables;
    candidate.units = std::move(joined);
    if (!candidate.possible) return;
    const Buffer about = kernel_.buffers[buffer];
    for (Unit& unit : candidate.units) {
      const Type type = {about.element, static_cast<uint16_t>(unit.lanes())};
      unit.variable = builder_.variable(fmt::format("{}_{}", about.name, unit.low), type, true);
    }
  }

  const Unit& unit_of(BufferId buffer, int64_t element) const {
    const std::vector<Unit>& units = candidates_[buffer].units;
    auto after = std::upper_bound(units.begin(), units.end(), element,
                                  [](int64_t e, const Unit& unit) { return e < unit.low; });
    return *std::prev(after);
  }

  StmtId declarations(BufferId buffer) {
    std::vector<StmtId> statements;
    for (const Unit& unit : candidates_[buffer].units)
      statements.push_back(
          builder_.assign(unit.variable, builder_.constant(kernel_.variables[unit.variable].type, 0)));
    return builder_.block(std::move(statements));
  }

  static std::vector<int> lanes_in(const Unit& unit, const Access& access) {
    std::vector<int> lanes;
    for (int lane = 0; lane < access.lanes; ++lane)
      lanes.push_back(static_cast<int>(access.element(lane) - unit.low));
    return lanes;
  }

  ExprId rewritten_load(const Expr& expr) {
    if (expr.kind != ExprKind::load || !is_promoted(static_cast<BufferId>(expr.value))) return none;
    const BufferId buffer = static_cast<BufferId>(expr.value);
    const Access access = *constant_access(kernel_, expr.a);
    const Unit& unit = unit_of(buffer, access.low());
    ExprId value = builder_.read(unit.variable);
    if (unit.lanes() > 1)
      value = builder_.shuffle(value, none, lanes_in(unit, access));
    else if (access.lanes > 1)
      value = builder_.broadcast(value, access.lanes);
    if (expr.b == none) return value;
    return builder_.apply(ScalarOp::select, expr.type, expr.b, value, builder_.constant(expr.type, 0));
  }

  StmtId assignment(BufferId buffer, const Access& access, ExprId value, ExprId mask) {
    const Unit& unit = unit_of(buffer, access.low());
    const ExprId old = builder_.read(unit.variable);
    const std::vector<int> lanes = lanes_in(unit, access);
    if (mask != none) {
      const ExprId before = unit.lanes() > 1 ? builder_.shuffle(old, none, lanes) : old;
      value = builder_.apply(ScalarOp::select, kernel_.expr(value).type, mask, value, before);
    }
    const bool whole = access.lanes == unit.lanes() && (access.lanes == 1 || access.stride == 1);
    if (!whole) {
      std::vector<int> pattern(static_cast<size_t>(unit.lanes()));
      for (int i = 0; i < unit.lanes(); ++i) pattern[static_cast<size_t>(i)] = i;
      for (int lane = 0; lane < access.lanes; ++lane)
        pattern[static_cast<size_t>(lanes[static_cast<size_t>(lane)])] = unit.lanes() + lane;
      value = builder_.shuffle(old, value, pattern);
    }
    return builder_.assign(unit.variable, value);
  }

  Kernel& kernel_;
  Builder builder_;
  std::vector<Candidate> candidates_;
};

}  // namespace

Kernel promote_registers(Kernel kernel) {
  Promoter(kernel).run();
  return kernel;
}

}  // namespace fusewise::kernel
