#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include "base/error.h"
#include "codegen/llvm/phase_emitter.h"

namespace fusewise::codegen {

using kernel::Expr;
using kernel::ExprKind;
using llvm::Value;

uint32_t PhaseEmitter::root_of(uint32_t buffer) const {
  while (sources_[buffer] != buffer) buffer = sources_[buffer];
  return buffer;
}

llvm::Type* PhaseEmitter::memory_type(DataType type) const {
  return type == DataType::boolean ? llvm::Type::getInt8Ty(module_.getContext())
                                   : operations_.element_type(type);
}

llvm::Align PhaseEmitter::alignment_of(DataType type) const {
  return llvm::Align(static_cast<uint64_t>(bytes_of(type)));
}

Value* PhaseEmitter::from_memory(Value* raw, kernel::Type type) {
  if (type.element != DataType::boolean) return raw;
  return b_.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
}

Value* PhaseEmitter::to_memory(Value* data, DataType type) {
  if (type != DataType::boolean) return data;
  return b_.CreateZExt(data, data->getType()->getWithNewType(b_.getInt8Ty()));
}

void PhaseEmitter::describe(Value* access, uint32_t buffer) {
  auto* instruction = llvm::dyn_cast<llvm::Instruction>(access);
  if (instruction == nullptr) return;
  const uint32_t root = root_of(buffer);
  const kernel::Buffer& about = kernel_.buffers[root];
  if (alias_scope_[root] != nullptr)
    instruction->setMetadata(llvm::LLVMContext::MD_alias_scope, alias_scope_[root]);
  if (no_alias_[root] != nullptr && no_alias_[root]->getNumOperands() > 0)
    instruction->setMetadata(llvm::LLVMContext::MD_noalias, no_alias_[root]);
  const bool never_changes = about.scope == kernel::Scope::argument && !about.written && about.no_alias;
  if (never_changes && llvm::isa<llvm::LoadInst>(instruction))
    instruction->setMetadata(llvm::LLVMContext::MD_invariant_load,
                             llvm::MDNode::get(module_.getContext(), {}));
}

// Constant parts of the index come last, where they end up in the instruction's displacement.
Value* PhaseEmitter::address(uint32_t buffer, ExprId index) {
  Value* base = bases_[buffer];
  check(base != nullptr, "buffer " + kernel_.buffers[buffer].name + " is used where it does not exist");
  llvm::Type* type = memory_type(kernel_.buffers[buffer].element);
  const Expr& expr = kernel_.expr(index);
  if (expr.kind == ExprKind::apply && expr.op == ScalarOp::add && expr.type.lanes == 1) {
    for (auto [constant, rest] : {std::pair(expr.b, expr.a), std::pair(expr.a, expr.b)}) {
      if (kernel_.expr(constant).kind != ExprKind::constant) continue;
      Value* variable_part = b_.CreateGEP(type, base, value(rest));
      return b_.CreateGEP(type, variable_part, value(constant));
    }
  }
  return b_.CreateGEP(type, base, value(index));
}

Value* PhaseEmitter::masked_scalar_load(const Expr& expr) {
  // A lane that is masked off reads a zero of ours: no branch.
  const char* name = "fusewise.zero";
  llvm::GlobalVariable* zero = module_.getNamedGlobal(name);
  if (zero == nullptr) {
    zero = new llvm::GlobalVariable(module_, b_.getInt64Ty(), true, llvm::GlobalValue::PrivateLinkage,
                                    b_.getInt64(0), name);
    zero->setAlignment(llvm::Align(8));
  }
  Value* mask = value(expr.b);
  Value* pointer = b_.CreateSelect(mask, address(static_cast<uint32_t>(expr.value), expr.a), zero);
  return b_.CreateAlignedLoad(memory_type(expr.type.element), pointer, alignment_of(expr.type.element));
}

Value* PhaseEmitter::gather(const Expr& expr, Value* mask) {
  const uint32_t buffer = static_cast<uint32_t>(expr.value);
  auto* type = llvm::FixedVectorType::get(memory_type(expr.type.element), expr.type.lanes);
  Value* pointers = address(buffer, expr.a);
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(type->getWithNewType(b_.getInt1Ty()));
  return b_.CreateMaskedGather(type, pointers, alignment_of(expr.type.element), mask,
                               llvm::Constant::getNullValue(type));
}

Value* PhaseEmitter::load(const Expr& expr) {
  const uint32_t buffer = static_cast<uint32_t>(expr.value);
  const llvm::Align alignment = alignment_of(expr.type.element);
  llvm::Type* element = memory_type(expr.type.element);
  Value* raw = nullptr;
  const Expr& index = kernel_.expr(expr.a);
  const bool masked = expr.b != kernel::none;
  if (expr.type.lanes == 1) {
    raw =
        masked ? masked_scalar_load(expr) : b_.CreateAlignedLoad(element, address(buffer, expr.a), alignment);
    if (!masked) describe(raw, buffer);
  } else if (index.kind == ExprKind::broadcast && !masked) {
    Value* scalar = b_.CreateAlignedLoad(element, address(buffer, index.a), alignment);
    describe(scalar, buffer);
    // Converted before the broadcast, which is one instruction from memory where nothing is to convert.
    return b_.CreateVectorSplat(expr.type.lanes, from_memory(scalar, {expr.type.element, 1}));
  } else if (index.kind == ExprKind::ramp && index.value == 1) {
    auto* type = llvm::FixedVectorType::get(element, expr.type.lanes);
    Value* pointer = address(buffer, index.a);
    raw = masked ? static_cast<Value*>(b_.CreateMaskedLoad(type, pointer, alignment, value(expr.b),
                                                           llvm::Constant::getNullValue(type)))
                 : b_.CreateAlignedLoad(type, pointer, alignment);
    describe(raw, buffer);
  } else {
    raw = gather(expr, masked ? value(expr.b) : nullptr);
    describe(raw, buffer);
  }
  return from_memory(raw, expr.type);
}

void PhaseEmitter::scatter(const kernel::Stmt& stmt, Value* data, Value* mask) {
  Value* pointers = address(stmt.target, stmt.a);
  if (mask == nullptr)
    mask = llvm::Constant::getAllOnesValue(data->getType()->getWithNewType(b_.getInt1Ty()));
  describe(b_.CreateMaskedScatter(data, pointers, alignment_of(kernel_.buffers[stmt.target].element), mask),
           stmt.target);
}

void PhaseEmitter::store(const kernel::Stmt& stmt) {
  const kernel::Buffer& buffer = kernel_.buffers[stmt.target];
  const llvm::Align alignment = alignment_of(buffer.element);
  const Expr& index = kernel_.expr(stmt.a);
  const bool masked = stmt.c != kernel::none;
  Value* data = to_memory(value(stmt.b), buffer.element);
  if (data->getType()->isVectorTy()) {
    Value* mask = masked ? value(stmt.c) : nullptr;
    if (index.kind != ExprKind::ramp || index.value != 1) return scatter(stmt, data, mask);
    Value* pointer = address(stmt.target, index.a);
    if (masked) return describe(b_.CreateMaskedStore(data, pointer, alignment, mask), stmt.target);
    return describe(b_.CreateAlignedStore(data, pointer, alignment), stmt.target);
  }
  Value* pointer = address(stmt.target, stmt.a);
  if (!masked) return describe(b_.CreateAlignedStore(data, pointer, alignment), stmt.target);
  llvm::BasicBlock* inside = llvm::BasicBlock::Create(module_.getContext(), "masked", function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(module_.getContext(), "after", function_);
  b_.CreateCondBr(value(stmt.c), inside, after);
  b_.SetInsertPoint(inside);
  describe(b_.CreateAlignedStore(data, pointer, alignment), stmt.target);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

}  // namespace fusewise::codegen
