#include <llvm/IR/Intrinsics.h>

#include "base/error.h"
#include "codegen/llvm/phase_emitter.h"

namespace fusewise::codegen {

using kernel::Stmt;
using kernel::StmtKind;
using llvm::Value;

void PhaseEmitter::statement(StmtId id) {
  statement_values_.clear();
  const Stmt& stmt = kernel_.stmt(id);
  switch (stmt.kind) {
    case StmtKind::block: {
      const Scope scope(*this);
      for (StmtId child : stmt.children) statement(child);
      return;
    }
    case StmtKind::loop:
      return loop(stmt, id);
    case StmtKind::branch:
      return branch(stmt, id);
    case StmtKind::let:
    case StmtKind::assign:
      variables_[stmt.target] = value(stmt.a);
      return;
    case StmtKind::allocate:
      return allocate(stmt);
    case StmtKind::alias:
      bases_[stmt.target] = address(static_cast<uint32_t>(stmt.value), stmt.a);
      return;
    case StmtKind::store:
      return store(stmt);
    case StmtKind::barrier:
      throw UnsupportedError("not supported yet: a barrier inside a block on a CPU");
    case StmtKind::prefetch:
      return prefetch(stmt);
  }
  throw InternalError("unknown statement");
}

// Which variables a statement assigns; those declared outside it need phis.
const std::set<kernel::VariableId>& PhaseEmitter::assigned_in(StmtId id) {
  if (auto found = assigned_.find(id); found != assigned_.end()) return found->second;
  std::set<kernel::VariableId> result;
  const Stmt& stmt = kernel_.stmt(id);
  if (stmt.kind == StmtKind::assign) result.insert(stmt.target);
  for (StmtId child : stmt.children) result.insert(assigned_in(child).begin(), assigned_in(child).end());
  return assigned_[id] = std::move(result);
}

PhaseEmitter::Variables PhaseEmitter::live_and_assigned(StmtId id) {
  Variables result;
  for (kernel::VariableId variable : assigned_in(id))
    if (auto found = variables_.find(variable); found != variables_.end()) result.insert(*found);
  return result;
}

// Every kind of loop that is still there runs serially: the kinds allow more, they demand nothing.
void PhaseEmitter::loop(const Stmt& stmt, StmtId) {
  Value* begin = value(stmt.a);
  Value* end = value(stmt.b);
  loop_between(stmt.target, begin, end, stmt.value, stmt.children[0]);
}

void PhaseEmitter::loop_between(kernel::VariableId variable, Value* begin, Value* end, int64_t step,
                                StmtId body) {
  auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
  auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
  const bool known = first != nullptr && last != nullptr;
  const bool runs = known && first->getSExtValue() < last->getSExtValue();
  if (known && !runs) return;
  llvm::LLVMContext& context = module_.getContext();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* inside = llvm::BasicBlock::Create(context, "loop", function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context, "after", function_);
  if (runs)
    b_.CreateBr(inside);
  else
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), inside, after);
  const Variables outer = variables_;
  const Variables carried = live_and_assigned(body);
  b_.SetInsertPoint(inside);
  llvm::PHINode* counter = b_.CreatePHI(b_.getInt64Ty(), 2, kernel_.variables[variable].name);
  counter->addIncoming(begin, before);
  std::map<kernel::VariableId, llvm::PHINode*> phis;
  for (const auto& [carried_variable, initial] : carried) {
    llvm::PHINode* phi = b_.CreatePHI(initial->getType(), 2, kernel_.variables[carried_variable].name);
    phi->addIncoming(initial, before);
    phis[carried_variable] = phi;
    variables_[carried_variable] = phi;
  }
  variables_[variable] = counter;
  {
    const Scope scope(*this);
    statement(body);
  }
  Value* next = b_.CreateAdd(counter, b_.getInt64(static_cast<uint64_t>(step)), "", false, true);
  llvm::BasicBlock* latch = b_.GetInsertBlock();
  counter->addIncoming(next, latch);
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), inside, after);
  b_.SetInsertPoint(after);
  Variables merged = outer;
  for (const auto& [carried_variable, initial] : carried) {
    Value* final_value = variables_.at(carried_variable);
    phis[carried_variable]->addIncoming(final_value, latch);
    llvm::PHINode* result = b_.CreatePHI(initial->getType(), 2);
    if (!runs) result->addIncoming(initial, before);
    result->addIncoming(final_value, latch);
    merged[carried_variable] = result;
  }
  variables_ = std::move(merged);
}

void PhaseEmitter::branch(const Stmt& stmt, StmtId id) {
  Value* condition = value(stmt.a);
  llvm::LLVMContext& context = module_.getContext();
  const Variables outer = variables_;
  const Variables changed = live_and_assigned(id);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context, "merged", function_);
  llvm::BasicBlock* arms[2] = {llvm::BasicBlock::Create(context, "then", function_), after};
  if (stmt.children.size() > 1) arms[1] = llvm::BasicBlock::Create(context, "else", function_);
  llvm::BasicBlock* ends[2] = {nullptr, b_.GetInsertBlock()};
  Variables results[2] = {outer, outer};
  b_.CreateCondBr(condition, arms[0], arms[1]);
  for (size_t arm = 0; arm < stmt.children.size(); ++arm) {
    variables_ = outer;
    b_.SetInsertPoint(arms[arm]);
    {
      const Scope scope(*this);
      statement(stmt.children[arm]);
    }
    ends[arm] = b_.GetInsertBlock();
    b_.CreateBr(after);
    results[arm] = variables_;
  }
  b_.SetInsertPoint(after);
  Variables merged = outer;
  for (const auto& [variable, initial] : changed) {
    llvm::PHINode* phi = b_.CreatePHI(initial->getType(), 2);
    for (size_t arm = 0; arm < 2; ++arm) phi->addIncoming(results[arm].at(variable), ends[arm]);
    merged[variable] = phi;
  }
  variables_ = std::move(merged);
}

// Registers that stay memory lie on the stack; scratch is carved out of the worker's memory, each allocation aligned
// to 64 bytes behind those that are alive (kernel/passes/place_scratch.h states the same rule).
void PhaseEmitter::allocate(const Stmt& stmt) {
  const kernel::Buffer& buffer = kernel_.buffers[stmt.target];
  const uint64_t bytes = static_cast<uint64_t>(bytes_of(buffer.element));
  Value* size = value(buffer.size);
  constexpr uint64_t line = 64;
  if (buffer.scope == kernel::Scope::registers) {
    auto* count = llvm::dyn_cast<llvm::ConstantInt>(size);
    check(count != nullptr, "an allocation of registers has no constant size");
    llvm::BasicBlock& entry = function_->getEntryBlock();
    llvm::IRBuilder<> at_entry(&entry, entry.begin());
    auto* type = llvm::ArrayType::get(b_.getInt8Ty(), std::max<uint64_t>(count->getZExtValue() * bytes, 1));
    auto* memory = at_entry.CreateAlloca(type, nullptr, buffer.name);
    memory->setAlignment(llvm::Align(line));
    bases_[stmt.target] = memory;
    return;
  }
  check(buffer.scope != kernel::Scope::argument, "an argument cannot be allocated");
  bases_[stmt.target] = b_.CreateGEP(b_.getInt8Ty(), scratch_argument_, scratch_offset_, buffer.name);
  Value* needed = b_.CreateMul(size, b_.getInt64(bytes));
  Value* padded = b_.CreateAnd(b_.CreateAdd(needed, b_.getInt64(line - 1)), b_.getInt64(~(line - 1)));
  scratch_offset_ = b_.CreateAdd(scratch_offset_, padded);
}

void PhaseEmitter::prefetch(const Stmt& stmt) {
  constexpr uint32_t keep_in_all_levels = 3;
  constexpr uint32_t from_second_level_on = 2;
  const uint32_t locality = stmt.value == 1 ? keep_in_all_levels : from_second_level_on;
  Value* pointer = address(stmt.target, stmt.a);
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer->getType()},
                     {pointer, b_.getInt32(0), b_.getInt32(locality), b_.getInt32(1)});
}

}  // namespace fusewise::codegen
