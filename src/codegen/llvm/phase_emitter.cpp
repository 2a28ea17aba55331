#include "codegen/llvm/phase_emitter.h"

#include <llvm/IR/MDBuilder.h>

#include "base/error.h"

namespace fusewise::codegen {

using kernel::StmtKind;

PhaseEmitter::PhaseEmitter(llvm::Module& module, const kernel::Kernel& kernel, const CpuTarget& target,
                           bool has_range)
    : module_(module), kernel_(kernel), target_(target), b_(module.getContext()), operations_(b_, has_range) {
  sources_.resize(kernel.buffers.size());
  alias_statements_.resize(kernel.buffers.size());
  for (uint32_t i = 0; i < sources_.size(); ++i) sources_[i] = i;
  for (const kernel::Stmt& stmt : kernel.stmts) {
    if (stmt.kind != StmtKind::alias) continue;
    sources_[stmt.target] = static_cast<uint32_t>(stmt.value);
    ++alias_statements_[stmt.target];
  }
  make_alias_scopes();
}

void PhaseEmitter::emit(size_t phase) {
  const kernel::Stmt& grid = kernel_.stmt(kernel_.phases[phase]);
  check(grid.kind == StmtKind::loop && grid.loop == kernel::LoopKind::block,
        "a phase is not a loop over blocks");
  emit_block_count(phase, grid);
  emit_blocks(phase, grid);
}

llvm::Function* PhaseEmitter::begin_function(const std::string& name, llvm::ArrayRef<llvm::Type*> parameters,
                                             llvm::Type* result) {
  auto* type = llvm::FunctionType::get(result, parameters, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr("target-cpu", target_.cpu);
  if (!target_.features.empty()) function_->addFnAttr("target-features", target_.features);
  if (target_.vector_bits > 128)
    function_->addFnAttr("prefer-vector-width", std::to_string(target_.vector_bits));
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function_));
  bases_.assign(kernel_.buffers.size(), nullptr);
  variables_.clear();
  statement_values_.clear();
  scoped_values_.clear();
  scoped_order_.clear();
  purity_.assign(kernel_.exprs.size(), -1);
  return function_;
}

void PhaseEmitter::emit_block_count(size_t phase, const kernel::Stmt& grid) {
  begin_function(block_count_symbol(kernel_, phase), {b_.getPtrTy()}, b_.getInt64Ty());
  parameters_argument_ = function_->getArg(0);
  llvm::Value* extent = b_.CreateSub(value(grid.b), value(grid.a));
  llvm::Value* rounded = b_.CreateAdd(extent, b_.getInt64(static_cast<uint64_t>(grid.value - 1)));
  llvm::Value* count = b_.CreateSDiv(rounded, b_.getInt64(static_cast<uint64_t>(grid.value)));
  llvm::Value* is_empty = b_.CreateICmpSLE(extent, b_.getInt64(0));
  b_.CreateRet(b_.CreateSelect(is_empty, b_.getInt64(0), count));
}

void PhaseEmitter::bind_arguments() {
  const int count = kernel_.argument_count();
  for (int i = 0; i < count; ++i) {
    llvm::Value* slot = b_.CreateConstGEP1_64(b_.getPtrTy(), buffers_argument_, static_cast<uint64_t>(i));
    auto* pointer = b_.CreateLoad(b_.getPtrTy(), slot, kernel_.buffers[static_cast<size_t>(i)].name);
    pointer->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(module_.getContext(), {}));
    bases_[static_cast<size_t>(i)] = pointer;
  }
}

void PhaseEmitter::emit_blocks(size_t phase, const kernel::Stmt& grid) {
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Type* integer = b_.getInt64Ty();
  begin_function(phase_symbol(kernel_, phase), {pointer, pointer, pointer, integer, integer}, b_.getVoidTy());
  buffers_argument_ = function_->getArg(0);
  parameters_argument_ = function_->getArg(1);
  scratch_argument_ = function_->getArg(2);
  scratch_offset_ = b_.getInt64(0);
  for (unsigned i = 0; i < 3; ++i) function_->addParamAttr(i, llvm::Attribute::NoAlias);
  bind_arguments();
  llvm::Value* origin = value(grid.a);
  llvm::Value* step = b_.getInt64(static_cast<uint64_t>(grid.value));
  llvm::Value* begin = b_.CreateAdd(origin, b_.CreateMul(function_->getArg(3), step));
  llvm::Value* end = b_.CreateAdd(origin, b_.CreateMul(function_->getArg(4), step));
  loop_between(grid.target, begin, end, grid.value, grid.children[0]);
  b_.CreateRetVoid();
}

// Each argument buffer that overlaps no other, and each allocation, has an alias scope of its own.
void PhaseEmitter::make_alias_scopes() {
  llvm::MDBuilder builder(module_.getContext());
  llvm::MDNode* domain = builder.createAnonymousAliasScopeDomain(kernel_.name);
  std::vector<llvm::Metadata*> own(kernel_.buffers.size(), nullptr);
  for (size_t i = 0; i < own.size(); ++i) {
    const kernel::Buffer& buffer = kernel_.buffers[i];
    const bool is_alone = buffer.scope != kernel::Scope::argument || buffer.no_alias;
    if (sources_[i] == i && is_alone) own[i] = builder.createAnonymousAliasScope(domain, buffer.name);
  }
  alias_scope_.resize(own.size());
  no_alias_.resize(own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    if (sources_[i] != i) continue;
    std::vector<llvm::Metadata*> others;
    for (size_t j = 0; j < own.size(); ++j)
      if (j != i && own[j] != nullptr) others.push_back(own[j]);
    if (own[i] != nullptr) alias_scope_[i] = llvm::MDNode::get(module_.getContext(), {own[i]});
    no_alias_[i] = llvm::MDNode::get(module_.getContext(), others);
  }
}

}  // namespace fusewise::codegen
