#include "kernel/visit.h"

#include <algorithm>

namespace fusewise::kernel {

void visit_statements(const Kernel& kernel, StmtId root, FunctionRef<void(StmtId)> visit) {
  std::vector<StmtId> work = {root};
  while (!work.empty()) {
    const StmtId id = work.back();
    work.pop_back();
    visit(id);
    const std::vector<StmtId>& children = kernel.stmts[id].children;
    work.insert(work.end(), children.rbegin(), children.rend());
  }
}

void visit_statements(const Kernel& kernel, FunctionRef<void(StmtId)> visit) {
  for (const StmtId phase : kernel.phases) visit_statements(kernel, phase, visit);
}

void ExpressionVisitor::visit(ExprId root, FunctionRef<void(ExprId)> action) {
  if (seen_.size() < kernel_.exprs.size()) seen_.resize(kernel_.exprs.size());
  work_.push_back({root, false});
  while (!work_.empty()) {
    const auto [id, operands_done] = work_.back();
    if (seen_[id]) {
      work_.pop_back();
      continue;
    }
    if (operands_done) {
      seen_[id] = true;
      work_.pop_back();
      action(id);
      continue;
    }
    work_.back().second = true;
    const Expr& e = kernel_.exprs[id];
    for (const ExprId operand : {e.c, e.b, e.a})
      if (operand != none && !seen_[operand]) work_.push_back({operand, false});
  }
}

ExprId rebuild(Builder& builder, const Kernel& kernel, const Expr& expr) {
  const Expr e = expr;
  const bool is_scalar_index = e.type == Type{DataType::int64, 1};
  switch (e.kind) {
    case ExprKind::constant:
    case ExprKind::parameter:
    case ExprKind::read:
    case ExprKind::subgroup_reduce:
      return builder.share(e);
    case ExprKind::apply:
      if (e.op == ScalarOp::and_ && e.type.element == DataType::boolean) return builder.logical_and(e.a, e.b);
      return builder.apply(e.op, e.type, e.a, e.b, e.c);
    case ExprKind::native:
      if (is_scalar_index && e.native == Native::floor_div) return builder.floor_div(e.a, e.b);
      if (is_scalar_index && e.native == Native::floor_mod) return builder.floor_mod(e.a, e.b);
      return builder.native(e.native, e.type, e.a, e.b);
    case ExprKind::fma:
      return builder.fma(e.a, e.b, e.c);
    case ExprKind::bitcast:
      return builder.bitcast(e.type, e.a);
    case ExprKind::load:
      return builder.load(static_cast<BufferId>(e.value), e.a, e.b);
    case ExprKind::ramp:
      return builder.ramp(e.a, e.value, e.type.lanes);
    case ExprKind::broadcast:
      return builder.broadcast(e.a, e.type.lanes);
    case ExprKind::shuffle:
      return builder.shuffle(e.a, e.b, kernel.patterns[static_cast<size_t>(e.value)]);
  }
  return builder.share(e);
}

ExprId Rewriter::rewrite(ExprId root) {
  if (memo_.size() < kernel_.exprs.size()) memo_.resize(kernel_.exprs.size(), none);
  if (memo_[root] != none) return memo_[root];
  std::vector<std::pair<ExprId, bool>> work = {{root, false}};
  while (!work.empty()) {
    const auto [id, operands_done] = work.back();
    if (memo_[id] != none) {
      work.pop_back();
      continue;
    }
    const Expr original = kernel_.exprs[id];
    if (!operands_done) {
      work.back().second = true;
      for_each_operand(original, [&](ExprId operand) {
        if (memo_[operand] == none) work.push_back({operand, false});
      });
      continue;
    }
    work.pop_back();
    Expr changed = original;
    for (ExprId* operand : {&changed.a, &changed.b, &changed.c})
      if (*operand != none) *operand = memo_[*operand];
    ExprId result = expr_rule_ ? expr_rule_(id, changed) : none;
    if (result == none) result = changed == original ? id : rebuild(builder_, kernel_, changed);
    if (memo_.size() < kernel_.exprs.size()) memo_.resize(kernel_.exprs.size(), none);
    memo_[id] = result;
  }
  return memo_[root];
}

StmtId remade(const Kernel& kernel, Builder& builder, StmtId id, Stmt stmt) {
  const Stmt& old = kernel.stmt(id);
  if (stmt.a == old.a && stmt.b == old.b && stmt.c == old.c && stmt.children == old.children) return id;
  switch (stmt.kind) {
    case StmtKind::block:
      return builder.block(std::move(stmt.children));
    case StmtKind::loop:
      return builder.loop(stmt.loop, stmt.target, stmt.a, stmt.b, stmt.value, stmt.children[0]);
    case StmtKind::branch:
      return builder.branch(stmt.a, stmt.children[0], stmt.children.size() > 1 ? stmt.children[1] : none);
    case StmtKind::let:
      return builder.let(stmt.target, stmt.a);
    case StmtKind::assign:
      return builder.assign(stmt.target, stmt.a);
    case StmtKind::allocate:
      return builder.allocate(stmt.target);
    case StmtKind::alias:
      return builder.alias(stmt.target, static_cast<BufferId>(stmt.value), stmt.a);
    case StmtKind::store:
      return builder.store(stmt.target, stmt.a, stmt.b, stmt.c);
    case StmtKind::barrier:
      return builder.barrier();
    case StmtKind::prefetch:
      return builder.prefetch(stmt.target, stmt.a, static_cast<int>(stmt.value));
  }
  return id;
}

StmtId Rewriter::rewrite_statement(StmtId id) {
  if (stmt_rule_) {
    if (const StmtId replaced = stmt_rule_(id); replaced != none) return replaced;
  }
  return rewrite_parts(id);
}

StmtId Rewriter::rewrite_parts(StmtId id) {
  Stmt stmt = kernel_.stmts[id];
  for (ExprId* operand : {&stmt.a, &stmt.b, &stmt.c})
    if (*operand != none) *operand = rewrite(*operand);
  for (StmtId& child : stmt.children) child = rewrite_statement(child);
  return remade(kernel_, builder_, id, std::move(stmt));
}

void Rewriter::rewrite_phases() {
  for (StmtId& phase : kernel_.phases) phase = rewrite_statement(phase);
}

ExprId substitute_in_expression(Kernel& kernel, Builder& builder, ExprId expr, VariableId variable,
                                ExprId replacement) {
  Rewriter rewriter(kernel, builder, [&](ExprId, const Expr& e) {
    return e.kind == ExprKind::read && e.value == variable ? replacement : none;
  });
  return rewriter.rewrite(expr);
}

namespace {

// Fresh variables and buffers for those that statements at and below `root` define.
struct Renaming {
  std::vector<VariableId> variables;
  std::vector<BufferId> buffers;

  Renaming(Kernel& kernel, Builder& builder, StmtId root)
      : variables(kernel.variables.size(), none), buffers(kernel.buffers.size(), none) {
    visit_statements(kernel, root, [&](StmtId id) {
      const Stmt& stmt = kernel.stmts[id];
      if (stmt.kind == StmtKind::let || stmt.kind == StmtKind::loop) {
        const Variable old = kernel.variables[stmt.target];
        VariableId& fresh = variables[stmt.target];
        if (fresh != none) return;
        fresh = builder.variable(old.name, old.type, old.is_mutable);
        const Range range = builder.range(builder.read(stmt.target));
        if (range != Range{}) builder.set_range(fresh, range.low, range.high);
      } else if (stmt.kind == StmtKind::allocate || stmt.kind == StmtKind::alias) {
        if (buffers[stmt.target] == none) buffers[stmt.target] = builder.buffer(kernel.buffers[stmt.target]);
      }
    });
  }
  VariableId variable(VariableId old) const {
    return old < variables.size() && variables[old] != none ? variables[old] : old;
  }
  BufferId buffer(BufferId old) const {
    return old < buffers.size() && buffers[old] != none ? buffers[old] : old;
  }
};

}  // namespace

StmtId substitute(Kernel& kernel, Builder& builder, StmtId stmt, VariableId variable, ExprId replacement,
                  bool rename) {
  if (!rename) {
    Rewriter rewriter(kernel, builder, [&](ExprId, const Expr& e) {
      return e.kind == ExprKind::read && e.value == variable ? replacement : none;
    });
    return rewriter.rewrite_statement(stmt);
  }
  const Renaming names(kernel, builder, stmt);
  Rewriter rewriter(kernel, builder, [&](ExprId, const Expr& e) {
    if (e.kind == ExprKind::read) {
      if (e.value == variable) return replacement;
      return builder.read(names.variable(static_cast<VariableId>(e.value)));
    }
    if (e.kind == ExprKind::load) return builder.load(names.buffer(static_cast<BufferId>(e.value)), e.a, e.b);
    return none;
  });
  const std::function<StmtId(StmtId)> copy = [&](StmtId id) -> StmtId {
    const Stmt old = kernel.stmts[id];
    const auto changed = [&](ExprId e) { return e == none ? none : rewriter.rewrite(e); };
    std::vector<StmtId> children;
    for (const StmtId child : old.children) children.push_back(copy(child));
    switch (old.kind) {
      case StmtKind::block:
        return builder.block(std::move(children));
      case StmtKind::loop:
        return builder.loop(old.loop, names.variable(old.target), changed(old.a), changed(old.b), old.value,
                            children[0]);
      case StmtKind::branch:
        return builder.branch(changed(old.a), children[0], children.size() > 1 ? children[1] : none);
      case StmtKind::let:
        return builder.let(names.variable(old.target), changed(old.a));
      case StmtKind::assign:
        return builder.assign(names.variable(old.target), changed(old.a));
      case StmtKind::allocate:
        return builder.allocate(names.buffer(old.target));
      case StmtKind::alias:
        return builder.alias(names.buffer(old.target), names.buffer(static_cast<BufferId>(old.value)),
                             changed(old.a));
      case StmtKind::store:
        return builder.store(names.buffer(old.target), changed(old.a), changed(old.b), changed(old.c));
      case StmtKind::barrier:
        return builder.barrier();
      case StmtKind::prefetch:
        return builder.prefetch(names.buffer(old.target), changed(old.a), static_cast<int>(old.value));
    }
    return id;
  };
  return copy(stmt);
}

}  // namespace fusewise::kernel
