#include "kernel/statistics.h"

#include "kernel/visit.h"

namespace fusewise::kernel {

Statistics count(const Kernel& kernel) {
  Statistics result;
  result.phases = static_cast<int64_t>(kernel.phases.size());
  ExpressionVisitor all(kernel);
  visit_statements(kernel, [&](StmtId id) {
    const Stmt& stmt = kernel.stmts[id];
    if (stmt.kind != StmtKind::block) ++result.statements;
    if (stmt.kind == StmtKind::loop) ++result.loops;
    if (stmt.kind == StmtKind::store) ++result.stores;
    if (stmt.kind == StmtKind::barrier) ++result.barriers;
    for_each_operand(stmt, [&](ExprId root) {
      all.visit(root, [&](ExprId expr) {
        const Expr& e = kernel.exprs[expr];
        ++result.expressions;
        if (e.kind == ExprKind::load) ++result.loads;
        if (e.kind == ExprKind::apply && class_of(e.op) == ScalarClass::function) ++result.functions;
      });
    });
  });
  return result;
}

}  // namespace fusewise::kernel
