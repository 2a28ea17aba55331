// Maximum and minimum of floats: a NaN operand gives NaN, and -0 is below +0. x86's own instruction, which
// select(a > b, a, b) is, gives its second operand when one is NaN or both are equal.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/operations.h"

namespace fusewise::codegen {

using llvm::Value;

namespace {

const llvm::ConstantFP* splat_constant(Value* value) {
  if (auto* scalar = llvm::dyn_cast<llvm::ConstantFP>(value)) return scalar;
  if (auto* vector = llvm::dyn_cast<llvm::Constant>(value);
      vector != nullptr && value->getType()->isVectorTy())
    return llvm::dyn_cast_or_null<llvm::ConstantFP>(vector->getSplatValue());
  return nullptr;
}

Value* machine_extreme(llvm::IRBuilder<>& b, bool is_max, Value* x, Value* y) {
  return b.CreateSelect(is_max ? b.CreateFCmpOGT(x, y) : b.CreateFCmpOLT(x, y), x, y);
}

}  // namespace

// With the constant first, NaN comes through, and only one case of zeros is wrong.
Value* Operations::extreme_with_constant(bool is_max, const llvm::APFloat& constant, Value* c, Value* x) {
  Value* result = machine_extreme(b_, is_max, c, x);
  // max(+0, -0) gave -0: adding +0 repairs that and changes nothing else.
  if (is_max && constant.isPosZero()) return b_.CreateFAdd(result, llvm::ConstantFP::get(x->getType(), 0.0));
  return result;
}

Value* Operations::range_instruction(bool is_max, Value* a, Value* b) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(a->getType());
  if (!has_range_ || vector == nullptr) return nullptr;
  const unsigned lanes = vector->getNumElements();
  const bool single = vector->getElementType()->isFloatTy();
  const unsigned bits = lanes * vector->getScalarSizeInBits();
  namespace in = llvm::Intrinsic;
  in::ID id = in::not_intrinsic;
  if (bits == 512) id = single ? in::x86_avx512_mask_range_ps_512 : in::x86_avx512_mask_range_pd_512;
  if (bits == 256) id = single ? in::x86_avx512_mask_range_ps_256 : in::x86_avx512_mask_range_pd_256;
  if (bits == 128) id = single ? in::x86_avx512_mask_range_ps_128 : in::x86_avx512_mask_range_pd_128;
  if (id == in::not_intrinsic) return nullptr;
  llvm::Type* mask = b_.getIntNTy(lanes < 8 ? 8 : lanes);
  llvm::SmallVector<Value*, 6> arguments = {a, b, b_.getInt32(is_max ? 5 : 4),
                                            llvm::Constant::getNullValue(vector),
                                            llvm::Constant::getAllOnesValue(mask)};
  constexpr uint32_t current_rounding = 4;
  if (bits == 512) arguments.push_back(b_.getInt32(current_rounding));
  return b_.CreateIntrinsic(id, {}, arguments);
}

Value* Operations::extreme(bool is_max, Value* a, Value* b) {
  for (auto [c, x] : {std::pair(b, a), std::pair(a, b)}) {
    const llvm::ConstantFP* constant = splat_constant(c);
    if (constant == nullptr || constant->getValueAPF().isNaN()) continue;
    if (!is_max && constant->getValueAPF().isNegZero()) continue;
    return extreme_with_constant(is_max, constant->getValueAPF(), c, x);
  }
  Value* nan = b_.CreateFCmpUNO(a, b);
  Value* sum = b_.CreateFAdd(a, b);
  Value* ordered = range_instruction(is_max, a, b);
  if (ordered == nullptr) {
    // The two orders differ only for zeros: +0 has no bit set, -0 one.
    llvm::Type* integers = integers_like(a->getType());
    Value* first = b_.CreateBitCast(machine_extreme(b_, is_max, a, b), integers);
    Value* second = b_.CreateBitCast(machine_extreme(b_, is_max, b, a), integers);
    ordered =
        b_.CreateBitCast(is_max ? b_.CreateAnd(first, second) : b_.CreateOr(first, second), a->getType());
  }
  return b_.CreateSelect(nan, sum, ordered);
}

}  // namespace fusewise::codegen
