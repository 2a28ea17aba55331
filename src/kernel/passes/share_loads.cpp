#include "kernel/passes/share_loads.h"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/error.h"
#include "kernel/passes/loops.h"
#include "kernel/visit.h"

namespace fusewise::kernel {
namespace {

// Two walks in the same order over the same statements: the first counts how often each value is used while it is
// known, the second replaces. A value is an expression between two changes of what it depends on.
class Sharer {
 public:
  explicit Sharer(Kernel& kernel) : kernel_(kernel), builder_(Builder::resume(kernel)), roots_(kernel) {}

  StmtId run(StmtId phase) {
    values_.clear();
    replacing_ = false;
    next_value_ = 0;
    known_.clear();
    statement(phase);
    replacing_ = true;
    next_value_ = 0;
    known_.clear();
    return statement(phase);
  }

 private:
  struct Value {
    int uses = 0;
    ExprId replacement = none;
  };
  using Known = std::unordered_map<ExprId, size_t>;  // expression to value number

  // What an expression depends on that can change: variables, and buffers by root, after each other.
  using Sources = std::vector<uint32_t>;

  const Sources& sources(ExprId id) {
    if (auto found = sources_.find(id); found != sources_.end()) return *found->second;
    auto result = std::make_unique<Sources>();
    const Expr& expr = kernel_.expr(id);
    if (expr.kind == ExprKind::read) result->push_back(static_cast<uint32_t>(expr.value));
    if (expr.kind == ExprKind::load) {
      const BufferId buffer = static_cast<BufferId>(expr.value);
      if (!roots_.never_changes(kernel_, buffer)) result->push_back(buffer_source(roots_.root(buffer)));
      if (roots_.root(buffer) != buffer) result->push_back(buffer_source(buffer));
    }
    for_each_operand(expr, [&](ExprId operand) {
      const Sources& more = sources(operand);
      result->insert(result->end(), more.begin(), more.end());
    });
    std::sort(result->begin(), result->end());
    result->erase(std::unique(result->begin(), result->end()), result->end());
    return *(sources_[id] = std::move(result));
  }

  static constexpr uint32_t first_buffer_source = 0x80000000U;
  static uint32_t buffer_source(BufferId buffer) { return first_buffer_source | buffer; }

  template <class Changed>
  void forget(Changed&& changed) {
    std::erase_if(known_, [&](const auto& entry) {
      const Sources& parts = sources(entry.first);
      return std::any_of(parts.begin(), parts.end(), changed);
    });
  }

  void forget_effects(const Effects& effects) {
    forget([&](uint32_t source) {
      if (source < first_buffer_source) return source < effects.variables.size() && effects.variables[source];
      const BufferId buffer = source & ~first_buffer_source;
      return effects.defined[buffer] || effects.any_write_may_touch(kernel_, roots_, buffer);
    });
  }

  bool is_worth_it(const Expr& expr) const {
    switch (expr.kind) {
      case ExprKind::constant:
      case ExprKind::parameter:
      case ExprKind::read:
      case ExprKind::ramp:
        return false;
      case ExprKind::broadcast: {
        const ExprKind inner = kernel_.expr(expr.a).kind;
        return inner != ExprKind::read && inner != ExprKind::parameter;
      }
      case ExprKind::native:
        return true;
      case ExprKind::apply: {
        const bool is_index = expr.type == Type{DataType::int64, 1};
        return !is_index ||
               (expr.op != ScalarOp::add && expr.op != ScalarOp::sub && expr.op != ScalarOp::mul);
      }
      default:
        return true;
    }
  }

  // The expression as it is written at this place.
  ExprId use(ExprId id, std::vector<StmtId>& before) {
    if (auto found = known_.find(id); found != known_.end()) {
      Value& value = values_[found->second];
      ++value.uses;
      return value.replacement;
    }
    const size_t number = next_value_++;
    known_[id] = number;
    if (!replacing_) values_.push_back({1, id});
    check(number < values_.size(), "the two walks of share_loads differ");
    const Expr expr = kernel_.expr(id);
    Expr changed = expr;
    for (ExprId* operand : {&changed.a, &changed.b, &changed.c})
      if (*operand != none) *operand = use(*operand, before);
    if (!replacing_) return id;
    ExprId result = changed == expr ? id : builder_.share(changed);
    if (values_[number].uses > 1 && is_worth_it(expr)) {
      const VariableId variable =
          builder_.variable(expr.kind == ExprKind::load ? "loaded" : "shared", expr.type);
      before.push_back(builder_.let(variable, result));
      result = builder_.read(variable);
    }
    values_[number].replacement = result;
    return result;
  }

  StmtId statement(StmtId id) {
    std::vector<StmtId> out;
    if (kernel_.stmt(id).kind == StmtKind::block) {
      const Known outer = known_;
      const std::vector<StmtId> children = kernel_.stmt(id).children;
      for (StmtId child : children) single(child, out);
      known_ = outer;
      if (!replacing_) return id;
      return builder_.block(std::move(out));
    }
    const Known outer = known_;
    single(id, out);
    known_ = outer;
    return replacing_ ? builder_.block(std::move(out)) : id;
  }

  // A statement of a block: what it shares with the following ones stays known.
  void single(StmtId id, std::vector<StmtId>& out) {
    Stmt stmt = kernel_.stmt(id);
    if (stmt.kind == StmtKind::block) {
      for (StmtId child : stmt.children) single(child, out);
      return;
    }
    for (ExprId* operand : {&stmt.a, &stmt.b, &stmt.c})
      if (*operand != none && !is_grid(stmt)) *operand = use(*operand, out);
    if (!stmt.children.empty()) {
      const Effects effects = effects_of(kernel_, roots_, id);
      forget_effects(effects);
      for (StmtId& child : stmt.children) child = statement(child);
    } else {
      forget_leaf(stmt);
    }
    if (replacing_) out.push_back(remade(kernel_, builder_, id, std::move(stmt)));
  }

  // The grid's bounds are read outside of any scope.
  static bool is_grid(const Stmt& stmt) {
    return stmt.kind == StmtKind::loop && stmt.loop == LoopKind::block;
  }

  void forget_leaf(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::let:
      case StmtKind::assign:
        forget([&](uint32_t source) { return source == stmt.target; });
        return;
      case StmtKind::allocate:
      case StmtKind::alias:
        forget([&](uint32_t source) { return source == buffer_source(stmt.target); });
        return;
      case StmtKind::barrier:
        known_.clear();
        return;
      case StmtKind::store: {
        Effects effects;
        effects.written.resize(kernel_.buffers.size());
        effects.written[roots_.root(stmt.target)] = true;
        forget([&](uint32_t source) {
          return source >= first_buffer_source &&
                 effects.any_write_may_touch(kernel_, roots_, source & ~first_buffer_source);
        });
        return;
      }
      default:
        return;
    }
  }

  Kernel& kernel_;
  Builder builder_;
  AliasRoots roots_;
  bool replacing_ = false;
  std::vector<Value> values_;
  size_t next_value_ = 0;
  Known known_;
  std::unordered_map<ExprId, std::unique_ptr<Sources>> sources_;
};

}  // namespace

Kernel share_loads(Kernel kernel) {
  Sharer sharer(kernel);
  for (StmtId& phase : kernel.phases) phase = sharer.run(phase);
  return kernel;
}

}  // namespace fusewise::kernel
