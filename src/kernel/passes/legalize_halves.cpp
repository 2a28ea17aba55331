#include "kernel/passes/legalize_halves.h"

#include "kernel/visit.h"

namespace fusewise::kernel {
namespace {

bool is_half(DataType type) { return type == DataType::float16 || type == DataType::bfloat16; }

}  // namespace

Kernel legalize_halves(Kernel kernel) {
  Builder builder = Builder::resume(kernel);
  Rewriter rewriter(kernel, builder, [&](ExprId, const Expr& expr) -> ExprId {
    if (expr.kind != ExprKind::apply || expr.op == ScalarOp::select || expr.op == ScalarOp::cast) return none;
    if (!is_half(kernel.expr(expr.a).type.element)) return none;
    const Type type = expr.type;
    const Type single = {DataType::float32, type.lanes};
    const auto widened = [&](ExprId operand) {
      return operand == none ? none : builder.apply(ScalarOp::cast, single, operand);
    };
    const ExprId a = widened(expr.a);
    const ExprId b = widened(expr.b);
    if (class_of(expr.op) == ScalarClass::compare) return builder.apply(expr.op, type, a, b);
    return builder.apply(ScalarOp::cast, type, builder.apply(expr.op, single, a, b));
  });
  rewriter.rewrite_phases();
  return kernel;
}

}  // namespace fusewise::kernel
