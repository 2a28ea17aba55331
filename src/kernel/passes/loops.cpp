#include "kernel/passes/loops.h"

#include <algorithm>

#include "kernel/visit.h"

namespace fusewise::kernel {

std::optional<int64_t> trip_count(Builder& builder, const Stmt& loop) {
  const std::optional<int64_t> length = builder.constant_value(builder.sub(loop.b, loop.a));
  if (!length) return std::nullopt;
  return *length <= 0 ? 0 : (*length + loop.value - 1) / loop.value;
}

AliasRoots::AliasRoots(const Kernel& kernel) : roots_(kernel.buffers.size()) {
  for (BufferId i = 0; i < roots_.size(); ++i) roots_[i] = i;
  for (const Stmt& stmt : kernel.stmts)
    if (stmt.kind == StmtKind::alias) roots_[stmt.target] = static_cast<BufferId>(stmt.value);
  for (BufferId& root : roots_)
    while (roots_[root] != root) root = roots_[root];
}

bool AliasRoots::never_changes(const Kernel& kernel, BufferId buffer) const {
  const Buffer& about = kernel.buffers[root(buffer)];
  return about.scope == Scope::argument && !about.written && about.no_alias;
}

Effects effects_of(const Kernel& kernel, const AliasRoots& roots, StmtId stmt) {
  Effects effects;
  effects.variables.resize(kernel.variables.size());
  effects.written.resize(kernel.buffers.size());
  effects.defined.resize(kernel.buffers.size());
  visit_statements(kernel, stmt, [&](StmtId id) {
    const Stmt& s = kernel.stmt(id);
    switch (s.kind) {
      case StmtKind::loop:
      case StmtKind::let:
      case StmtKind::assign:
        effects.variables[s.target] = true;
        break;
      case StmtKind::allocate:
      case StmtKind::alias:
        effects.defined[s.target] = true;
        break;
      case StmtKind::store:
        effects.written[roots.root(s.target)] = true;
        break;
      case StmtKind::barrier:
        effects.written.assign(kernel.buffers.size(), true);
        break;
      default:
        break;
    }
  });
  return effects;
}

bool Effects::any_write_may_touch(const Kernel& kernel, const AliasRoots& roots, BufferId buffer) const {
  const BufferId root = roots.root(buffer);
  if (written[root]) return true;
  const Buffer& about = kernel.buffers[root];
  if (about.scope != Scope::argument || about.no_alias) return false;
  for (BufferId other = 0; other < written.size(); ++other)
    if (written[other] && kernel.buffers[other].scope == Scope::argument && !kernel.buffers[other].no_alias)
      return true;
  return false;
}

bool Invariance::operator()(ExprId expr) {
  if (expr == none) return true;
  if (known_.size() < kernel_.exprs.size()) known_.resize(kernel_.exprs.size());
  if (known_[expr] != 0) return known_[expr] == 2;
  const bool result = compute(kernel_.expr(expr));
  known_[expr] = result ? 2 : 1;
  return result;
}

bool Invariance::compute(const Expr& expr) {
  if (expr.kind == ExprKind::read) {
    const size_t variable = static_cast<size_t>(expr.value);
    if (variable < effects_.variables.size() && effects_.variables[variable]) return false;
  }
  if (expr.kind == ExprKind::load) {
    const BufferId buffer = static_cast<BufferId>(expr.value);
    if (buffer < effects_.defined.size() && effects_.defined[buffer]) return false;
    if (effects_.any_write_may_touch(kernel_, roots_, buffer)) return false;
  }
  const ExprId operands[3] = {expr.a, expr.b, expr.c};
  return std::all_of(std::begin(operands), std::end(operands),
                     [&](ExprId operand) { return (*this)(operand); });
}

bool contains_load(const Kernel& kernel, ExprId expr) {
  bool found = false;
  ExpressionVisitor visitor(kernel);
  visitor.visit(expr, [&](ExprId id) { found = found || kernel.expr(id).kind == ExprKind::load; });
  return found;
}

}  // namespace fusewise::kernel
