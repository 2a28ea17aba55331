#include <algorithm>

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include "base/error.h"
#include "codegen/llvm/phase_emitter.h"

namespace fusewise::codegen {

using kernel::Expr;
using kernel::ExprKind;
using llvm::Value;

// A vector of lanes further apart is put together lane by lane.
static constexpr int64_t longest_short_stride = 4;

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

// What is masked off as a whole reads zeros of ours: no branch, and no address that may lie outside of all memory, which
// costs a hundred times what a load does although it is masked.
Value* PhaseEmitter::masked_whole(Value* mask, Value* pointer, llvm::Type* type) {
  const char* name = "fusewise.zeros";
  constexpr uint64_t most_bytes = 512;
  check(module_.getDataLayout().getTypeStoreSize(type) <= most_bytes, "a vector is longer than the zeros");
  llvm::GlobalVariable* zeros = module_.getNamedGlobal(name);
  if (zeros == nullptr) {
    auto* array = llvm::ArrayType::get(b_.getInt8Ty(), most_bytes);
    zeros = new llvm::GlobalVariable(module_, array, true, llvm::GlobalValue::PrivateLinkage,
                                     llvm::Constant::getNullValue(array), name);
    zeros->setAlignment(llvm::Align(64));
  }
  return b_.CreateSelect(mask, pointer, zeros);
}

Value* PhaseEmitter::gather(const Expr& expr, Value* mask) {
  const uint32_t buffer = static_cast<uint32_t>(expr.value);
  auto* type = llvm::FixedVectorType::get(memory_type(expr.type.element), expr.type.lanes);
  Value* pointers = address(buffer, expr.a);
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(type->getWithNewType(b_.getInt1Ty()));
  return b_.CreateMaskedGather(type, pointers, alignment_of(expr.type.element), mask,
                               llvm::Constant::getNullValue(type));
}

// Lanes that lie a short stride apart: the whole vectors that span them, lane i in vector `i.first` at `i.second`, which
// begin `starts` elements behind the first lane. None reaches beyond the last lane.
struct PhaseEmitter::ShortStride {
  std::vector<int64_t> starts;
  std::vector<std::pair<size_t, int>> lanes;
};

std::optional<PhaseEmitter::ShortStride> PhaseEmitter::short_stride(ExprId index, int lanes) const {
  const Expr& ramp = kernel_.expr(index);
  if (ramp.kind != ExprKind::ramp || ramp.value < 2 || ramp.value > longest_short_stride ||
      ramp.value >= lanes)
    return std::nullopt;
  ShortStride result;
  const int64_t last = (lanes - 1) * ramp.value;
  for (int64_t v = 0; v < ramp.value; ++v) result.starts.push_back(std::min(v * lanes, last + 1 - lanes));
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const int64_t place = lane * ramp.value;
    const auto vector = static_cast<size_t>(std::min(place / lanes, ramp.value - 1));
    result.lanes.emplace_back(vector, static_cast<int>(place - result.starts[vector]));
  }
  return result;
}

// Whole vectors, of which every few-th lane is taken.
Value* PhaseEmitter::strided_load(const Expr& expr, const ShortStride& stride) {
  const auto buffer = static_cast<uint32_t>(expr.value);
  llvm::Type* element = memory_type(expr.type.element);
  auto* type = llvm::FixedVectorType::get(element, expr.type.lanes);
  Value* base = address(buffer, kernel_.expr(expr.a).a);
  Value* result = nullptr;
  for (size_t v = 0; v < stride.starts.size(); ++v) {
    Value* pointer = b_.CreateGEP(element, base, b_.getInt64(static_cast<uint64_t>(stride.starts[v])));
    Value* vector = b_.CreateAlignedLoad(type, pointer, alignment_of(expr.type.element));
    describe(vector, buffer);
    if (result == nullptr) {
      result = vector;
      continue;
    }
    // Lanes that are there already stay where they are, from the second vector on in their own places.
    llvm::SmallVector<int, 64> picked;
    for (int lane = 0; lane < expr.type.lanes; ++lane) {
      const auto& [from, place] = stride.lanes[static_cast<size_t>(lane)];
      picked.push_back(from == v ? expr.type.lanes + place : from > v ? -1 : v == 1 ? place : lane);
    }
    result = b_.CreateShuffleVector(result, vector, picked);
  }
  return result;
}

// Whole vectors with the data in every few-th lane, stored under masks: the lanes in between are others'.
void PhaseEmitter::strided_store(const kernel::Stmt& stmt, const ShortStride& stride, Value* data,
                                 Value* mask) {
  llvm::Type* element = data->getType()->getScalarType();
  const auto lanes = static_cast<int>(stride.lanes.size());
  Value* base = address(stmt.target, kernel_.expr(stmt.a).a);
  if (mask == nullptr)
    mask = llvm::Constant::getAllOnesValue(
        llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(lanes)));
  for (size_t v = 0; v < stride.starts.size(); ++v) {
    llvm::SmallVector<int, 64> data_lanes(static_cast<size_t>(lanes), -1),
        mask_lanes(static_cast<size_t>(lanes), lanes);
    for (int lane = 0; lane < lanes; ++lane) {
      const auto& [to, place] = stride.lanes[static_cast<size_t>(lane)];
      if (to == v) data_lanes[static_cast<size_t>(place)] = mask_lanes[static_cast<size_t>(place)] = lane;
    }
    Value* pointer = b_.CreateGEP(element, base, b_.getInt64(static_cast<uint64_t>(stride.starts[v])));
    Value* spread = b_.CreateShuffleVector(data, data_lanes);
    Value* stored = b_.CreateShuffleVector(mask, llvm::Constant::getNullValue(mask->getType()), mask_lanes);
    describe(
        b_.CreateMaskedStore(spread, pointer, alignment_of(kernel_.buffers[stmt.target].element), stored),
        stmt.target);
  }
}

Value* PhaseEmitter::load(const Expr& expr) {
  const uint32_t buffer = static_cast<uint32_t>(expr.value);
  const llvm::Align alignment = alignment_of(expr.type.element);
  llvm::Type* element = memory_type(expr.type.element);
  Value* raw = nullptr;
  const Expr& index = kernel_.expr(expr.a);
  const bool masked = expr.b != kernel::none;
  // One condition for all lanes.
  const bool as_whole = masked && (expr.type.lanes == 1 || kernel_.expr(expr.b).kind == ExprKind::broadcast);
  const auto load_whole = [&](llvm::Type* type, ExprId from) {
    Value* pointer = address(buffer, from);
    if (as_whole)
      pointer = masked_whole(value(expr.type.lanes == 1 ? expr.b : kernel_.expr(expr.b).a), pointer, type);
    Value* loaded = b_.CreateAlignedLoad(type, pointer, alignment);
    if (!masked) describe(loaded, buffer);
    return loaded;
  };
  if (expr.type.lanes == 1) {
    raw = load_whole(element, expr.a);
  } else if (index.kind == ExprKind::broadcast && (!masked || as_whole)) {
    Value* scalar = load_whole(element, index.a);
    // Converted before the broadcast, which is one instruction from memory where nothing is to convert.
    return b_.CreateVectorSplat(expr.type.lanes, from_memory(scalar, {expr.type.element, 1}));
  } else if (index.kind == ExprKind::ramp && index.value == 1) {
    auto* type = llvm::FixedVectorType::get(element, expr.type.lanes);
    if (!masked || as_whole) {
      raw = load_whole(type, index.a);
    } else {
      raw = b_.CreateMaskedLoad(type, address(buffer, index.a), alignment, value(expr.b),
                                llvm::Constant::getNullValue(type));
      describe(raw, buffer);
    }
  } else if (const auto stride = short_stride(expr.a, expr.type.lanes); stride && !masked) {
    raw = strided_load(expr, *stride);
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
    // Older processors have no masks that cost nothing.
    if (target_.vector_bits >= 512)
      if (const auto stride = short_stride(stmt.a, kernel_.expr(stmt.b).type.lanes))
        return strided_store(stmt, *stride, data, mask);
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
