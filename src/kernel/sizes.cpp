#include "kernel/sizes.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/visit.h"

namespace fusewise::kernel {

Dim size_of(const Kernel& kernel, ExprId id) {
  const Expr& expr = kernel.expr(id);
  const auto a = [&] { return size_of(kernel, expr.a); };
  const auto b = [&] { return size_of(kernel, expr.b); };
  switch (expr.kind) {
    case ExprKind::constant:
      return Dim(expr.value);
    case ExprKind::parameter:
      return Dim::symbol(kernel.parameters[static_cast<size_t>(expr.value)]);
    case ExprKind::native:
      if (expr.native == Native::floor_div) return floor_div(a(), b());
      if (expr.native == Native::floor_mod) return modulo(a(), b());
      break;
    case ExprKind::apply:
      switch (expr.op) {
        case ScalarOp::add:
          return a() + b();
        case ScalarOp::sub:
          return a() - b();
        case ScalarOp::mul:
          return a() * b();
        case ScalarOp::neg:
          return Dim(0) - a();
        case ScalarOp::min:
          return min(a(), b());
        case ScalarOp::max:
          return max(a(), b());
        default:
          break;
      }
      break;
    default:
      break;
  }
  throw InternalError("a size in kernel " + kernel.name + " is no arithmetic on parameters");
}

std::optional<int64_t> shared_bytes(const Kernel& kernel) {
  int64_t most = 0;
  bool is_constant = true;
  for (StmtId phase : kernel.phases) {
    int64_t bytes = 0;
    visit_statements(kernel, phase, [&](StmtId id) {
      const Stmt& stmt = kernel.stmt(id);
      if (stmt.kind != StmtKind::allocate || kernel.buffers[stmt.target].scope != Scope::shared) return;
      const std::optional<int64_t> size = size_of(kernel, kernel.buffers[stmt.target].size).constant();
      is_constant = is_constant && size.has_value();
      bytes += std::max<int64_t>(size.value_or(0), 1) * bytes_of(kernel.buffers[stmt.target].element);
    });
    most = std::max(most, bytes);
  }
  return is_constant ? std::optional(most) : std::nullopt;
}

}  // namespace fusewise::kernel
