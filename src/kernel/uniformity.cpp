#include "kernel/uniformity.h"

#include "kernel/visit.h"

namespace fusewise::kernel {

Uniformity::Uniformity(const Kernel& kernel)
    : kernel_(kernel),
      variables_(kernel.variables.size()),
      buffers_(kernel.buffers.size()),
      exprs_(kernel.exprs.size()) {
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
      bool varying = (e.kind == ExprKind::read && variables_[static_cast<size_t>(e.value)]) ||
                     (e.kind == ExprKind::load && buffers_[static_cast<size_t>(e.value)]);
      for_each_operand(e, [&](ExprId operand) { varying = varying || exprs_[operand]; });
      if (!varying) continue;
      exprs_[id] = true;
      for_each_operand(e, [&](ExprId operand) { changed = changed || operand > id; });
      changed = true;
    }
  }
}

bool Uniformity::set(std::vector<bool>& marks, size_t index) {
  if (marks[index]) return false;
  marks[index] = true;
  return true;
}

// At one place of shared or global memory all threads find the same; what is private may differ.
bool Uniformity::mark_store(const Stmt& stmt, bool divergent) {
  const Scope scope = kernel_.buffers[stmt.target].scope;
  if (scope != Scope::registers && scope != Scope::scratch) return false;
  if (!divergent && !varies(stmt.a) && !varies(stmt.b) && !varies(stmt.c)) return false;
  return set(buffers_, stmt.target);
}

bool Uniformity::mark(StmtId id, bool divergent) {
  const Stmt& stmt = kernel_.stmts[id];
  bool changed = false;
  if (stmt.kind == StmtKind::loop) {
    const bool parallel = stmt.loop == LoopKind::thread || stmt.loop == LoopKind::lane;
    const bool varying = varies(stmt.a) || varies(stmt.b);
    if (parallel || varying || divergent) changed |= set(variables_, stmt.target);
    divergent = divergent || varying;
  } else if (stmt.kind == StmtKind::let || stmt.kind == StmtKind::assign) {
    // What differs only by control is visible afterwards in mutable variables alone.
    const bool by_control = divergent && stmt.kind == StmtKind::assign;
    if (varies(stmt.a) || by_control) changed |= set(variables_, stmt.target);
  } else if (stmt.kind == StmtKind::branch) {
    divergent = divergent || varies(stmt.a);
  } else if (stmt.kind == StmtKind::store) {
    changed |= mark_store(stmt, divergent);
  } else if (stmt.kind == StmtKind::alias) {
    // The two are one memory.
    const size_t source = static_cast<size_t>(stmt.value);
    if (buffers_[source]) changed |= set(buffers_, stmt.target);
    if (buffers_[stmt.target]) changed |= set(buffers_, source);
  }
  for (const StmtId child : stmt.children) changed |= mark(child, divergent);
  return changed;
}

}  // namespace fusewise::kernel
