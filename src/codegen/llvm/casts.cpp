// Conversions between element types, as numerics' convert() says: saturating from float to integer, one rounding half
// to even between floats, integers to the half types through float32.
#include <llvm/IR/Constants.h>

#include "base/error.h"
#include "codegen/llvm/operations.h"

namespace fusewise::codegen {

using llvm::Value;

Value* Operations::bfloat_to_float(Value* a) {
  Value* bits = b_.CreateZExt(a, a->getType()->getWithNewType(b_.getInt32Ty()));
  return b_.CreateBitCast(b_.CreateShl(bits, same(bits, 16)), a->getType()->getWithNewType(b_.getFloatTy()));
}

// Half to even by adding 0x7fff and the lowest bit that stays; NaN keeps its upper bits and stays quiet.
Value* Operations::float_to_bfloat(Value* a) {
  Value* bits = b_.CreateBitCast(a, integers_like(a->getType()));
  Value* upper = b_.CreateLShr(bits, same(bits, 16));
  Value* odd = b_.CreateAnd(upper, same(bits, 1));
  Value* sum = b_.CreateAdd(b_.CreateAdd(bits, same(bits, 0x7fff)), odd);
  Value* rounded = b_.CreateLShr(sum, same(bits, 16));
  Value* chosen = b_.CreateSelect(b_.CreateFCmpUNO(a, a), b_.CreateOr(upper, same(bits, 0x40)), rounded);
  return b_.CreateTrunc(chosen, a->getType()->getWithNewType(b_.getInt16Ty()));
}

// Rounded to odd: where inexact, the float of the two neighbours whose last bit is set. A second rounding to 22 bits or
// less then gives what one rounding gives.
Value* Operations::double_to_odd_float(Value* a) {
  Value* nearest = b_.CreateFPTrunc(a, a->getType()->getWithNewType(b_.getFloatTy()));
  Value* back = b_.CreateFPExt(nearest, a->getType());
  Value* bits = b_.CreateBitCast(nearest, integers_like(nearest->getType()));
  Value* even = is_zero(b_.CreateAnd(bits, same(bits, 1)));
  Value* inexact = b_.CreateFCmpONE(back, a);
  Value* too_large =
      b_.CreateFCmpOGT(intrinsic(llvm::Intrinsic::fabs, back), intrinsic(llvm::Intrinsic::fabs, a));
  Value* step = b_.CreateSelect(too_large, same(bits, -1), same(bits, 1));
  Value* adjusted = b_.CreateSelect(b_.CreateAnd(inexact, even), b_.CreateAdd(bits, step), bits);
  return b_.CreateBitCast(adjusted, nearest->getType());
}

Value* Operations::double_to_half(Value* a, DataType to) {
  return cast(double_to_odd_float(a), DataType::float32, to);
}

Value* Operations::float_to_integer(Value* a, DataType to) {
  llvm::Type* type = a->getType()->getWithNewType(element_type(to));
  const llvm::Intrinsic::ID id = is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return b_.CreateIntrinsic(id, {type, a->getType()}, {a});
}

Value* Operations::cast(Value* a, DataType from, DataType to) {
  if (from == to) return a;
  llvm::Type* type = a->getType()->getWithNewType(element_type(to));
  if (from == DataType::bfloat16) return cast(bfloat_to_float(a), DataType::float32, to);
  if (from == DataType::float16 && to != DataType::float32)
    return cast(cast(a, from, DataType::float32), DataType::float32, to);
  if (to == DataType::boolean) {
    Value* zero = llvm::Constant::getNullValue(a->getType());
    return is_float(from) ? b_.CreateFCmpUNE(a, zero) : b_.CreateICmpNE(a, zero);
  }
  if (is_float(from) && is_float(to)) {
    if (from == DataType::float64 && to != DataType::float32) return double_to_half(a, to);
    if (to == DataType::bfloat16) return float_to_bfloat(a);
    return bits_of(to) > bits_of(from) ? b_.CreateFPExt(a, type) : b_.CreateFPTrunc(a, type);
  }
  if (is_float(from)) return float_to_integer(a, to);
  if (to == DataType::float16 || to == DataType::bfloat16)
    return cast(cast(a, from, DataType::float32), DataType::float32, to);
  if (is_float(to)) return is_signed(from) ? b_.CreateSIToFP(a, type) : b_.CreateUIToFP(a, type);
  return is_signed(from) ? b_.CreateSExtOrTrunc(a, type) : b_.CreateZExtOrTrunc(a, type);
}

// The product of two halves is exact in double; the sum is rounded to odd (two-sum gives its error), then once more.
Value* Operations::half_fma(DataType type, Value* a, Value* b, Value* c) {
  Value* product = b_.CreateFMul(cast(a, type, DataType::float64), cast(b, type, DataType::float64));
  Value* addend = cast(c, type, DataType::float64);
  Value* sum = b_.CreateFAdd(product, addend);
  Value* part = b_.CreateFSub(sum, product);
  Value* error = b_.CreateFAdd(b_.CreateFSub(product, b_.CreateFSub(sum, part)), b_.CreateFSub(addend, part));
  Value* zero = llvm::Constant::getNullValue(sum->getType());
  Value* bits = b_.CreateBitCast(sum, integers_like(sum->getType()));
  Value* even = is_zero(b_.CreateAnd(bits, same(bits, 1)));
  // The error is NaN, and not "ordered and unequal", where the sum is no finite number.
  Value* inexact = b_.CreateFCmpONE(error, zero);
  Value* away = b_.CreateXor(b_.CreateFCmpOGT(error, zero),
                             b_.CreateICmpSLT(bits, llvm::Constant::getNullValue(bits->getType())));
  Value* step = b_.CreateSelect(away, same(bits, 1), same(bits, -1));
  Value* adjusted = b_.CreateSelect(b_.CreateAnd(inexact, even), b_.CreateAdd(bits, step), bits);
  return cast(b_.CreateBitCast(adjusted, sum->getType()), DataType::float64, type);
}

}  // namespace fusewise::codegen
