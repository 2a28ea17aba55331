// Walking and rewriting kernels: what passes, printers and checkers share. Nothing here recurses deeper than
// statements nest or expressions are tall.
#pragma once

#include <functional>
#include <vector>

#include "base/function_ref.h"
#include "kernel/kernel.h"

namespace fusewise::kernel {

// Calls visit(ExprId) for the operands that are there.
template <class Visit>
void for_each_operand(const Expr& expr, Visit&& visit) {
  if (expr.a != none) visit(expr.a);
  if (expr.b != none) visit(expr.b);
  if (expr.c != none) visit(expr.c);
}
// The expressions that the statement itself holds, not those of its children.
template <class Visit>
void for_each_operand(const Stmt& stmt, Visit&& visit) {
  if (stmt.a != none) visit(stmt.a);
  if (stmt.b != none) visit(stmt.b);
  if (stmt.c != none) visit(stmt.c);
}

// Every statement at and below `root`, each before its children, in program order.
void visit_statements(const Kernel& kernel, StmtId root, FunctionRef<void(StmtId)> visit);
// The same over all phases.
void visit_statements(const Kernel& kernel, FunctionRef<void(StmtId)> visit);

// Visits expressions reachable from given roots, operands first, each once in the visitor's life.
class ExpressionVisitor {
 public:
  explicit ExpressionVisitor(const Kernel& kernel) : kernel_(kernel) {}
  void visit(ExprId root, FunctionRef<void(ExprId)> action);

 private:
  const Kernel& kernel_;
  std::vector<bool> seen_;
  std::vector<std::pair<ExprId, bool>> work_;
};

// The expression made again by the builder, so that it folds and simplifies with its (new) operands.
ExprId rebuild(Builder& builder, const Kernel& kernel, const Expr& expr);

// The statement `id` with what `changed` says in its place: expressions, children, a target; `id` where nothing differs.
StmtId remade(const Kernel& kernel, Builder& builder, StmtId id, Stmt changed);

// Rewrites bottom-up with a memo. A rule returns `none` to leave the default: rebuilding from rewritten parts.
class Rewriter {
 public:
  // `expr` is the original with operands already rewritten.
  using ExprRule = std::function<ExprId(ExprId original, const Expr& expr)>;
  // Called before the children are looked at; it may call rewrite() on parts.
  using StmtRule = std::function<StmtId(StmtId original)>;

  Rewriter(Kernel& kernel, Builder& builder, ExprRule expr_rule, StmtRule stmt_rule = {})
      : kernel_(kernel),
        builder_(builder),
        expr_rule_(std::move(expr_rule)),
        stmt_rule_(std::move(stmt_rule)) {}

  ExprId rewrite(ExprId expr);
  // Statements that do not change keep their id.
  StmtId rewrite_statement(StmtId stmt);
  // As rewrite_statement, without asking the statement rule about this very statement.
  StmtId rewrite_parts(StmtId stmt);
  void rewrite_phases();
  // Forgets what was rewritten, for rules whose answer has changed.
  void forget() { memo_.clear(); }

 private:
  Kernel& kernel_;
  Builder& builder_;
  ExprRule expr_rule_;
  StmtRule stmt_rule_;
  std::vector<ExprId> memo_;
};

// `expr` with reads of `variable` replaced.
ExprId substitute_in_expression(Kernel& kernel, Builder& builder, ExprId expr, VariableId variable,
                                ExprId replacement);
// A copy of the statement with reads of `variable` replaced; variables and buffers that it defines are shared with
// the original unless `rename` asks for fresh ones (needed when both end up visible in one place).
StmtId substitute(Kernel& kernel, Builder& builder, StmtId stmt, VariableId variable, ExprId replacement,
                  bool rename = false);

}  // namespace fusewise::kernel
