#include "kernel/passes/hoist_addresses.h"

#include <fmt/format.h>

#include "kernel/passes/loops.h"
#include "kernel/visit.h"

namespace fusewise::kernel {
namespace {

class LoopAddresses {
 public:
  LoopAddresses(Kernel& kernel, Builder& builder, AliasRoots& roots, StmtId loop)
      : kernel_(kernel),
        builder_(builder),
        roots_(roots),
        loop_(loop),
        effects_(effects_of(kernel, roots, loop)),
        is_invariant_(kernel, roots, effects_) {
    const Stmt stmt = kernel.stmt(loop);
    loads_happen_ = trip_count(builder, stmt).value_or(0) > 0;
    visit_statements(kernel, stmt.children[0], [&](StmtId id) {
      if (kernel.stmt(id).kind == StmtKind::branch) loads_happen_ = false;
    });
  }

  StmtId rewritten() {
    Rewriter* parts = nullptr;
    Rewriter rewriter(
        kernel_, builder_,
        [&](ExprId, const Expr& expr) {
          if (expr.kind != ExprKind::load) return none;
          const auto [buffer, index] = moved(static_cast<BufferId>(expr.value), expr.a);
          return builder_.load(buffer, index, expr.b);
        },
        [&](StmtId id) -> StmtId {
          const Stmt stmt = kernel_.stmt(id);
          if (stmt.kind != StmtKind::store && stmt.kind != StmtKind::prefetch) return none;
          const auto [buffer, index] = moved(stmt.target, parts->rewrite(stmt.a));
          if (stmt.kind == StmtKind::prefetch)
            return builder_.prefetch(buffer, index, static_cast<int>(stmt.value));
          const ExprId mask = stmt.c == none ? none : parts->rewrite(stmt.c);
          return builder_.store(buffer, index, parts->rewrite(stmt.b), mask);
        });
    parts = &rewriter;
    const Stmt loop = kernel_.stmt(loop_);
    const StmtId body = rewriter.rewrite_statement(loop.children[0]);
    if (aliases_.empty()) return loop_;
    std::vector<StmtId> statements;
    for (const Alias& alias : aliases_)
      statements.push_back(builder_.alias(alias.target, alias.source, alias.offset));
    statements.push_back(builder_.loop(loop.loop, loop.target, loop.a, loop.b, loop.value, body));
    return builder_.block(std::move(statements));
  }

 private:
  // The terms of a sum that the loop leaves alone, and the others with the constant.
  struct Parts {
    ExprId fixed, moving;
  };

  void split(ExprId id, bool negative, Parts& parts) {
    const Expr expr = kernel_.expr(id);
    const bool is_sum = expr.kind == ExprKind::apply &&
                        (expr.op == ScalarOp::add || expr.op == ScalarOp::sub) &&
                        expr.type == Type{DataType::int64, 1};
    if (is_sum) {
      split(expr.a, negative, parts);
      split(expr.b, negative != (expr.op == ScalarOp::sub), parts);
      return;
    }
    const bool is_fixed = expr.kind != ExprKind::constant && is_invariant_(id) &&
                          (loads_happen_ || !contains_load(kernel_, id));
    ExprId& part = is_fixed ? parts.fixed : parts.moving;
    part = negative ? builder_.sub(part, id) : builder_.add(part, id);
  }

  std::pair<BufferId, ExprId> moved(BufferId buffer, ExprId index) {
    const Expr expr = kernel_.expr(index);
    const bool is_ramp = expr.kind == ExprKind::ramp;
    const bool is_broadcast = expr.kind == ExprKind::broadcast;
    const bool defined_inside = buffer < effects_.defined.size() && effects_.defined[buffer];
    const bool is_register = kernel_.buffers[buffer].scope == Scope::registers;
    if (defined_inside || is_register || (expr.type.lanes > 1 && !is_ramp && !is_broadcast))
      return {buffer, index};
    Parts parts = {builder_.integer(0), builder_.integer(0)};
    split(is_ramp || is_broadcast ? expr.a : index, false, parts);
    if (kernel_.expr(parts.fixed).kind == ExprKind::constant) return {buffer, index};
    const BufferId shifted = alias(buffer, parts.fixed);
    if (is_ramp) return {shifted, builder_.ramp(parts.moving, expr.value, expr.type.lanes)};
    if (is_broadcast) return {shifted, builder_.broadcast(parts.moving, expr.type.lanes)};
    return {shifted, parts.moving};
  }

  BufferId alias(BufferId source, ExprId offset) {
    for (const Alias& known : aliases_)
      if (known.source == source && known.offset == offset) return known.target;
    Buffer about = kernel_.buffers[source];
    about.name = fmt::format("{}_{}", about.name, kernel_.buffers.size());
    const BufferId target = builder_.buffer(about);
    roots_.add_alias(source);
    aliases_.push_back({target, source, offset});
    return target;
  }

  struct Alias {
    BufferId target, source;
    ExprId offset;
  };

  Kernel& kernel_;
  Builder& builder_;
  AliasRoots& roots_;
  StmtId loop_;
  Effects effects_;
  Invariance is_invariant_;
  bool loads_happen_ =
      false;  // each time the loop is reached: only then may an index be loaded in front of it
  std::vector<Alias> aliases_;
};

bool is_innermost(const Kernel& kernel, StmtId loop) {
  bool innermost = true;
  visit_statements(kernel, kernel.stmt(loop).children[0], [&](StmtId id) {
    if (kernel.stmt(id).kind == StmtKind::loop) innermost = false;
  });
  return innermost;
}

}  // namespace

Kernel hoist_addresses(Kernel kernel) {
  Builder builder = Builder::resume(kernel);
  AliasRoots roots(kernel);
  Rewriter rewriter(kernel, builder, {}, [&](StmtId id) -> StmtId {
    const Stmt& stmt = kernel.stmt(id);
    const bool is_grid = stmt.loop == LoopKind::block;
    if (stmt.kind != StmtKind::loop || is_grid || !is_innermost(kernel, id)) return none;
    return LoopAddresses(kernel, builder, roots, id).rewritten();
  });
  rewriter.rewrite_phases();
  return kernel;
}

}  // namespace fusewise::kernel
