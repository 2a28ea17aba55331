#include "codegen/llvm/operations.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include "base/error.h"

namespace fusewise::codegen {

using llvm::Value;

llvm::Type* Operations::element_type(DataType type) const {
  switch (type) {
    case DataType::boolean:
      return b_.getInt1Ty();
    case DataType::bfloat16:
      return b_.getInt16Ty();
    case DataType::float16:
      return b_.getHalfTy();
    case DataType::float32:
      return b_.getFloatTy();
    case DataType::float64:
      return b_.getDoubleTy();
    default:
      if (!is_computable(type))
        throw UnsupportedError("not supported yet: kernels on " + std::string(name_of(type)));
      return b_.getIntNTy(static_cast<unsigned>(bits_of(type)));
  }
}

llvm::Type* Operations::type_of(kernel::Type type) const {
  llvm::Type* element = element_type(type.element);
  return type.lanes == 1 ? element : llvm::FixedVectorType::get(element, type.lanes);
}

llvm::Constant* Operations::constant(kernel::Type type, int64_t bits) const {
  llvm::Type* element = element_type(type.element);
  const unsigned width = element->getScalarSizeInBits();
  const llvm::APInt value = llvm::APInt(64, static_cast<uint64_t>(bits)).trunc(width);
  llvm::Constant* scalar = llvm::ConstantInt::get(b_.getContext(), value);
  if (element->isFloatingPointTy())
    scalar = llvm::ConstantFP::get(element, llvm::APFloat(element->getFltSemantics(), value));
  return type.lanes == 1 ? scalar
                         : llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(type.lanes), scalar);
}

Value* Operations::intrinsic(llvm::Intrinsic::ID id, Value* a) { return b_.CreateUnaryIntrinsic(id, a); }
llvm::Constant* Operations::same(Value* like, int64_t value) const {
  return llvm::ConstantInt::getSigned(like->getType(), value);
}
Value* Operations::is_zero(Value* a) {
  return b_.CreateICmpEQ(a, llvm::Constant::getNullValue(a->getType()));
}

llvm::Type* Operations::integers_like(llvm::Type* type) const {
  return type->getWithNewType(b_.getIntNTy(type->getScalarSizeInBits()));
}

Value* Operations::apply(ScalarOp op, DataType type, Value* a, Value* b, Value* c) {
  if (op == ScalarOp::select) return b_.CreateSelect(a, b, c);
  check(class_of(op) != ScalarClass::function, "a scalar function reached code generation unexpanded");
  const bool compares = class_of(op) == ScalarClass::compare;
  if (type == DataType::float16 || type == DataType::bfloat16) {
    Value* wide_a = cast(a, type, DataType::float32);
    Value* wide_b = b == nullptr ? nullptr : cast(b, type, DataType::float32);
    if (compares) return compare(op, DataType::float32, wide_a, wide_b);
    return cast(apply_float(op, wide_a, wide_b), DataType::float32, type);
  }
  if (compares) return compare(op, type, a, b);
  if (is_float(type)) return apply_float(op, a, b);
  if (type == DataType::boolean && op == ScalarOp::max) return b_.CreateOr(a, b);
  if (type == DataType::boolean && op == ScalarOp::min) return b_.CreateAnd(a, b);
  return apply_integer(op, is_signed(type), a, b);
}

Value* Operations::compare(ScalarOp op, DataType type, Value* a, Value* b) {
  using Predicate = llvm::CmpInst::Predicate;
  const bool floats = is_float(type);
  const bool is_signed_type = is_signed(type);
  auto order = [&](Predicate for_float, Predicate for_signed, Predicate for_unsigned) {
    return b_.CreateCmp(floats ? for_float : is_signed_type ? for_signed : for_unsigned, a, b);
  };
  switch (op) {
    case ScalarOp::equal:
      return order(Predicate::FCMP_OEQ, Predicate::ICMP_EQ, Predicate::ICMP_EQ);
    case ScalarOp::not_equal:
      return order(Predicate::FCMP_UNE, Predicate::ICMP_NE, Predicate::ICMP_NE);
    case ScalarOp::less:
      return order(Predicate::FCMP_OLT, Predicate::ICMP_SLT, Predicate::ICMP_ULT);
    case ScalarOp::less_equal:
      return order(Predicate::FCMP_OLE, Predicate::ICMP_SLE, Predicate::ICMP_ULE);
    case ScalarOp::greater:
      return order(Predicate::FCMP_OGT, Predicate::ICMP_SGT, Predicate::ICMP_UGT);
    case ScalarOp::greater_equal:
      return order(Predicate::FCMP_OGE, Predicate::ICMP_SGE, Predicate::ICMP_UGE);
    default:
      break;
  }
  if (!floats) return llvm::Constant::getNullValue(a->getType()->getWithNewType(b_.getInt1Ty()));
  if (op == ScalarOp::is_nan) return b_.CreateFCmpUNO(a, a);
  check(op == ScalarOp::is_inf, "unknown comparison");
  return b_.CreateFCmpOEQ(intrinsic(llvm::Intrinsic::fabs, a), llvm::ConstantFP::getInfinity(a->getType()));
}

Value* Operations::apply_float(ScalarOp op, Value* a, Value* b) {
  switch (op) {
    case ScalarOp::abs:
      return intrinsic(llvm::Intrinsic::fabs, a);
    case ScalarOp::add:
      return b_.CreateFAdd(a, b);
    case ScalarOp::ceil:
      return intrinsic(llvm::Intrinsic::ceil, a);
    case ScalarOp::div:
      return fenced(b_.CreateFDiv(a, b));
    case ScalarOp::floor:
      return intrinsic(llvm::Intrinsic::floor, a);
    case ScalarOp::max:
      return extreme(true, a, b);
    case ScalarOp::min:
      return extreme(false, a, b);
    case ScalarOp::mod:
      return floored_mod(a, b);
    case ScalarOp::mul:
      return b_.CreateFMul(a, b);
    case ScalarOp::neg:
      return b_.CreateFNeg(a);
    case ScalarOp::remainder:
      return fenced(b_.CreateFRem(a, b));
    case ScalarOp::round:
      return intrinsic(llvm::Intrinsic::roundeven, a);
    case ScalarOp::sign:
      return sign(a);
    case ScalarOp::sqrt:
      return intrinsic(llvm::Intrinsic::sqrt, a);
    case ScalarOp::sub:
      return b_.CreateFSub(a, b);
    case ScalarOp::trunc:
      return intrinsic(llvm::Intrinsic::trunc, a);
    default:
      throw InternalError(std::string(name_of(op)) + " of floats reached code generation");
  }
}

Value* Operations::apply_integer(ScalarOp op, bool is_signed_type, Value* a, Value* b) {
  Value* zero = llvm::Constant::getNullValue(a->getType());
  switch (op) {
    case ScalarOp::abs:
      return is_signed_type ? b_.CreateSelect(b_.CreateICmpSLT(a, zero), b_.CreateNeg(a), a) : a;
    case ScalarOp::add:
      return b_.CreateAdd(a, b);
    case ScalarOp::and_:
      return b_.CreateAnd(a, b);
    case ScalarOp::ceil:
    case ScalarOp::floor:
    case ScalarOp::round:
    case ScalarOp::trunc:
      return a;
    case ScalarOp::div:
    case ScalarOp::mod:
    case ScalarOp::remainder:
      return divide(op, is_signed_type, a, b);
    case ScalarOp::max:
      return b_.CreateBinaryIntrinsic(is_signed_type ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case ScalarOp::min:
      return b_.CreateBinaryIntrinsic(is_signed_type ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case ScalarOp::mul:
      return b_.CreateMul(a, b);
    case ScalarOp::neg:
      return b_.CreateNeg(a);
    case ScalarOp::not_:
      return b_.CreateNot(a);
    case ScalarOp::or_:
      return b_.CreateOr(a, b);
    case ScalarOp::sign: {
      Value* positive = b_.CreateSelect(is_zero(a), zero, same(a, 1));
      return is_signed_type ? b_.CreateSelect(b_.CreateICmpSLT(a, zero), same(a, -1), positive) : positive;
    }
    case ScalarOp::sub:
      return b_.CreateSub(a, b);
    case ScalarOp::xor_:
      return b_.CreateXor(a, b);
    default:
      throw InternalError(std::string(name_of(op)) + " of integers reached code generation");
  }
}

// Division by 0 gives 0; least / -1 wraps to least, whose rest is 0: both by another divisor.
Value* Operations::divide(ScalarOp op, bool is_signed_type, Value* a, Value* b) {
  Value* by_zero = is_zero(b);
  Value* replaced = by_zero;
  if (is_signed_type) {
    const unsigned width = a->getType()->getScalarSizeInBits();
    Value* least = llvm::ConstantInt::get(a->getType(), llvm::APInt::getSignedMinValue(width));
    replaced = b_.CreateOr(by_zero, b_.CreateAnd(b_.CreateICmpEQ(a, least), b_.CreateICmpEQ(b, same(b, -1))));
  }
  Value* divisor = b_.CreateSelect(replaced, same(b, 1), b);
  Value* zero = llvm::Constant::getNullValue(a->getType());
  if (op == ScalarOp::div) {
    Value* quotient = is_signed_type ? b_.CreateSDiv(a, divisor) : b_.CreateUDiv(a, divisor);
    return b_.CreateSelect(by_zero, zero, quotient);
  }
  // The rest of a division by the divisor 1 is 0, as it has to be in both replaced cases.
  Value* rest = is_signed_type ? b_.CreateSRem(a, divisor) : b_.CreateURem(a, divisor);
  if (op == ScalarOp::remainder || !is_signed_type) return rest;
  Value* differs = b_.CreateICmpSLT(b_.CreateXor(rest, divisor), zero);
  Value* adjust = b_.CreateAnd(differs, b_.CreateICmpNE(rest, zero));
  return b_.CreateSelect(adjust, b_.CreateAdd(rest, divisor), rest);
}

// Rounds down; by a constant power of two it is a shift or a mask.
Value* Operations::floor_divide(bool wants_rest, Value* a, Value* b) {
  Value* scalar = b;
  if (auto* vector = llvm::dyn_cast<llvm::Constant>(b); vector != nullptr && b->getType()->isVectorTy())
    if (llvm::Constant* splat = vector->getSplatValue()) scalar = splat;
  if (auto* divisor = llvm::dyn_cast<llvm::ConstantInt>(scalar)) {
    const llvm::APInt& value = divisor->getValue();
    if (value.isPowerOf2() && value.isStrictlyPositive())
      return wants_rest ? b_.CreateAnd(a, b_.CreateSub(b, same(b, 1)))
                        : b_.CreateAShr(a, same(a, value.logBase2()));
  }
  Value* rest = divide(ScalarOp::remainder, true, a, b);
  Value* zero = llvm::Constant::getNullValue(a->getType());
  Value* differs = b_.CreateICmpSLT(b_.CreateXor(rest, b), zero);
  Value* adjust = b_.CreateAnd(differs, b_.CreateICmpNE(rest, zero));
  if (wants_rest) return b_.CreateSelect(adjust, b_.CreateAdd(rest, b), rest);
  Value* quotient = divide(ScalarOp::div, true, a, b);
  return b_.CreateSelect(adjust, b_.CreateSub(quotient, same(a, 1)), quotient);
}

Value* Operations::native(kernel::Native op, DataType type, Value* a, Value* b) {
  switch (op) {
    case kernel::Native::copysign: {
      if (type == DataType::float32 || type == DataType::float64)
        return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a, b);
      llvm::Type* integers = integers_like(a->getType());
      Value* magnitude = b_.CreateBitCast(a, integers);
      Value* sign_bits = b_.CreateBitCast(b, integers);
      Value* bits = b_.CreateOr(b_.CreateAnd(magnitude, same(magnitude, 0x7fff)),
                                b_.CreateAnd(sign_bits, same(sign_bits, -0x8000)));
      return b_.CreateBitCast(bits, a->getType());
    }
    case kernel::Native::floor_div:
    case kernel::Native::floor_mod: {
      const bool wants_rest = op == kernel::Native::floor_mod;
      if (is_signed(type)) return floor_divide(wants_rest, a, b);
      return divide(wants_rest ? ScalarOp::remainder : ScalarOp::div, false, a, b);
    }
    case kernel::Native::shift_left:
    case kernel::Native::shift_right: {
      // The amount counts modulo the width.
      Value* amount = b_.CreateAnd(b, same(b, a->getType()->getScalarSizeInBits() - 1));
      if (op == kernel::Native::shift_left) return b_.CreateShl(a, amount);
      return is_signed(type) ? b_.CreateAShr(a, amount) : b_.CreateLShr(a, amount);
    }
  }
  throw InternalError("unknown native operation");
}

// LLVM (seen in 15 to 19) takes a lane in which both operands are known to be 0 for one whose quotient or remainder is 0,
// and forgets the selection that would have left it out: it must not see where the result comes from.
Value* Operations::fenced(Value* quotient) {
  return quotient->getType()->isVectorTy() ? b_.CreateArithmeticFence(quotient, quotient->getType())
                                           : quotient;
}

Value* Operations::floored_mod(Value* a, Value* b) {
  Value* zero = llvm::Constant::getNullValue(a->getType());
  Value* rest = fenced(b_.CreateFRem(a, b));
  Value* differs = b_.CreateXor(b_.CreateFCmpOLT(rest, zero), b_.CreateFCmpOLT(b, zero));
  Value* adjust = b_.CreateAnd(differs, b_.CreateFCmpUNE(rest, zero));
  return b_.CreateSelect(adjust, b_.CreateFAdd(rest, b), rest);
}

Value* Operations::sign(Value* a) {
  llvm::Type* type = a->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  Value* below = b_.CreateSelect(b_.CreateFCmpOLT(a, zero), llvm::ConstantFP::get(type, -1.0), zero);
  Value* ordered = b_.CreateSelect(b_.CreateFCmpOGT(a, zero), llvm::ConstantFP::get(type, 1.0), below);
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, ordered);
}

Value* Operations::fma(DataType type, Value* a, Value* b, Value* c) {
  if (type == DataType::float16 || type == DataType::bfloat16) return half_fma(type, a, b, c);
  if (is_float(type)) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  return b_.CreateAdd(b_.CreateMul(a, b), c);
}

}  // namespace fusewise::codegen
