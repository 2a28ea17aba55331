#include "kernel/uniformity.h"

#include "kernel/visit.h"

namespace fusewise::kernel {

Uniformity::Uniformity(const Kernel& kernel)
    : kernel_(kernel), variables_(kernel.variables.size()), exprs_(kernel.exprs.size()) {
  // Variables only ever become varying, so this ends.
  for (bool changed = true; changed;) {
    mark_exprs();
    changed = false;
    for (const StmtId phase : kernel.phases) changed |= mark(phase, false);
  }
}

void Uniformity::mark_exprs() {
  // Operands mostly come first; repeat where a pass has changed the order.
  for (bool changed = true; changed;) {
    changed = false;
    for (ExprId id = 0; id < kernel_.exprs.size(); ++id) {
      if (exprs_[id]) continue;
      const Expr& e = kernel_.exprs[id];
      bool varying = e.kind == ExprKind::read && variables_[static_cast<size_t>(e.value)];
      for_each_operand(e, [&](ExprId operand) { varying = varying || exprs_[operand]; });
      if (!varying) continue;
      exprs_[id] = true;
      for_each_operand(e, [&](ExprId operand) { changed = changed || operand > id; });
      changed = true;
    }
  }
}

bool Uniformity::mark_variable(VariableId variable) {
  if (variables_[variable]) return false;
  variables_[variable] = true;
  return true;
}

bool Uniformity::mark(StmtId id, bool divergent) {
  const Stmt& stmt = kernel_.stmts[id];
  bool changed = false;
  if (stmt.kind == StmtKind::loop) {
    const bool parallel = stmt.loop == LoopKind::thread || stmt.loop == LoopKind::lane;
    const bool varying = varies(stmt.a) || varies(stmt.b);
    if (parallel || varying || divergent) changed |= mark_variable(stmt.target);
    divergent = divergent || varying;
  } else if (stmt.kind == StmtKind::let || stmt.kind == StmtKind::assign) {
    // What differs only by control is visible afterwards in mutable variables alone.
    const bool by_control = divergent && stmt.kind == StmtKind::assign;
    if (varies(stmt.a) || by_control) changed |= mark_variable(stmt.target);
  } else if (stmt.kind == StmtKind::branch) {
    divergent = divergent || varies(stmt.a);
  }
  for (const StmtId child : stmt.children) changed |= mark(child, divergent);
  return changed;
}

}  // namespace fusewise::kernel
