#include "kernel/passes/vectorize.h"

#include <algorithm>
#include <set>

#include "kernel/passes/lane_values.h"
#include "kernel/passes/loops.h"
#include "kernel/visit.h"

namespace fusewise::kernel {
namespace {

constexpr int most_lanes = 64;
// A loop of more vectors per statement than this is cut into a loop over groups of so many.
constexpr int64_t most_vectors = 8;
constexpr int64_t vectors_of_long_loops = 4;

int bytes_in_registers(DataType type) { return bytes_of(arithmetic_type_of(type)); }

// The widest data that the body computes on; indices do not count unless there is nothing else.
int widest_bytes(const Kernel& kernel, StmtId body) {
  int widest = 0;
  std::set<ExprId> seen;
  std::vector<ExprId> work;
  visit_statements(kernel, body, [&](StmtId id) {
    const Stmt& stmt = kernel.stmt(id);
    if (stmt.kind == StmtKind::store) {
      work.push_back(stmt.b);
      widest = std::max(widest, bytes_in_registers(kernel.buffers[stmt.target].element));
    }
    if (stmt.kind == StmtKind::let || stmt.kind == StmtKind::assign) work.push_back(stmt.a);
  });
  while (!work.empty()) {
    const ExprId id = work.back();
    work.pop_back();
    if (id == none || !seen.insert(id).second) continue;
    const Expr& expr = kernel.expr(id);
    const bool is_data = expr.kind == ExprKind::load || expr.type.element != DataType::int64;
    if (is_data) widest = std::max(widest, bytes_in_registers(expr.type.element));
    if (expr.kind == ExprKind::load) continue;
    for_each_operand(expr, [&](ExprId operand) { work.push_back(operand); });
  }
  return widest == 0 ? bytes_of(DataType::int64) : widest;
}

class Vectorizer {
 public:
  Vectorizer(Kernel& kernel, Builder& builder, const Stmt& loop)
      : kernel_(kernel), builder_(builder), loop_(loop) {}

  // The body for the iterations first, first + step, ...: `widths` gives the lanes of each vector.
  StmtId body(ExprId first, const std::vector<int>& widths) {
    groups_.clear();
    private_variables_.clear();
    int64_t done = 0;
    for (int lanes : widths) {
      LaneValues values(kernel_, builder_, lanes);
      const ExprId start = builder_.add(first, builder_.integer(done * loop_.value));
      const bool single = lanes == 1;
      values.define(loop_.target, {single ? LaneValue::Kind::uniform : LaneValue::Kind::affine, start,
                                   single ? 0 : loop_.value});
      groups_.push_back(std::move(values));
      done += lanes;
    }
    std::vector<StmtId> statements;
    statement(loop_.children[0], true, statements);
    return builder_.block(std::move(statements));
  }

 private:
  void statement(StmtId id, bool unconditional, std::vector<StmtId>& out);
  void let(const Stmt& stmt, std::vector<StmtId>& out);
  void assign(const Stmt& stmt, bool unconditional, std::vector<StmtId>& out);
  void store(const Stmt& stmt, std::vector<StmtId>& out);
  void serial_loop(const Stmt& stmt, std::vector<StmtId>& out);
  void branch(const Stmt& stmt, std::vector<StmtId>& out);
  ExprId uniform(ExprId expr);
  VariableId widened(VariableId variable, int lanes);
  bool is_same_everywhere(ExprId expr);

  Kernel& kernel_;
  Builder& builder_;
  const Stmt& loop_;
  std::vector<LaneValues> groups_;
  std::map<VariableId, std::vector<VariableId>> private_variables_;  // mutable ones, one per group
};

VariableId Vectorizer::widened(VariableId variable, int lanes) {
  const Variable old = kernel_.variables[variable];
  return builder_.variable(old.name, {old.type.element, static_cast<uint16_t>(lanes)}, old.is_mutable);
}

bool Vectorizer::is_same_everywhere(ExprId expr) {
  return std::all_of(groups_.begin(), groups_.end(), [&](LaneValues& group) {
    const LaneValue value = group.value(expr);
    return value.kind == LaneValue::Kind::uniform && value.expr == expr;
  });
}

// A scalar that all iterations agree on.
ExprId Vectorizer::uniform(ExprId expr) {
  const LaneValue first = groups_.front().value(expr);
  for (LaneValues& group : groups_) {
    const LaneValue value = group.value(expr);
    if (value.kind != LaneValue::Kind::uniform || value.expr != first.expr) throw NotVectorizable{};
  }
  return first.expr;
}

void Vectorizer::statement(StmtId id, bool unconditional, std::vector<StmtId>& out) {
  const Stmt stmt = kernel_.stmt(id);
  switch (stmt.kind) {
    case StmtKind::block:
      for (StmtId child : stmt.children) statement(child, unconditional, out);
      return;
    case StmtKind::let:
      return let(stmt, out);
    case StmtKind::assign:
      return assign(stmt, unconditional, out);
    case StmtKind::store:
      return store(stmt, out);
    case StmtKind::loop:
      return serial_loop(stmt, out);
    case StmtKind::branch:
      return branch(stmt, out);
    case StmtKind::alias:
      out.push_back(builder_.alias(stmt.target, static_cast<BufferId>(stmt.value), uniform(stmt.a)));
      return;
    case StmtKind::prefetch:
      for (LaneValues& group : groups_) {
        const LaneValue index = group.value(stmt.a);
        if (index.kind == LaneValue::Kind::vector) continue;  // a hint, no more
        out.push_back(builder_.prefetch(stmt.target, index.expr, static_cast<int>(stmt.value)));
      }
      return;
    case StmtKind::allocate:
    case StmtKind::barrier:
      throw NotVectorizable{};
  }
}

void Vectorizer::let(const Stmt& stmt, std::vector<StmtId>& out) {
  if (is_same_everywhere(stmt.a)) {
    out.push_back(builder_.let(stmt.target, stmt.a));
    return;
  }
  for (LaneValues& group : groups_) {
    LaneValue value = group.value(stmt.a);
    if (value.kind != LaneValue::Kind::affine) {
      const bool is_vector = value.kind == LaneValue::Kind::vector;
      const VariableId fresh = widened(stmt.target, is_vector ? group.lanes() : 1);
      out.push_back(builder_.let(fresh, value.expr));
      value.expr = builder_.read(fresh);
    }
    group.define(stmt.target, value);
  }
}

// A variable is each iteration's own when its first assignment, on every path, is in the body and before any read.
void Vectorizer::assign(const Stmt& stmt, bool unconditional, std::vector<StmtId>& out) {
  auto found = private_variables_.find(stmt.target);
  const bool declares = found == private_variables_.end();
  std::vector<ExprId> values;
  for (LaneValues& group : groups_) values.push_back(group.vector(stmt.a));
  if (declares) {
    ExpressionVisitor visitor(kernel_);
    bool reads_itself = !unconditional;
    visitor.visit(stmt.a, [&](ExprId id) {
      const Expr& expr = kernel_.expr(id);
      reads_itself = reads_itself || (expr.kind == ExprKind::read && expr.value == stmt.target);
    });
    if (reads_itself) throw NotVectorizable{};
    std::vector<VariableId> fresh;
    for (LaneValues& group : groups_) fresh.push_back(widened(stmt.target, group.lanes()));
    found = private_variables_.emplace(stmt.target, fresh).first;
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    const VariableId variable = found->second[i];
    const ExprId mask = groups_[i].mask();
    ExprId value = values[i];
    if (mask != none)
      value =
          builder_.apply(ScalarOp::select, kernel_.expr(value).type, mask, value, builder_.read(variable));
    out.push_back(builder_.assign(variable, value));
    if (declares) {
      const bool single = groups_[i].lanes() == 1;
      groups_[i].define(stmt.target, {single ? LaneValue::Kind::uniform : LaneValue::Kind::vector,
                                      builder_.read(variable), 0});
    }
  }
}

void Vectorizer::store(const Stmt& stmt, std::vector<StmtId>& out) {
  for (LaneValues& group : groups_) {
    const LaneValue index = group.value(stmt.a);
    // One element for all iterations: they are not independent after all.
    if (index.kind == LaneValue::Kind::uniform && group.lanes() > 1) throw NotVectorizable{};
    const ExprId value = group.vector(stmt.b);
    out.push_back(builder_.store(stmt.target, group.to_vector(index), value, group.masked(stmt.c)));
  }
}

void Vectorizer::serial_loop(const Stmt& stmt, std::vector<StmtId>& out) {
  if (stmt.loop != LoopKind::serial && stmt.loop != LoopKind::unrolled) throw NotVectorizable{};
  const ExprId begin = uniform(stmt.a);
  const ExprId end = uniform(stmt.b);
  std::vector<StmtId> inner;
  statement(stmt.children[0], false, inner);
  out.push_back(
      builder_.loop(stmt.loop, stmt.target, begin, end, stmt.value, builder_.block(std::move(inner))));
}

void Vectorizer::branch(const Stmt& stmt, std::vector<StmtId>& out) {
  if (is_same_everywhere(stmt.a)) {
    StmtId arms[2] = {none, none};
    for (size_t arm = 0; arm < stmt.children.size(); ++arm) {
      std::vector<StmtId> inner;
      statement(stmt.children[arm], false, inner);
      arms[arm] = builder_.block(std::move(inner));
    }
    out.push_back(builder_.branch(stmt.a, arms[0], arms[1]));
    return;
  }
  std::vector<ExprId> outer, conditions;
  for (LaneValues& group : groups_) {
    outer.push_back(group.mask());
    conditions.push_back(group.vector(stmt.a));
  }
  for (size_t arm = 0; arm < stmt.children.size(); ++arm) {
    for (size_t i = 0; i < groups_.size(); ++i) {
      ExprId condition = conditions[i];
      if (arm == 1) condition = builder_.apply(ScalarOp::not_, kernel_.expr(condition).type, condition);
      groups_[i].set_mask(outer[i] == none ? condition : builder_.logical_and(outer[i], condition));
    }
    statement(stmt.children[arm], false, out);
  }
  for (size_t i = 0; i < groups_.size(); ++i) groups_[i].set_mask(outer[i]);
}

// Full vectors, then halves, quarters ... for what remains.
std::vector<int> widths_of(int64_t count, int lanes) {
  std::vector<int> widths;
  for (int width = lanes; width >= 1; width /= 2)
    for (; count >= width; count -= width) widths.push_back(width);
  return widths;
}

class LoopCutter {
 public:
  LoopCutter(Kernel& kernel, Builder& builder, const Stmt& loop, int lanes)
      : kernel_(kernel), builder_(builder), loop_(loop), lanes_(lanes) {}

  StmtId cut() {
    const std::optional<int64_t> count = trip_count(builder_, loop_);
    if (!count) throw NotVectorizable{};
    if (*count <= most_vectors * lanes_) return vectors(loop_.a, widths_of(*count, lanes_));
    const int64_t group = lanes_ * vectors_of_long_loops;
    const int64_t span = group * loop_.value;
    const ExprId middle = builder_.add(loop_.a, builder_.integer(*count / group * span));
    const VariableId variable = builder_.variable(kernel_.variables[loop_.target].name, {});
    const Range range = builder_.range(builder_.read(loop_.target));
    if (range != Range{}) builder_.set_range(variable, range.low, range.high);
    const StmtId inside = vectors(builder_.read(variable), widths_of(group, lanes_));
    const StmtId main = builder_.loop(LoopKind::serial, variable, loop_.a, middle, span, inside);
    return builder_.block({main, vectors(middle, widths_of(*count % group, lanes_))});
  }

 private:
  StmtId vectors(ExprId first, const std::vector<int>& widths) {
    if (widths.empty()) return builder_.block({});
    return Vectorizer(kernel_, builder_, loop_).body(first, widths);
  }
  Kernel& kernel_;
  Builder& builder_;
  const Stmt& loop_;
  int lanes_;
};

// Whether a variable that the loop assigns also occurs outside it: then it carries something in or out.
bool assigns_outer_variable(const Kernel& kernel, StmtId loop) {
  std::set<VariableId> assigned;
  visit_statements(kernel, loop, [&](StmtId id) {
    if (kernel.stmt(id).kind == StmtKind::assign) assigned.insert(kernel.stmt(id).target);
  });
  if (assigned.empty()) return false;
  bool found = false;
  ExpressionVisitor visitor(kernel);
  std::vector<StmtId> work(kernel.phases.begin(), kernel.phases.end());
  while (!work.empty() && !found) {
    const StmtId id = work.back();
    work.pop_back();
    if (id == loop) continue;
    const Stmt& stmt = kernel.stmt(id);
    work.insert(work.end(), stmt.children.begin(), stmt.children.end());
    found = stmt.kind == StmtKind::assign && assigned.contains(stmt.target);
    for_each_operand(stmt, [&](ExprId operand) {
      visitor.visit(operand, [&](ExprId expr_id) {
        const Expr& expr = kernel.expr(expr_id);
        found =
            found || (expr.kind == ExprKind::read && assigned.contains(static_cast<VariableId>(expr.value)));
      });
    });
  }
  return found;
}

}  // namespace

Kernel vectorize(Kernel kernel, int vector_bits) {
  Builder builder = Builder::resume(kernel);
  constexpr int bits_per_byte = 8;
  Rewriter* again = nullptr;
  Rewriter rewriter(kernel, builder, {}, [&](StmtId id) -> StmtId {
    Stmt stmt = kernel.stmt(id);
    if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::vector) return none;
    stmt.children[0] = again->rewrite_statement(stmt.children[0]);
    const int lanes =
        std::clamp(vector_bits / bits_per_byte / widest_bytes(kernel, stmt.children[0]), 1, most_lanes);
    try {
      if (assigns_outer_variable(kernel, id)) throw NotVectorizable{};
      return LoopCutter(kernel, builder, stmt, lanes).cut();
    } catch (const NotVectorizable&) {
      return builder.loop(LoopKind::serial, stmt.target, stmt.a, stmt.b, stmt.value, stmt.children[0]);
    }
  });
  again = &rewriter;
  rewriter.rewrite_phases();
  return kernel;
}

}  // namespace fusewise::kernel
