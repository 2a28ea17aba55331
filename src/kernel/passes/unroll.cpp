#include "kernel/passes/unroll.h"

#include <algorithm>
#include <optional>
#include <set>

#include "kernel/passes/loops.h"
#include "kernel/visit.h"

namespace fusewise::kernel {
namespace {

// More copies than this make code, not speed: such a loop stays a loop.
constexpr int64_t most_copies = 1024;
// An unrolled body of more statements gains nothing, and its loads, started early, would push accumulators out of the
// registers.
constexpr int64_t longest_body = 48;

StmtId copies(Kernel& kernel, Builder& builder, const Stmt& loop, int64_t count) {
  std::vector<StmtId> statements;
  for (int64_t i = 0; i < count; ++i) {
    const ExprId value = builder.add(loop.a, builder.integer(i * loop.value));
    statements.push_back(substitute(kernel, builder, loop.children[0], loop.target, value, count > 1));
  }
  return builder.block(std::move(statements));
}

// Expressions and statements of a part of the kernel, those in loops to unroll once per copy. Stops counting above `most`.
int64_t unrolled_size(const Kernel& kernel, Builder& builder, StmtId id, int64_t most) {
  const Stmt& stmt = kernel.stmt(id);
  int64_t size = 1, copies = 1;
  ExpressionVisitor visitor(kernel);
  for_each_operand(stmt, [&](ExprId e) { visitor.visit(e, [&](ExprId) { ++size; }); });
  if (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::unrolled)
    copies = std::max<int64_t>(trip_count(builder, stmt).value_or(1), 1);
  for (size_t i = 0; i < stmt.children.size() && size <= most / copies; ++i)
    size += unrolled_size(kernel, builder, stmt.children[i], most / copies);
  return size > most / copies ? most : size * copies;
}

// Whether the loop carries something around that unrolling helps with.
bool reduces(const Kernel& kernel, const Stmt& loop) {
  bool found = false;
  visit_statements(kernel, loop.children[0], [&](StmtId id) {
    const Stmt& stmt = kernel.stmt(id);
    if (stmt.kind == StmtKind::assign) found = true;
    if (stmt.kind == StmtKind::store && kernel.buffers[stmt.target].scope == Scope::registers) found = true;
  });
  return found;
}

// The factor that is wanted, halved until the body stays short; 1 for loops that are not innermost.
int64_t useful_factor(const Kernel& kernel, const Stmt& loop, int64_t factor) {
  int64_t statements = 0;
  bool innermost = true;
  visit_statements(kernel, loop.children[0], [&](StmtId id) {
    const StmtKind kind = kernel.stmt(id).kind;
    if (kind != StmtKind::block) ++statements;
    if (kind == StmtKind::loop || kind == StmtKind::allocate || kind == StmtKind::barrier) innermost = false;
  });
  if (!innermost) return 1;
  while (factor > 1 && statements * factor > longest_body) factor /= 2;
  return factor;
}

StmtId unrolled_by(Kernel& kernel, Builder& builder, const Stmt& loop, int64_t factor) {
  const int64_t step = loop.value * factor;
  // The part that runs in whole groups: its length rounded down, and not below 0.
  const ExprId length = builder.max(builder.sub(loop.b, loop.a), builder.integer(0));
  const ExprId groups = builder.floor_div(length, builder.integer(step));
  const ExprId middle = builder.add(loop.a, builder.mul(groups, builder.integer(step)));
  std::vector<StmtId> body;
  for (int64_t i = 0; i < factor; ++i) {
    const ExprId value = builder.add(builder.read(loop.target), builder.integer(i * loop.value));
    body.push_back(substitute(kernel, builder, loop.children[0], loop.target, value, i > 0));
  }
  const StmtId main = builder.loop(LoopKind::serial, loop.target, loop.a, middle, step, builder.block(body));
  const std::optional<int64_t> rest = builder.constant_value(builder.sub(loop.b, middle));
  if (rest && *rest <= 0) return main;
  const VariableId again =
      builder.variable(kernel.variables[loop.target].name, kernel.variables[loop.target].type);
  const StmtId tail_body =
      substitute(kernel, builder, loop.children[0], loop.target, builder.read(again), true);
  const StmtId tail = builder.loop(LoopKind::serial, again, middle, loop.b, loop.value, tail_body);
  return builder.block({main, tail});
}

}  // namespace

Kernel unroll(Kernel kernel, int64_t most_expressions) {
  Builder builder = Builder::resume(kernel);
  std::set<StmtId> phases(kernel.phases.begin(), kernel.phases.end());
  Rewriter* again = nullptr;
  Rewriter rewriter(kernel, builder, {}, [&](StmtId id) -> StmtId {
    const Stmt stmt = kernel.stmt(id);
    if (stmt.kind != StmtKind::loop || phases.contains(id)) return none;
    const std::optional<int64_t> count = trip_count(builder, stmt);
    const bool wanted = stmt.loop == LoopKind::unrolled || (count && *count <= 1);
    if (!wanted) return none;
    const bool is_short = most_expressions == INT64_MAX ||
                          unrolled_size(kernel, builder, id, most_expressions) < most_expressions;
    if (count && (*count <= 1 || (*count <= most_copies && is_short)))
      return again->rewrite_statement(copies(kernel, builder, stmt, *count));
    const StmtId body = again->rewrite_statement(stmt.children[0]);
    return builder.loop(LoopKind::serial, stmt.target, stmt.a, stmt.b, stmt.value, body);
  });
  again = &rewriter;
  rewriter.rewrite_phases();
  return kernel;
}

Kernel unroll_serial(Kernel kernel, int factor) {
  if (factor < 2) return kernel;
  Builder builder = Builder::resume(kernel);
  Rewriter rewriter(kernel, builder, {}, [&](StmtId id) -> StmtId {
    const Stmt stmt = kernel.stmt(id);
    if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::serial) return none;
    const int64_t useful = useful_factor(kernel, stmt, factor);
    if (useful < 2 || !reduces(kernel, stmt)) return none;
    const std::optional<int64_t> count = trip_count(builder, stmt);
    if (count && *count <= useful) return copies(kernel, builder, stmt, *count);
    // A loop over the taps of a window, cut at its border, would spend its time in what remains.
    if (builder.range(builder.sub(stmt.b, stmt.a)).high < 2 * useful * stmt.value) return none;
    return unrolled_by(kernel, builder, stmt, useful);
  });
  rewriter.rewrite_phases();
  return kernel;
}

}  // namespace fusewise::kernel
