#include "kernel/synchronization.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "kernel/passes/loops.h"
#include "kernel/text.h"
#include "kernel/uniformity.h"
#include "kernel/visit.h"

namespace fusewise::kernel {

namespace {

struct Access {
  BufferId buffer;  // an alias is a buffer of its own here: its index counts from elsewhere
  ExprId index;
  bool comparable;  // the index has the same value where it is met again
  friend bool operator==(const Access&, const Access&) = default;
};

// What happened since the last barrier, on some way.
struct Interval {
  std::vector<Access> stores, loads;
};

void add(std::vector<Access>& accesses, const Access& access) {
  if (std::find(accesses.begin(), accesses.end(), access) == accesses.end()) accesses.push_back(access);
}

void join(Interval& into, const Interval& from) {
  for (const Access& a : from.stores) add(into.stores, a);
  for (const Access& a : from.loads) add(into.loads, a);
}

class Walk {
 public:
  explicit Walk(const Kernel& kernel)
      : kernel_(kernel), roots_(kernel), uniformity_(kernel), watched_(kernel.buffers.size()) {
    for (BufferId b = 0; b < watched_.size(); ++b) {
      const Buffer& root = kernel.buffers[roots_.root(b)];
      watched_[b] = root.scope == Scope::shared || (root.scope == Scope::argument && root.written);
    }
  }

  void run() {
    for (StmtId phase : kernel_.phases) find_threads(phase);
  }

 private:
  const Kernel& kernel_;
  AliasRoots roots_;
  Uniformity uniformity_;
  std::vector<bool> watched_;
  VariableId thread_ = none;

  // Each loop over threads is entered and left by all of them together.
  void find_threads(StmtId id) {
    const Stmt& stmt = kernel_.stmt(id);
    if (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::thread) {
      Interval interval;
      thread_ = stmt.target;
      return walk(stmt.children[0], interval);
    }
    for (StmtId child : stmt.children) find_threads(child);
  }

  void walk(StmtId id, Interval& interval) {
    const Stmt& stmt = kernel_.stmt(id);
    const std::vector<Access> own = loads_of(stmt);
    for (const Access& load : own) require_apart(load, interval.stores, id);
    for (const Access& load : own) add(interval.loads, load);
    switch (stmt.kind) {
      case StmtKind::barrier:
        interval = {};
        return;
      case StmtKind::store:
        if (!watched_[stmt.target]) return;
        require_apart(access(stmt.target, stmt.a), interval.loads, id);
        return add(interval.stores, access(stmt.target, stmt.a));
      case StmtKind::branch: {
        Interval otherwise = interval;
        walk(stmt.children[0], interval);
        if (stmt.children.size() > 1) walk(stmt.children[1], otherwise);
        return join(interval, otherwise);
      }
      case StmtKind::loop: {
        // Once more with what the first time leaves behind: all that a further time could meet.
        const Interval before = interval;
        for (int time = 0; time < 2; ++time) {
          walk(stmt.children[0], interval);
          age(interval, id);
          join(interval, before);
        }
        return;
      }
      default:
        for (StmtId child : stmt.children) walk(child, interval);
    }
  }

  enum class Along : uint8_t { uniform, one_to_one, unknown };
  // How an index moves with the number of the thread: not at all, or to another place for each.
  Along along_threads(ExprId id) const {
    if (!uniformity_.varies(id)) return Along::uniform;
    const Expr& e = kernel_.expr(id);
    if (e.kind == ExprKind::read)
      return static_cast<VariableId>(e.value) == thread_ ? Along::one_to_one : Along::unknown;
    if (e.kind != ExprKind::apply) return Along::unknown;
    const auto is_scale = [&](ExprId factor) {
      return kernel_.expr(factor).kind == ExprKind::constant && kernel_.expr(factor).value != 0;
    };
    const bool is_sum = e.op == ScalarOp::add || e.op == ScalarOp::sub;
    if (is_sum && !uniformity_.varies(e.a)) return along_threads(e.b);
    if (is_sum && !uniformity_.varies(e.b)) return along_threads(e.a);
    if (e.op == ScalarOp::mul && is_scale(e.a)) return along_threads(e.b);
    if (e.op == ScalarOp::mul && is_scale(e.b)) return along_threads(e.a);
    return Along::unknown;
  }

  Access access(BufferId buffer, ExprId index) const {
    bool comparable = along_threads(index) == Along::one_to_one;
    ExpressionVisitor(kernel_).visit(index, [&](ExprId e) {
      const Expr& expr = kernel_.expr(e);
      const bool is_mutable =
          expr.kind == ExprKind::read && kernel_.variables[static_cast<size_t>(expr.value)].is_mutable;
      if (is_mutable || expr.kind == ExprKind::load) comparable = false;
    });
    return {buffer, index, comparable};
  }

  std::vector<Access> loads_of(const Stmt& stmt) const {
    std::vector<Access> loads;
    ExpressionVisitor visitor(kernel_);
    for_each_operand(stmt, [&](ExprId operand) {
      visitor.visit(operand, [&](ExprId e) {
        const Expr& expr = kernel_.expr(e);
        if (expr.kind == ExprKind::load && watched_[static_cast<size_t>(expr.value)])
          loads.push_back(access(static_cast<BufferId>(expr.value), expr.a));
      });
    });
    return loads;
  }

  void require_apart(const Access& now, const std::vector<Access>& earlier, StmtId id) const {
    for (const Access& other : earlier) {
      if (roots_.root(other.buffer) != roots_.root(now.buffer)) continue;
      if (other.comparable && other == now) continue;
      throw InternalError(fmt::format(
          "kernel '{}': between a store to '{}' and a load from it by another thread stands no barrier: {}",
          kernel_.name, kernel_.buffers[now.buffer].name, statement_text(kernel_, id)));
    }
  }

  // Behind an iteration, what depends on variables of the loop has other values.
  void age(Interval& interval, StmtId loop) const {
    std::vector<bool> defined(kernel_.variables.size());
    visit_statements(kernel_, loop, [&](StmtId id) {
      const Stmt& stmt = kernel_.stmt(id);
      if (stmt.kind == StmtKind::loop || stmt.kind == StmtKind::let || stmt.kind == StmtKind::assign)
        defined[stmt.target] = true;
    });
    for (std::vector<Access>* accesses : {&interval.stores, &interval.loads})
      for (Access& a : *accesses)
        ExpressionVisitor(kernel_).visit(a.index, [&](ExprId e) {
          const Expr& expr = kernel_.expr(e);
          if (expr.kind == ExprKind::read && defined[static_cast<size_t>(expr.value)]) a.comparable = false;
        });
  }
};

}  // namespace

void verify_synchronization(const Kernel& kernel) { Walk(kernel).run(); }

}  // namespace fusewise::kernel
