#include "kernel/passes/join_rows.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "kernel/passes/loops.h"
#include "kernel/visit.h"

namespace fusewise::kernel {
namespace {

constexpr size_t rows_per_pointer = 3;

struct Pointer {
  BufferId target = none, source = none;
  ExprId offset = none;
  StmtId statement = none;
  ExprId moving = none;  // what the loop adds to it beside constants; none where accesses differ
  bool is_used = false;
};

// A row of a joined group: the group's pointer of the loop's body, and the distance from it.
struct Row {
  BufferId shared = none;
  ExprId distance = none;
};

class Block {
 public:
  Block(Kernel& kernel, Builder& builder, AliasRoots& roots, int most_pointers)
      : kernel_(kernel), builder_(builder), roots_(roots), most_pointers_(most_pointers) {}

  // `statements` with the loop at `position` and the aliases in front of it rewritten.
  bool rewrite(std::vector<StmtId>& statements, size_t position) {
    loop_id_ = statements[position];
    loop_ = kernel_.stmt(loop_id_);
    collect_pointers(statements, position);
    if (static_cast<int>(pointers_.size()) <= most_pointers_) return false;
    collect_accesses();
    if (!join()) return false;
    const std::set<BufferId> needed = used_elsewhere();
    std::vector<StmtId> result;
    for (size_t i = 0; i < statements.size(); ++i) {
      const Stmt& stmt = kernel_.stmt(statements[i]);
      const bool is_gone =
          stmt.kind == StmtKind::alias && rows_.contains(stmt.target) && !needed.contains(stmt.target);
      if (is_gone) continue;
      if (i == position) {
        for (StmtId alias : outer_aliases_) result.push_back(alias);
        result.push_back(new_loop());
      } else {
        result.push_back(statements[i]);
      }
    }
    statements = std::move(result);
    return true;
  }

 private:
  // Aliases that stand directly in front of the loop and are used nowhere else (the pass before made them for it).
  void collect_pointers(const std::vector<StmtId>& statements, size_t position) {
    for (size_t i = position; i-- > 0;) {
      const Stmt& stmt = kernel_.stmt(statements[i]);
      if (stmt.kind != StmtKind::alias) break;
      pointers_[stmt.target] = {stmt.target, static_cast<BufferId>(stmt.value), stmt.a, statements[i], none,
                                false};
    }
  }

  // Buffers that statements outside of the loop use.
  std::set<BufferId> used_elsewhere() const {
    std::set<BufferId> used;
    ExpressionVisitor visitor(kernel_);
    std::vector<StmtId> work(kernel_.phases.begin(), kernel_.phases.end());
    while (!work.empty()) {
      const StmtId id = work.back();
      work.pop_back();
      if (id == loop_id_) continue;
      const Stmt& stmt = kernel_.stmt(id);
      work.insert(work.end(), stmt.children.begin(), stmt.children.end());
      if (stmt.kind == StmtKind::store || stmt.kind == StmtKind::prefetch) used.insert(stmt.target);
      if (stmt.kind == StmtKind::alias) used.insert(static_cast<BufferId>(stmt.value));
      for_each_operand(stmt, [&](ExprId operand) {
        visitor.visit(operand, [&](ExprId expr_id) {
          const Expr& expr = kernel_.expr(expr_id);
          if (expr.kind == ExprKind::load) used.insert(static_cast<BufferId>(expr.value));
        });
      });
    }
    return used;
  }

  ExprId base_of(ExprId index) const {
    const Expr& expr = kernel_.expr(index);
    return expr.kind == ExprKind::ramp || expr.kind == ExprKind::broadcast ? expr.a : index;
  }

  ExprId without_constant(ExprId sum) {
    const Expr expr = kernel_.expr(sum);
    if (expr.kind == ExprKind::constant) return builder_.integer(0);
    const bool ends_in_constant =
        expr.kind == ExprKind::apply && expr.op == ScalarOp::add && builder_.constant_value(expr.b);
    return ends_in_constant ? expr.a : sum;
  }

  void note(BufferId buffer, ExprId index) {
    const auto found = pointers_.find(buffer);
    if (found == pointers_.end()) return;
    Pointer& pointer = found->second;
    const Expr& expr = kernel_.expr(index);
    const bool is_simple =
        expr.type.lanes == 1 || expr.kind == ExprKind::ramp || expr.kind == ExprKind::broadcast;
    const ExprId moving = is_simple ? without_constant(base_of(index)) : none;
    pointer.moving = !pointer.is_used || pointer.moving == moving ? moving : none;
    pointer.is_used = true;
  }

  void collect_accesses() {
    ExpressionVisitor visitor(kernel_);
    visit_statements(kernel_, loop_.children[0], [&](StmtId id) {
      const Stmt& stmt = kernel_.stmt(id);
      if (stmt.kind == StmtKind::store || stmt.kind == StmtKind::prefetch) note(stmt.target, stmt.a);
      for_each_operand(stmt, [&](ExprId operand) {
        visitor.visit(operand, [&](ExprId expr_id) {
          const Expr expr = kernel_.expr(expr_id);
          if (expr.kind == ExprKind::load) note(static_cast<BufferId>(expr.value), expr.a);
        });
      });
    });
  }

  // What only depends on the loop's variable can be an alias at the start of the body.
  bool is_known_at_start(ExprId moving) const {
    bool known = true;
    ExpressionVisitor visitor(kernel_);
    const Effects effects = effects_of(kernel_, roots_, loop_.children[0]);
    visitor.visit(moving, [&](ExprId id) {
      const Expr& expr = kernel_.expr(id);
      if (expr.kind == ExprKind::load) known = false;
      if (expr.kind == ExprKind::read && effects.variables[static_cast<size_t>(expr.value)]) known = false;
    });
    return known;
  }

  bool join() {
    std::map<std::pair<BufferId, ExprId>, std::vector<Pointer>> families;
    for (const auto& [target, pointer] : pointers_) {
      if (pointer.moving == none || !is_known_at_start(pointer.moving)) continue;
      families[{pointer.source, pointer.moving}].push_back(pointer);
    }
    for (auto& [key, family] : families) {
      std::sort(family.begin(), family.end(),
                [](const Pointer& a, const Pointer& b) { return a.target < b.target; });
      join_family(family);
    }
    return !rows_.empty();
  }

  void join_family(const std::vector<Pointer>& family) {
    if (family.size() < rows_per_pointer) return;
    const ExprId distance = builder_.sub(family[1].offset, family[0].offset);
    if (builder_.constant_value(distance)) return;
    for (size_t i = 0; i < family.size(); ++i) {
      const ExprId expected = builder_.mul(distance, builder_.integer(static_cast<int64_t>(i)));
      if (builder_.sub(family[i].offset, family[0].offset) != expected) return;
    }
    for (size_t first = 0; first < family.size(); first += rows_per_pointer) {
      const Pointer& head = family[first];
      const BufferId outer = fresh(head);
      outer_aliases_.push_back(builder_.alias(outer, head.source, head.offset));
      const BufferId inner = fresh(head);
      inner_aliases_.push_back(builder_.alias(inner, outer, head.moving));
      for (size_t i = first; i < std::min(first + rows_per_pointer, family.size()); ++i)
        rows_[family[i].target] = {inner,
                                   builder_.mul(distance, builder_.integer(static_cast<int64_t>(i - first)))};
    }
  }

  BufferId fresh(const Pointer& like) {
    Buffer about = kernel_.buffers[like.target];
    about.name = fmt::format("{}_{}", kernel_.buffers[like.source].name, kernel_.buffers.size());
    const BufferId buffer = builder_.buffer(about);
    roots_.add_alias(like.source);
    return buffer;
  }

  // The index from the shared pointer: its own constant and the row's distance.
  ExprId moved(const Row& row, BufferId old, ExprId index) {
    const Expr expr = kernel_.expr(index);
    const ExprId constant = builder_.sub(base_of(index), pointers_.at(old).moving);
    const ExprId base = builder_.add(row.distance, constant);
    if (expr.kind == ExprKind::ramp) return builder_.ramp(base, expr.value, expr.type.lanes);
    if (expr.kind == ExprKind::broadcast) return builder_.broadcast(base, expr.type.lanes);
    return base;
  }

  StmtId new_loop() {
    Rewriter* parts = nullptr;
    Rewriter rewriter(
        kernel_, builder_,
        [&](ExprId, const Expr& expr) {
          const auto row =
              expr.kind == ExprKind::load ? rows_.find(static_cast<BufferId>(expr.value)) : rows_.end();
          if (row == rows_.end()) return none;
          return builder_.load(row->second.shared, moved(row->second, row->first, expr.a), expr.b);
        },
        [&](StmtId id) -> StmtId {
          const Stmt stmt = kernel_.stmt(id);
          if (stmt.kind != StmtKind::store && stmt.kind != StmtKind::prefetch) return none;
          const auto row = rows_.find(stmt.target);
          if (row == rows_.end()) return none;
          const ExprId index = moved(row->second, row->first, stmt.a);
          if (stmt.kind == StmtKind::prefetch)
            return builder_.prefetch(row->second.shared, index, static_cast<int>(stmt.value));
          const ExprId mask = stmt.c == none ? none : parts->rewrite(stmt.c);
          return builder_.store(row->second.shared, index, parts->rewrite(stmt.b), mask);
        });
    parts = &rewriter;
    std::vector<StmtId> body = inner_aliases_;
    body.push_back(rewriter.rewrite_statement(loop_.children[0]));
    return builder_.loop(loop_.loop, loop_.target, loop_.a, loop_.b, loop_.value,
                         builder_.block(std::move(body)));
  }

  Kernel& kernel_;
  Builder& builder_;
  AliasRoots& roots_;
  int most_pointers_;
  StmtId loop_id_ = none;
  Stmt loop_;
  std::map<BufferId, Pointer> pointers_;
  std::map<BufferId, Row> rows_;
  std::vector<StmtId> outer_aliases_, inner_aliases_;
};

// Without loops, and without pointers of its own, in the body.
bool is_innermost(const Kernel& kernel, StmtId loop) {
  bool innermost = true;
  visit_statements(kernel, kernel.stmt(loop).children[0], [&](StmtId id) {
    if (kernel.stmt(id).kind == StmtKind::loop || kernel.stmt(id).kind == StmtKind::alias) innermost = false;
  });
  return innermost;
}

}  // namespace

Kernel join_rows(Kernel kernel, int most_pointers) {
  Builder builder = Builder::resume(kernel);
  AliasRoots roots(kernel);
  Rewriter* parts = nullptr;
  Rewriter rewriter(kernel, builder, {}, [&](StmtId id) -> StmtId {
    if (kernel.stmt(id).kind != StmtKind::block) return none;
    std::vector<StmtId> statements;
    for (StmtId child : std::vector<StmtId>(kernel.stmt(id).children))
      statements.push_back(parts->rewrite_statement(child));
    for (size_t i = statements.size(); i-- > 0;) {
      const Stmt& stmt = kernel.stmt(statements[i]);
      if (stmt.kind != StmtKind::loop || !is_innermost(kernel, statements[i])) continue;
      // Fewer statements may be left; the loop just made holds pointers and is not innermost any more.
      if (Block(kernel, builder, roots, most_pointers).rewrite(statements, i)) i = statements.size();
    }
    // Loops keep their ids where nothing changes: used_elsewhere knows them by that.
    if (statements == kernel.stmt(id).children) return id;
    return builder.block(std::move(statements));
  });
  parts = &rewriter;
  rewriter.rewrite_phases();
  return kernel;
}

}  // namespace fusewise::kernel
