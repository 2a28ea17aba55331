// The rules are two tables at the end of the first part, for expressions and for statements; the walk that
// keeps track of what is visible follows.
#include "kernel/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "kernel/evaluate.h"
#include "kernel/text.h"
#include "kernel/uniformity.h"
#include "kernel/visit.h"

namespace fusewise::kernel {

namespace {

constexpr Type index_type = {DataType::int64, 1};

// Where a statement stands.
struct Place {
  const Kernel& kernel;
  const Stmt& stmt;
  const std::vector<bool>& variables;  // visible here
  const std::vector<int>& buffers;     // visible here: the parallel depth where they came into being, or -1
  const std::vector<LoopKind>& loops;  // around the statement
  int parallel_depth;                  // block, thread and lane loops around it
  Stage stage;
  bool divergent;  // threads of a block may take different ways to get here

  Type type(ExprId e) const { return kernel.exprs[e].type; }
  bool inside(LoopKind kind) const { return std::find(loops.begin(), loops.end(), kind) != loops.end(); }
  bool has_variable(int64_t id) const {
    return id >= 0 && static_cast<size_t>(id) < variables.size() && variables[static_cast<size_t>(id)];
  }
  bool has_buffer(int64_t id) const {
    return id >= 0 && static_cast<size_t>(id) < buffers.size() && buffers[static_cast<size_t>(id)] >= 0;
  }
};

// A rule holds, or it does not; its words say what should be.
using ExprRule = bool (*)(const Place&, const Expr&);
using StmtRule = bool (*)(const Place&);

int operand_count(const Expr& e) {
  int count = 0;
  for_each_operand(e, [&](ExprId) { ++count; });
  return count;
}

bool operands_have_lanes(const Place& p, const Expr& e) {
  bool fine = true;
  for_each_operand(e, [&](ExprId operand) { fine = fine && p.type(operand).lanes == e.type.lanes; });
  return fine;
}

bool operands_have_type(const Place& p, const Expr& e) {
  bool fine = true;
  for_each_operand(e, [&](ExprId operand) { fine = fine && p.type(operand) == e.type; });
  return fine;
}

bool mask_fits(const Place& p, ExprId mask, uint16_t lanes) {
  return mask == none || p.type(mask) == Type{DataType::boolean, lanes};
}

bool registers_are_near(const Place& p, int64_t id) {
  const size_t buffer = static_cast<size_t>(id);
  return p.kernel.buffers[buffer].scope != Scope::registers || p.buffers[buffer] == p.parallel_depth;
}

bool apply_types(const Place& p, const Expr& e) {
  if (e.op == ScalarOp::cast) return is_computable(e.type.element) && is_computable(p.type(e.a).element);
  return usual_type(p.kernel, e) == e.type;
}

bool native_types(const Place&, const Expr& e) {
  return e.native == Native::copysign ? is_float(e.type.element) : is_integer(e.type.element);
}

bool shuffle_lanes(const Place& p, const Expr& e) {
  const int count = p.type(e.a).lanes + (e.b != none ? p.type(e.b).lanes : 0);
  if (e.value < 0 || static_cast<size_t>(e.value) >= p.kernel.patterns.size()) return false;
  const std::vector<int>& lanes = p.kernel.patterns[static_cast<size_t>(e.value)];
  return lanes.size() == e.type.lanes &&
         std::all_of(lanes.begin(), lanes.end(), [&](int lane) { return lane >= 0 && lane < count; });
}

struct ExprRow {
  ExprKind kind;
  ExprRule holds;
  const char* words;
};

const ExprRow expr_rules[] = {
    {ExprKind::constant,
     [](const Place&, const Expr& e) { return e.value == canonical_bits(e.type.element, e.value); },
     "the bits of a constant must fit its type"},
    {ExprKind::parameter,
     [](const Place& p, const Expr& e) {
       return e.type == index_type && e.value >= 0 &&
              static_cast<size_t>(e.value) < p.kernel.parameters.size();
     },
     "a parameter must exist and is int64"},
    {ExprKind::read, [](const Place& p, const Expr& e) { return p.has_variable(e.value); },
     "a variable must be defined before it is read"},
    {ExprKind::read,
     [](const Place& p, const Expr& e) {
       return p.kernel.variables[static_cast<size_t>(e.value)].type == e.type;
     },
     "a read must have the type of the variable"},
    {ExprKind::apply, [](const Place&, const Expr& e) { return operand_count(e) == arity_of(e.op); },
     "an operation must have as many operands as it takes"},
    {ExprKind::apply, operands_have_lanes, "operands must have as many lanes as the result"},
    {ExprKind::apply, apply_types, "the types of operands and result must suit the operation"},
    {ExprKind::native, [](const Place&, const Expr& e) { return operand_count(e) == 2; },
     "a machine operation must have two operands"},
    {ExprKind::native, operands_have_type,
     "operands of a machine operation must have the type of the result"},
    {ExprKind::native, native_types, "copysign is for floats, the other machine operations are for integers"},
    {ExprKind::fma, [](const Place&, const Expr& e) { return operand_count(e) == 3; },
     "fma must have three operands"},
    {ExprKind::fma, operands_have_type, "operands of fma must have the type of the result"},
    {ExprKind::fma,
     [](const Place&, const Expr& e) {
       return is_computable(e.type.element) && e.type.element != DataType::boolean;
     },
     "fma is for numbers"},
    {ExprKind::bitcast,
     [](const Place& p, const Expr& e) {
       const Type source = p.type(e.a);
       return source.lanes == e.type.lanes && bits_of(source.element) == bits_of(e.type.element) &&
              bits_of(source.element) > 0;
     },
     "bitcast must keep the lanes and their size"},
    {ExprKind::load, [](const Place& p, const Expr& e) { return p.has_buffer(e.value); },
     "a buffer must be in scope where it is read"},
    {ExprKind::load,
     [](const Place& p, const Expr& e) {
       return p.type(e.a) == Type{DataType::int64, e.type.lanes} &&
              e.type.element == p.kernel.buffers[static_cast<size_t>(e.value)].element;
     },
     "a load must have the buffer's element type and one int64 index per lane"},
    {ExprKind::load, [](const Place& p, const Expr& e) { return mask_fits(p, e.b, e.type.lanes); },
     "the mask of a load must be boolean with as many lanes"},
    {ExprKind::load, [](const Place& p, const Expr& e) { return registers_are_near(p, e.value); },
     "registers must be used by the thread that allocates them"},
    {ExprKind::ramp,
     [](const Place& p, const Expr& e) {
       return p.type(e.a) == index_type && e.type.element == DataType::int64 && e.type.lanes > 1;
     },
     "a ramp must start at an int64 and have at least two lanes"},
    {ExprKind::broadcast,
     [](const Place& p, const Expr& e) { return p.type(e.a) == Type{e.type.element, 1} && e.type.lanes > 1; },
     "a broadcast must be of a scalar into at least two lanes"},
    {ExprKind::shuffle,
     [](const Place& p, const Expr& e) {
       return p.type(e.a).element == e.type.element && (e.b == none || p.type(e.b).element == e.type.element);
     },
     "a shuffle must keep the element type"},
    {ExprKind::shuffle, shuffle_lanes, "a shuffle must pick lanes that its operands have"},
    {ExprKind::subgroup_reduce,
     [](const Place& p, const Expr& e) { return e.value >= 0 && e.value < 4 && p.type(e.a) == e.type; },
     "a reduction over the sub-group must keep the type"},
    {ExprKind::subgroup_reduce,
     [](const Place& p, const Expr&) { return p.inside(LoopKind::lane) && !p.divergent; },
     "a reduction over the sub-group must be in a lane loop, in uniform control flow"},
};

// begin..end with an extent that is a number: two numbers, or end = begin + number.
bool has_constant_extent(const Kernel& kernel, const Stmt& loop) {
  const Expr& begin = kernel.exprs[loop.a];
  const Expr& end = kernel.exprs[loop.b];
  if (begin.kind == ExprKind::constant && end.kind == ExprKind::constant) return true;
  const auto split = [&](ExprId id) {
    const Expr& e = kernel.exprs[id];
    const bool is_sum =
        e.kind == ExprKind::apply && e.op == ScalarOp::add && kernel.exprs[e.b].kind == ExprKind::constant;
    return is_sum ? e.a : id;
  };
  return split(loop.a) == split(loop.b);
}

bool loop_nests(const Place& p) {
  if (p.stmt.loop == LoopKind::block)
    return std::all_of(p.loops.begin(), p.loops.end(), [](LoopKind kind) { return kind == LoopKind::block; });
  if (p.stmt.loop == LoopKind::thread) return !p.inside(LoopKind::lane) && !p.inside(LoopKind::vector);
  return p.stmt.loop != LoopKind::lane || (!p.inside(LoopKind::lane) && !p.inside(LoopKind::vector));
}

// A size: constants, parameters and arithmetic.
bool is_size(const Kernel& kernel, ExprId id) {
  if (id == none || kernel.exprs[id].type != index_type) return false;
  bool fine = true;
  ExpressionVisitor(kernel).visit(id, [&](ExprId e) {
    const ExprKind kind = kernel.exprs[e].kind;
    fine = fine && kind != ExprKind::read && kind != ExprKind::load && kind != ExprKind::subgroup_reduce;
  });
  return fine;
}

bool registers_are_constant(const Place& p) {
  const Buffer& b = p.kernel.buffers[p.stmt.target];
  if (b.scope != Scope::registers) return true;
  return p.kernel.exprs[b.size].kind == ExprKind::constant && p.kernel.exprs[b.size].value >= 0;
}

const Variable& target(const Place& p) { return p.kernel.variables[p.stmt.target]; }

struct StmtRow {
  StmtKind kind;
  StmtRule holds;
  const char* words;
};

const StmtRow stmt_rules[] = {
    {StmtKind::loop, [](const Place& p) { return p.stmt.children.size() == 1 && p.stmt.value > 0; },
     "a loop must have one body and a positive step"},
    {StmtKind::loop, [](const Place& p) { return target(p).type == index_type && !target(p).is_mutable; },
     "the variable of a loop must be an immutable int64"},
    {StmtKind::loop, [](const Place& p) { return !p.variables[p.stmt.target]; },
     "the variable of a loop must not be defined already"},
    {StmtKind::loop,
     [](const Place& p) { return p.type(p.stmt.a) == index_type && p.type(p.stmt.b) == index_type; },
     "the bounds of a loop must be int64"},
    {StmtKind::loop,
     [](const Place& p) {
       return p.stage == Stage::lowered ||
              (p.stmt.loop != LoopKind::unrolled && p.stmt.loop != LoopKind::vector) ||
              has_constant_extent(p.kernel, p.stmt);
     },
     "unrolled and vector loops must have a constant extent"},
    {StmtKind::loop, loop_nests,
     "block loops must be outermost, and no thread or lane loop may be inside lanes"},
    {StmtKind::branch,
     [](const Place& p) { return p.stmt.children.size() == 1 || p.stmt.children.size() == 2; },
     "a branch must have one or two parts"},
    {StmtKind::branch, [](const Place& p) { return p.type(p.stmt.a) == Type{DataType::boolean, 1}; },
     "the condition of a branch must be one boolean"},
    {StmtKind::let, [](const Place& p) { return !target(p).is_mutable && !p.variables[p.stmt.target]; },
     "an immutable variable must be defined once"},
    {StmtKind::let, [](const Place& p) { return target(p).type == p.type(p.stmt.a); },
     "a variable must have the type of its value"},
    {StmtKind::assign, [](const Place& p) { return target(p).is_mutable; },
     "an immutable variable must not be assigned"},
    {StmtKind::assign, [](const Place& p) { return target(p).type == p.type(p.stmt.a); },
     "a variable must have the type of its value"},
    {StmtKind::allocate,
     [](const Place& p) { return p.kernel.buffers[p.stmt.target].scope != Scope::argument; },
     "an argument must not be allocated"},
    {StmtKind::allocate, [](const Place& p) { return !p.has_buffer(p.stmt.target); },
     "a buffer must not be allocated while it exists"},
    {StmtKind::allocate,
     [](const Place& p) { return is_size(p.kernel, p.kernel.buffers[p.stmt.target].size); },
     "the size of an allocation must be an int64 over constants and parameters"},
    {StmtKind::allocate, registers_are_constant, "registers must have a constant size"},
    {StmtKind::alias, [](const Place& p) { return p.has_buffer(p.stmt.value); },
     "the source of an alias must be in scope"},
    {StmtKind::alias,
     [](const Place& p) {
       const Buffer& own = p.kernel.buffers[p.stmt.target];
       const Buffer& source = p.kernel.buffers[static_cast<size_t>(p.stmt.value)];
       return own.is_alias && !p.has_buffer(p.stmt.target) && own.element == source.element &&
              own.scope == source.scope;
     },
     "an alias must be new and have the element type and scope of its source"},
    {StmtKind::alias, [](const Place& p) { return p.type(p.stmt.a) == index_type; },
     "the offset of an alias must be int64"},
    {StmtKind::store, [](const Place& p) { return p.has_buffer(p.stmt.target); },
     "a buffer must be in scope where it is written"},
    {StmtKind::store,
     [](const Place& p) {
       const Buffer& b = p.kernel.buffers[p.stmt.target];
       return b.scope != Scope::argument || b.written;
     },
     "an argument that is only read must not be written"},
    {StmtKind::store,
     [](const Place& p) {
       const Type value = p.type(p.stmt.b);
       return value.element == p.kernel.buffers[p.stmt.target].element &&
              p.type(p.stmt.a) == Type{DataType::int64, value.lanes};
     },
     "a store must have the buffer's element type and one int64 index per lane"},
    {StmtKind::store, [](const Place& p) { return mask_fits(p, p.stmt.c, p.type(p.stmt.b).lanes); },
     "the mask of a store must be boolean with as many lanes"},
    {StmtKind::store, [](const Place& p) { return registers_are_near(p, p.stmt.target); },
     "registers must be used by the thread that allocates them"},
    {StmtKind::barrier, [](const Place& p) { return !p.divergent && !p.inside(LoopKind::vector); },
     "a barrier must be in uniform control flow"},
    {StmtKind::prefetch,
     [](const Place& p) { return p.has_buffer(p.stmt.target) && p.type(p.stmt.a) == index_type; },
     "a prefetch must name a buffer in scope and an int64 index"},
    {StmtKind::prefetch, [](const Place& p) { return p.stmt.value == 1 || p.stmt.value == 2; },
     "a prefetch must be into level 1 or 2"},
};

class Walk {
 public:
  Walk(const Kernel& kernel, Stage stage)
      : kernel_(kernel),
        stage_(stage),
        uniformity_(kernel),
        variables_(kernel.variables.size()),
        buffers_(kernel.buffers.size(), -1),
        seen_(kernel.exprs.size()) {}
  void run();

 private:
  [[noreturn]] void refuse(StmtId id, const char* words) const {
    throw InternalError(fmt::format("kernel '{}': {}: {}", kernel_.name, words, statement_text(kernel_, id)));
  }
  void walk(StmtId id);
  void walk_scope(StmtId id);
  void check_exprs(const Place& place, StmtId id);
  void check_ids(StmtId id) const;
  void define(VariableId variable) {
    if (variables_[variable]) return;
    variables_[variable] = true;
    defined_.push_back(variable);
  }
  void bring(BufferId buffer, int depth) {
    buffers_[buffer] = depth;
    brought_.push_back(buffer);
  }

  const Kernel& kernel_;
  Stage stage_;
  Uniformity uniformity_;
  std::vector<bool> variables_;
  std::vector<int> buffers_;
  std::vector<VariableId> defined_;  // in order, so that leaving a scope undoes it
  std::vector<BufferId> brought_;
  std::vector<LoopKind> loops_;
  int parallel_depth_ = 0;
  int divergent_ = 0;
  std::vector<uint32_t> seen_;  // expression -> the last statement that was checked with it
  uint32_t stamp_ = 0;
};

void Walk::run() {
  size_t arguments = 0;
  while (arguments < kernel_.buffers.size() && kernel_.buffers[arguments].scope == Scope::argument &&
         !kernel_.buffers[arguments].is_alias)
    buffers_[arguments++] = 0;
  check(arguments == static_cast<size_t>(kernel_.argument_count()),
        fmt::format("kernel '{}': arguments must come before other buffers", kernel_.name));
  for (const StmtId phase : kernel_.phases) {
    check(phase < kernel_.stmts.size(), "a phase must be a statement");
    const Stmt& stmt = kernel_.stmts[phase];
    if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::block)
      refuse(phase, "a phase must be a block loop");
    walk_scope(phase);
  }
}

// Ids that point nowhere would make the other rules read out of bounds.
void Walk::check_ids(StmtId id) const {
  const Stmt& s = kernel_.stmts[id];
  const auto require = [&](bool fine) {
    if (!fine)
      throw InternalError(
          fmt::format("kernel '{}': statement {} has an id that does not exist", kernel_.name, id));
  };
  for_each_operand(s, [&](ExprId e) { require(e < kernel_.exprs.size()); });
  for (const StmtId child : s.children) require(child < kernel_.stmts.size());
  const bool on_variable = s.kind == StmtKind::loop || s.kind == StmtKind::let || s.kind == StmtKind::assign;
  const bool on_buffer = s.kind == StmtKind::allocate || s.kind == StmtKind::alias ||
                         s.kind == StmtKind::store || s.kind == StmtKind::prefetch;
  if (on_variable) require(s.target < kernel_.variables.size());
  if (on_buffer) require(s.target < kernel_.buffers.size());
  const bool needs_a =
      on_variable || s.kind == StmtKind::branch || (on_buffer && s.kind != StmtKind::allocate);
  require(!needs_a || s.a != none);
  require((s.kind != StmtKind::loop && s.kind != StmtKind::store) || s.b != none);
}

void Walk::check_exprs(const Place& place, StmtId id) {
  ++stamp_;
  std::vector<ExprId> work;
  for_each_operand(place.stmt, [&](ExprId e) { work.push_back(e); });
  while (!work.empty()) {
    const ExprId current = work.back();
    work.pop_back();
    if (seen_[current] == stamp_) continue;
    seen_[current] = stamp_;
    const Expr& e = kernel_.exprs[current];
    bool is_whole = true;
    for_each_operand(e, [&](ExprId operand) {
      is_whole = is_whole && operand < kernel_.exprs.size();
      work.push_back(operand);
    });
    const bool is_leaf =
        e.kind == ExprKind::constant || e.kind == ExprKind::parameter || e.kind == ExprKind::read;
    if (!is_whole || (!is_leaf && e.a == none)) refuse(id, "the operands of an expression must exist");
    for (const ExprRow& row : expr_rules)
      if (row.kind == e.kind && !row.holds(place, e)) refuse(id, row.words);
  }
}

void Walk::walk_scope(StmtId id) {
  const size_t variables = defined_.size();
  const size_t buffers = brought_.size();
  walk(id);
  for (; defined_.size() > variables; defined_.pop_back()) variables_[defined_.back()] = false;
  for (; brought_.size() > buffers; brought_.pop_back()) buffers_[brought_.back()] = -1;
}

void Walk::walk(StmtId id) {
  check_ids(id);
  const Stmt& stmt = kernel_.stmts[id];
  const Place place = {kernel_, stmt, variables_, buffers_, loops_, parallel_depth_, stage_, divergent_ > 0};
  check_exprs(place, id);
  for (const StmtRow& row : stmt_rules)
    if (row.kind == stmt.kind && !row.holds(place)) refuse(id, row.words);
  switch (stmt.kind) {
    case StmtKind::block:
      for (const StmtId child : stmt.children) {
        // A nested block is a scope of its own.
        if (kernel_.stmts[child].kind == StmtKind::block)
          walk_scope(child);
        else
          walk(child);
      }
      break;
    case StmtKind::loop: {
      const bool is_parallel =
          stmt.loop == LoopKind::block || stmt.loop == LoopKind::thread || stmt.loop == LoopKind::lane;
      const bool varies = uniformity_.varies(stmt.a) || uniformity_.varies(stmt.b);
      define(stmt.target);
      loops_.push_back(stmt.loop);
      parallel_depth_ += is_parallel ? 1 : 0;
      divergent_ += varies ? 1 : 0;
      walk_scope(stmt.children[0]);
      divergent_ -= varies ? 1 : 0;
      parallel_depth_ -= is_parallel ? 1 : 0;
      loops_.pop_back();
      // Seen from behind the loop its variable is gone.
      variables_[stmt.target] = false;
      std::erase(defined_, stmt.target);
      break;
    }
    case StmtKind::branch: {
      const bool varies = uniformity_.varies(stmt.a);
      divergent_ += varies ? 1 : 0;
      for (const StmtId child : stmt.children) walk_scope(child);
      divergent_ -= varies ? 1 : 0;
      break;
    }
    case StmtKind::let:
    case StmtKind::assign:
      define(stmt.target);
      break;
    case StmtKind::allocate:
      bring(stmt.target, parallel_depth_);
      break;
    case StmtKind::alias:
      bring(stmt.target, buffers_[static_cast<size_t>(stmt.value)]);
      break;
    case StmtKind::store:
    case StmtKind::barrier:
    case StmtKind::prefetch:
      break;
  }
}

}  // namespace

void verify(const Kernel& kernel, Stage stage) { Walk(kernel, stage).run(); }

}  // namespace fusewise::kernel
