#include <llvm/IR/Constants.h>

#include "base/error.h"
#include "codegen/llvm/phase_emitter.h"

namespace fusewise::codegen {

using kernel::Expr;
using kernel::ExprKind;
using llvm::Value;

// Whether the value can change between two evaluations in one scope.
bool PhaseEmitter::is_pure(ExprId id) {
  if (id == kernel::none) return true;
  if (purity_[id] >= 0) return purity_[id] != 0;
  const Expr& expr = kernel_.expr(id);
  bool pure = true;
  if (expr.kind == ExprKind::read) pure = !kernel_.variables[static_cast<size_t>(expr.value)].is_mutable;
  if (expr.kind == ExprKind::load) {
    const uint32_t buffer = static_cast<uint32_t>(expr.value);
    const kernel::Buffer& root = kernel_.buffers[root_of(buffer)];
    pure = root.scope == kernel::Scope::argument && !root.written && root.no_alias &&
           alias_statements_[buffer] < 2;
  }
  pure = pure && is_pure(expr.a) && is_pure(expr.b) && is_pure(expr.c);
  purity_[id] = pure ? 1 : 0;
  return pure;
}

Value* PhaseEmitter::value(ExprId id) {
  check(id != kernel::none, "an expression is missing");
  const bool pure = is_pure(id);
  auto& known = pure ? scoped_values_ : statement_values_;
  if (auto found = known.find(id); found != known.end()) return found->second;
  Value* result = compute(kernel_.expr(id));
  (pure ? scoped_values_ : statement_values_)[id] = result;
  if (pure) scoped_order_.push_back(id);
  return result;
}

Value* PhaseEmitter::compute(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::constant:
      return operations_.constant(expr.type, expr.value);
    case ExprKind::parameter: {
      Value* slot =
          b_.CreateConstGEP1_64(b_.getInt64Ty(), parameters_argument_, static_cast<uint64_t>(expr.value));
      auto* load = b_.CreateLoad(b_.getInt64Ty(), slot);
      load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(module_.getContext(), {}));
      return load;
    }
    case ExprKind::read: {
      auto found = variables_.find(static_cast<kernel::VariableId>(expr.value));
      check(found != variables_.end(), "a variable is read that has no value");
      return found->second;
    }
    case ExprKind::apply: {
      const DataType from = kernel_.expr(expr.op == ScalarOp::select ? expr.b : expr.a).type.element;
      Value* a = value(expr.a);
      if (expr.op == ScalarOp::cast) return operations_.cast(a, from, expr.type.element);
      Value* b = expr.b == kernel::none ? nullptr : value(expr.b);
      Value* c = expr.c == kernel::none ? nullptr : value(expr.c);
      return operations_.apply(expr.op, from, a, b, c);
    }
    case ExprKind::native: {
      Value* a = value(expr.a);
      return operations_.native(expr.native, expr.type.element, a, value(expr.b));
    }
    case ExprKind::fma: {
      Value* a = value(expr.a);
      Value* b = value(expr.b);
      return operations_.fma(expr.type.element, a, b, value(expr.c));
    }
    case ExprKind::bitcast:
      return b_.CreateBitCast(value(expr.a), operations_.type_of(expr.type));
    case ExprKind::load:
      return load(expr);
    case ExprKind::ramp: {
      std::vector<llvm::Constant*> steps;
      for (int64_t i = 0; i < expr.type.lanes; ++i)
        steps.push_back(b_.getInt64(static_cast<uint64_t>(i * expr.value)));
      Value* base = b_.CreateVectorSplat(expr.type.lanes, value(expr.a));
      return b_.CreateAdd(base, llvm::ConstantVector::get(steps));
    }
    case ExprKind::broadcast:
      return b_.CreateVectorSplat(expr.type.lanes, value(expr.a));
    case ExprKind::shuffle:
      return shuffle(expr);
    case ExprKind::subgroup_reduce:
      throw UnsupportedError("not supported yet: sub-group operations on a CPU");
  }
  throw InternalError("unknown expression");
}

Value* PhaseEmitter::shuffle(const Expr& expr) {
  auto lanes_of = [](Value* v) {
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
    return type == nullptr ? 1 : static_cast<int>(type->getNumElements());
  };
  auto widened = [&](Value* v, int lanes) -> Value* {
    auto* type = llvm::FixedVectorType::get(v->getType()->getScalarType(), static_cast<unsigned>(lanes));
    const int own = lanes_of(v);
    if (!v->getType()->isVectorTy())
      return b_.CreateInsertElement(llvm::PoisonValue::get(type), v, uint64_t{0});
    if (own == lanes) return v;
    std::vector<int> pattern(static_cast<size_t>(lanes), -1);
    for (int i = 0; i < own; ++i) pattern[static_cast<size_t>(i)] = i;
    return b_.CreateShuffleVector(v, pattern);
  };
  Value* a = value(expr.a);
  Value* b = expr.b == kernel::none ? nullptr : value(expr.b);
  const int lanes_a = lanes_of(a);
  const int width = b == nullptr ? lanes_a : std::max(lanes_a, lanes_of(b));
  std::vector<int> pattern = kernel_.patterns[static_cast<size_t>(expr.value)];
  for (int& lane : pattern)
    if (lane >= lanes_a) lane += width - lanes_a;
  Value* first = widened(a, width);
  Value* second = b == nullptr ? llvm::PoisonValue::get(first->getType()) : widened(b, width);
  Value* result = b_.CreateShuffleVector(first, second, pattern);
  return expr.type.lanes == 1 ? b_.CreateExtractElement(result, uint64_t{0}) : result;
}

}  // namespace fusewise::codegen
