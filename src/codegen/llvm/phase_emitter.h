// One phase of a kernel as two LLVM functions (codegen.h). Mutable variables become SSA values with phis at loops and
// branches. Equal expressions within one statement are emitted once; those that only depend on what cannot change
// (constants, parameters, immutable variables, read-only arguments) once per scope that dominates their uses.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/llvm/operations.h"
#include "kernel/kernel.h"

namespace fusewise::codegen {

class PhaseEmitter {
 public:
  PhaseEmitter(llvm::Module& module, const kernel::Kernel& kernel, const CpuTarget& target, bool has_range);
  void emit(size_t phase);

 private:
  using ExprId = kernel::ExprId;
  using StmtId = kernel::StmtId;
  using Value = llvm::Value;
  using Variables = std::map<kernel::VariableId, Value*>;

  llvm::Function* begin_function(const std::string& name, llvm::ArrayRef<llvm::Type*> parameters,
                                 llvm::Type* result);
  void emit_blocks(size_t phase, const kernel::Stmt& grid);
  void emit_block_count(size_t phase, const kernel::Stmt& grid);
  void bind_arguments();

  // statements.cpp
  void statement(StmtId id);
  void loop(const kernel::Stmt& stmt, StmtId id);
  void loop_between(kernel::VariableId variable, Value* begin, Value* end, int64_t step, StmtId body);
  void branch(const kernel::Stmt& stmt, StmtId id);
  void allocate(const kernel::Stmt& stmt);
  void prefetch(const kernel::Stmt& stmt);
  const std::set<kernel::VariableId>& assigned_in(StmtId id);
  Variables live_and_assigned(StmtId id);

  // expressions.cpp
  Value* value(ExprId id);
  Value* compute(const kernel::Expr& expr);
  Value* shuffle(const kernel::Expr& expr);
  bool is_pure(ExprId id);
  struct Scope;
  friend struct Scope;

  // memory.cpp
  Value* load(const kernel::Expr& expr);
  void store(const kernel::Stmt& stmt);
  Value* address(uint32_t buffer, ExprId index);
  Value* gather(const kernel::Expr& expr, Value* mask);
  void scatter(const kernel::Stmt& stmt, Value* data, Value* mask);
  struct ShortStride;
  std::optional<ShortStride> short_stride(ExprId index, int lanes) const;
  Value* strided_load(const kernel::Expr& expr, const ShortStride& stride);
  void strided_store(const kernel::Stmt& stmt, const ShortStride& stride, Value* data, Value* mask);
  Value* masked_whole(Value* mask, Value* pointer, llvm::Type* type);
  uint32_t root_of(uint32_t buffer) const;
  llvm::Type* memory_type(DataType type) const;
  Value* from_memory(Value* raw, kernel::Type type);
  Value* to_memory(Value* data, DataType type);
  llvm::Align alignment_of(DataType type) const;
  void describe(Value* access, uint32_t buffer);
  void make_alias_scopes();

  llvm::Module& module_;
  const kernel::Kernel& kernel_;
  const CpuTarget& target_;
  llvm::IRBuilder<> b_;
  Operations operations_;

  llvm::Function* function_ = nullptr;
  Value* buffers_argument_ = nullptr;
  Value* parameters_argument_ = nullptr;
  Value* scratch_argument_ = nullptr;
  Value* scratch_offset_ = nullptr;    // of the next allocation
  std::vector<Value*> bases_;          // pointer of each buffer, null where not in scope
  std::vector<uint32_t> sources_;      // aliases: the buffer that they shift; otherwise themselves
  std::vector<int> alias_statements_;  // how many define the buffer
  Variables variables_;
  std::unordered_map<ExprId, Value*> statement_values_;
  std::unordered_map<ExprId, Value*> scoped_values_;
  std::vector<ExprId> scoped_order_;  // so that a scope can forget its own
  std::vector<int8_t> purity_;        // -1 unknown
  std::unordered_map<StmtId, std::set<kernel::VariableId>> assigned_;
  std::vector<llvm::MDNode*> alias_scope_;  // per root buffer: its own scope, and all others
  std::vector<llvm::MDNode*> no_alias_;
};

// What ends with a scope: values computed in it, and scratch allocated in it.
struct PhaseEmitter::Scope {
  explicit Scope(PhaseEmitter& owner)
      : emitter(owner), kept(owner.scoped_order_.size()), scratch_offset(owner.scratch_offset_) {}
  ~Scope() {
    while (emitter.scoped_order_.size() > kept) {
      emitter.scoped_values_.erase(emitter.scoped_order_.back());
      emitter.scoped_order_.pop_back();
    }
    emitter.scratch_offset_ = scratch_offset;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  PhaseEmitter& emitter;
  size_t kept;
  Value* scratch_offset;
};

}  // namespace fusewise::codegen
