// Statements and expressions to instructions.
#include <fmt/format.h>

#include "base/error.h"
#include "kernel/interpreter/program.h"
#include "kernel/text.h"
#include "kernel/visit.h"

namespace fusewise::kernel {

namespace {

class Compiler {
 public:
  explicit Compiler(const Kernel& kernel) : kernel_(kernel) {
    program_.kernel = &kernel;
    place_.resize(kernel.exprs.size(), none);
    stamp_of_.resize(kernel.exprs.size(), 0);
    variables_.resize(kernel.variables.size(), none);
  }
  InterpreterProgram compile();

 private:
  uint32_t permanent(uint32_t lanes) {
    const uint32_t result = static_cast<uint32_t>(program_.registers.size());
    program_.registers.resize(result + lanes);
    return result;
  }
  uint32_t temporary(uint32_t lanes) {
    const uint32_t result = temporaries_;
    temporaries_ += lanes;
    most_temporaries_ = std::max(most_temporaries_, temporaries_);
    return result;
  }
  uint32_t here() const { return static_cast<uint32_t>(program_.code.size()); }
  Instruction& emit(Step step) {
    Instruction in;
    in.step = step;
    in.statement = statement_;
    program_.code.push_back(in);
    return program_.code.back();
  }
  void reserve_leaves();
  uint32_t variable(VariableId id) {
    if (variables_[id] == none) variables_[id] = permanent(kernel_.variables[id].type.lanes);
    return variables_[id];
  }
  void require_computable(DataType type) const {
    if (!is_computable(type))
      throw UnsupportedError(
          fmt::format("not supported yet: {} in the kernel interpreter", fusewise::name_of(type)));
  }
  uint32_t value(ExprId id);
  void compute(ExprId id);
  void operation(ExprId id);
  void copy_to(uint32_t dst, ExprId value);
  void begin_statement(StmtId id) {
    statement_ = id;
    ++stamp_;
    temporaries_ = 0;
  }
  void statement(StmtId id);
  void serial_loop(const Stmt& stmt);
  void parallel_loop(const Stmt& stmt);
  void branch(const Stmt& stmt);
  void simple(const Stmt& stmt);

  const Kernel& kernel_;
  InterpreterProgram program_;
  std::vector<uint32_t> place_;  // expression -> register, valid if its stamp is this statement's
  std::vector<uint32_t> stamp_of_;
  std::vector<uint32_t> variables_;
  std::vector<std::pair<ExprId, bool>> work_;
  uint32_t stamp_ = 0;
  uint32_t temporaries_ = 0;  // counted from 0, placed behind all permanent registers in the end
  uint32_t most_temporaries_ = 0;
  StmtId statement_ = none;
};

// Temporaries are numbered from here until their place is known.
constexpr uint32_t temporary_base = 0x40000000;
constexpr uint32_t always = UINT32_MAX;

// Constants, parameters and variables have a place of their own.
void Compiler::reserve_leaves() {
  for (size_t i = 0; i < kernel_.parameters.size(); ++i) program_.parameters.push_back(permanent(1));
  for (ExprId id = 0; id < kernel_.exprs.size(); ++id) {
    const Expr& e = kernel_.exprs[id];
    if (e.kind == ExprKind::parameter) {
      place_[id] = program_.parameters.at(static_cast<size_t>(e.value));
      stamp_of_[id] = always;
    }
  }
}

InterpreterProgram Compiler::compile() {
  reserve_leaves();
  for (const StmtId phase : kernel_.phases) {
    program_.phases.push_back(here());
    statement(phase);
    emit(Step::end);
  }
  const uint32_t base = permanent(most_temporaries_);
  for (Instruction& in : program_.code)
    for (uint32_t* place : {&in.dst, &in.a, &in.b, &in.c})
      if (*place != none && *place >= temporary_base) *place = *place - temporary_base + base;
  return std::move(program_);
}

uint32_t Compiler::value(ExprId root) {
  work_.push_back({root, false});
  while (!work_.empty()) {
    const auto [id, operands_done] = work_.back();
    if (stamp_of_[id] == stamp_ || stamp_of_[id] == always) {
      work_.pop_back();
    } else if (operands_done) {
      work_.pop_back();
      compute(id);
    } else {
      work_.back().second = true;
      const Expr& e = kernel_.exprs[id];
      for (const ExprId operand : {e.c, e.b, e.a})
        if (operand != none) work_.push_back({operand, false});
    }
  }
  return place_[root];
}

void Compiler::compute(ExprId id) {
  const Expr& e = kernel_.exprs[id];
  require_computable(e.type.element);
  if (e.kind == ExprKind::constant) {
    place_[id] = permanent(e.type.lanes);
    for (uint32_t i = 0; i < e.type.lanes; ++i) program_.registers[place_[id] + i] = e.value;
    stamp_of_[id] = always;
  } else if (e.kind == ExprKind::read) {
    place_[id] = variable(static_cast<VariableId>(e.value));
    stamp_of_[id] = always;
  } else {
    operation(id);
    stamp_of_[id] = stamp_;
  }
}

void Compiler::operation(ExprId id) {
  const Expr& e = kernel_.exprs[id];
  const auto place = [&](ExprId operand) { return operand == none ? none : place_[operand]; };
  place_[id] = temporary_base + temporary(e.type.lanes);
  Instruction& in = emit(Step::compute);
  in.lanes = e.type.lanes;
  in.result = e.type.element;
  in.dst = place_[id];
  in.a = place(e.a);
  in.b = place(e.b);
  in.c = place(e.c);
  in.type = kernel_.exprs[e.a].type.element;
  in.op = e.op;
  in.native = e.native;
  for_each_operand(e, [&](ExprId) { ++in.arity; });
  in.immediate = e.value;
  switch (e.kind) {
    case ExprKind::apply:
      in.run = compute_apply(in);
      return;
    case ExprKind::native:
      in.run = compute_native(in);
      return;
    case ExprKind::fma:
      in.run = compute_fma(in);
      return;
    case ExprKind::bitcast:
      in.run = compute_bitcast(in);
      return;
    case ExprKind::load:
      in.step = Step::load;
      in.buffer = static_cast<uint32_t>(e.value);
      return;
    case ExprKind::ramp:
      in.run = compute_ramp();
      return;
    case ExprKind::broadcast:
      in.run = compute_broadcast();
      return;
    case ExprKind::shuffle:
      in.run = compute_shuffle();
      in.pattern = kernel_.patterns[static_cast<size_t>(e.value)].data();
      in.lanes_a = kernel_.exprs[e.a].type.lanes;
      return;
    case ExprKind::subgroup_reduce:
      in.step = Step::subgroup;
      return;
    case ExprKind::constant:
    case ExprKind::parameter:
    case ExprKind::read:
      break;
  }
  throw InternalError("a leaf is no operation");
}

void Compiler::copy_to(uint32_t dst, ExprId id) {
  const uint32_t source = value(id);
  Instruction& in = emit(Step::compute);
  in.lanes = kernel_.exprs[id].type.lanes;
  in.dst = dst;
  in.a = source;
  in.run = compute_copy();
}

void Compiler::serial_loop(const Stmt& stmt) {
  const uint32_t counter = variable(stmt.target);
  const uint32_t end = permanent(1);
  copy_to(counter, stmt.a);
  copy_to(end, stmt.b);
  const uint32_t test = here();
  emit(Step::loop_test);
  statement(stmt.children[0]);
  Instruction& next = emit(Step::loop_next);
  next.a = counter;
  next.b = end;
  next.immediate = stmt.value;
  next.target = test + 1;
  Instruction& first = program_.code[test];
  first.a = counter;
  first.b = end;
  first.target = here();
}

void Compiler::parallel_loop(const Stmt& stmt) {
  const uint32_t begin = value(stmt.a);
  const uint32_t end = value(stmt.b);
  const uint32_t start = here();
  emit(stmt.loop == LoopKind::block ? Step::blocks : Step::fork);
  const uint32_t counter = variable(stmt.target);
  statement(stmt.children[0]);
  emit(Step::end);
  Instruction& in = program_.code[start];
  in.a = counter;
  in.b = begin;
  in.c = end;
  in.immediate = stmt.value;
  in.target = here();
}

void Compiler::branch(const Stmt& stmt) {
  const uint32_t condition = value(stmt.a);
  const uint32_t test = here();
  emit(Step::jump_if_zero).a = condition;
  statement(stmt.children[0]);
  if (stmt.children.size() > 1) {
    const uint32_t leave = here();
    emit(Step::jump);
    program_.code[test].target = here();
    statement(stmt.children[1]);
    program_.code[leave].target = here();
  } else {
    program_.code[test].target = here();
  }
}

void Compiler::simple(const Stmt& stmt) {
  const auto place = [&](ExprId e) { return e == none ? none : value(e); };
  switch (stmt.kind) {
    case StmtKind::let:
    case StmtKind::assign:
      copy_to(variable(stmt.target), stmt.a);
      return;
    case StmtKind::allocate: {
      const Buffer& buffer = kernel_.buffers[stmt.target];
      require_computable(buffer.element);
      const uint32_t size = place(buffer.size);
      Instruction& in = emit(Step::allocate);
      in.buffer = stmt.target;
      in.a = size;
      in.type = buffer.element;
      in.owner = program_.allocations++;
      return;
    }
    case StmtKind::alias: {
      const uint32_t offset = place(stmt.a);
      Instruction& in = emit(Step::alias);
      in.buffer = stmt.target;
      in.a = offset;
      in.immediate = stmt.value;
      return;
    }
    case StmtKind::store: {
      const uint32_t index = place(stmt.a);
      const uint32_t stored = place(stmt.b);
      const uint32_t mask = place(stmt.c);
      Instruction& in = emit(Step::store);
      in.buffer = stmt.target;
      in.a = index;
      in.b = stored;
      in.c = mask;
      in.lanes = kernel_.exprs[stmt.b].type.lanes;
      in.type = kernel_.exprs[stmt.b].type.element;
      return;
    }
    case StmtKind::barrier:
      emit(Step::barrier);
      return;
    case StmtKind::prefetch:  // touches nothing that can be seen
    case StmtKind::block:
    case StmtKind::loop:
    case StmtKind::branch:
      return;
  }
}

void Compiler::statement(StmtId id) {
  const Stmt& stmt = kernel_.stmts[id];
  if (stmt.kind == StmtKind::block) {
    for (const StmtId child : stmt.children) statement(child);
    return;
  }
  begin_statement(id);
  const bool parallel =
      stmt.loop == LoopKind::block || stmt.loop == LoopKind::thread || stmt.loop == LoopKind::lane;
  if (stmt.kind == StmtKind::branch)
    branch(stmt);
  else if (stmt.kind == StmtKind::loop && parallel)
    parallel_loop(stmt);
  else if (stmt.kind == StmtKind::loop)
    serial_loop(stmt);
  else
    simple(stmt);
}

}  // namespace

InterpreterProgram compile_for_interpreter(const Kernel& kernel) { return Compiler(kernel).compile(); }

}  // namespace fusewise::kernel
