#include "kernel/passes/hoist_invariants.h"

#include <map>

#include "kernel/passes/loops.h"
#include "kernel/visit.h"

namespace fusewise::kernel {
namespace {

class LoopInvariants {
 public:
  LoopInvariants(Kernel& kernel, Builder& builder, const AliasRoots& roots, StmtId loop)
      : kernel_(kernel),
        builder_(builder),
        loop_(kernel.stmt(loop)),
        effects_(effects_of(kernel, roots, loop)),
        is_invariant_(kernel, roots, effects_) {}

  StmtId rewritten() {
    const StmtId body = statements_of(loop_.children[0]);
    if (lets_.empty()) return body == loop_.children[0] ? none : same_loop(body);
    std::vector<StmtId> statements = lets_;
    statements.push_back(same_loop(body));
    return builder_.block(std::move(statements));
  }

 private:
  StmtId same_loop(StmtId body) {
    return builder_.loop(loop_.loop, loop_.target, loop_.a, loop_.b, loop_.value, body);
  }

  // Only statements that every iteration reaches: what lies in inner loops and branches may never run.
  StmtId statements_of(StmtId id) {
    Stmt stmt = kernel_.stmt(id);
    if (stmt.kind == StmtKind::block) {
      std::vector<StmtId> children;
      for (StmtId child : stmt.children) children.push_back(statements_of(child));
      return children == stmt.children ? id : builder_.block(std::move(children));
    }
    const bool is_access =
        stmt.kind == StmtKind::store || stmt.kind == StmtKind::prefetch || stmt.kind == StmtKind::alias;
    ExprId* const values[3] = {is_access ? nullptr : &stmt.a, &stmt.b, &stmt.c};
    for (ExprId* value : values)
      if (value != nullptr && *value != none) *value = replace(*value);
    return remade(kernel_, builder_, id, std::move(stmt));
  }

  bool is_worth_it(const Expr& expr) const {
    if (expr.kind == ExprKind::fma) return true;
    const bool is_integer_index = expr.type.element == DataType::int64;
    if (expr.kind == ExprKind::native) return true;
    if (expr.kind != ExprKind::apply) return false;
    return !is_integer_index || expr.op == ScalarOp::div || expr.op == ScalarOp::mod ||
           expr.op == ScalarOp::remainder || expr.op == ScalarOp::cast;
  }

  // Whether evaluating it a little early, on lanes and rounds that never happen, can do no harm.
  bool can_move(ExprId id) {
    bool possible = true;
    ExpressionVisitor visitor(kernel_);
    visitor.visit(id, [&](ExprId part) {
      if (kernel_.expr(part).kind == ExprKind::subgroup_reduce) possible = false;
    });
    return possible;
  }

  ExprId replace(ExprId id) {
    if (auto found = replaced_.find(id); found != replaced_.end()) return found->second;
    const Expr expr = kernel_.expr(id);
    ExprId result = id;
    if (is_invariant_(id)) {
      if (is_worth_it(expr) && can_move(id))
        result = bound(id);
      else if (expr.kind == ExprKind::broadcast)
        result = rebuilt(expr);
    } else {
      result = rebuilt(expr);
    }
    return replaced_[id] = result;
  }

  ExprId rebuilt(const Expr& expr) {
    Expr changed = expr;
    for (ExprId* operand : {&changed.a, &changed.b, &changed.c})
      if (*operand != none && !(expr.kind == ExprKind::load && operand == &changed.a))
        *operand = replace(*operand);
    return changed == expr ? builder_.share(expr) : rebuild(builder_, kernel_, changed);
  }

  ExprId bound(ExprId id) {
    const VariableId variable = builder_.variable("invariant", kernel_.expr(id).type);
    lets_.push_back(builder_.let(variable, guarded(id)));
    return builder_.read(variable);
  }

  // The expression with its loads masked by the loop's running at all.
  ExprId guarded(ExprId id) {
    const ExprId runs = builder_.less(loop_.a, loop_.b);
    if (builder_.constant_value(runs).value_or(0) != 0 || !contains_load(kernel_, id)) return id;
    Rewriter rewriter(kernel_, builder_, [&](ExprId, const Expr& expr) -> ExprId {
      if (expr.kind != ExprKind::load) return none;
      const ExprId condition = builder_.broadcast(runs, expr.type.lanes);
      const ExprId mask = expr.b == none ? condition : builder_.logical_and(condition, expr.b);
      return builder_.load(static_cast<BufferId>(expr.value), expr.a, mask);
    });
    return rewriter.rewrite(id);
  }

  Kernel& kernel_;
  Builder& builder_;
  const Stmt loop_;
  Effects effects_;
  Invariance is_invariant_;
  std::map<ExprId, ExprId> replaced_;
  std::vector<StmtId> lets_;
};

}  // namespace

Kernel hoist_invariants(Kernel kernel) {
  Builder builder = Builder::resume(kernel);
  const AliasRoots roots(kernel);
  Rewriter* parts = nullptr;
  Rewriter rewriter(kernel, builder, {}, [&](StmtId id) -> StmtId {
    const Stmt stmt = kernel.stmt(id);
    if (stmt.kind != StmtKind::loop) return none;
    const StmtId inner = parts->rewrite_parts(id);
    if (stmt.loop == LoopKind::block || kernel.stmt(inner).kind != StmtKind::loop) return inner;
    const StmtId result = LoopInvariants(kernel, builder, roots, inner).rewritten();
    return result == none ? inner : result;
  });
  parts = &rewriter;
  rewriter.rewrite_phases();
  return kernel;
}

}  // namespace fusewise::kernel
