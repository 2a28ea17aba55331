// What single operations of Kernel IR are in LLVM IR, on scalars and on vectors alike. float16 is LLVM's half, bfloat16
// travels as its 16 bits (LLVM's own conversions call library functions, or flush denormals), boolean is i1.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "kernel/kernel.h"
#include "numerics/scalar_op.h"

namespace fusewise::codegen {

class Operations {
 public:
  // `has_range`: the target has AVX-512's range instructions, which order zeros as max and min must.
  Operations(llvm::IRBuilder<>& builder, bool has_range) : b_(builder), has_range_(has_range) {}

  llvm::Type* element_type(DataType type) const;
  llvm::Type* type_of(kernel::Type type) const;
  llvm::Constant* constant(kernel::Type type, int64_t bits) const;

  // `type` is the element type of the operands (select: of the second and third).
  llvm::Value* apply(ScalarOp op, DataType type, llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* native(kernel::Native op, DataType type, llvm::Value* a, llvm::Value* b);
  llvm::Value* fma(DataType type, llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* cast(llvm::Value* a, DataType from, DataType to);

 private:
  using Value = llvm::Value;
  Value* apply_float(ScalarOp op, Value* a, Value* b);
  Value* apply_integer(ScalarOp op, bool is_signed_type, Value* a, Value* b);
  Value* compare(ScalarOp op, DataType type, Value* a, Value* b);
  Value* extreme(bool is_max, Value* a, Value* b);
  Value* extreme_with_constant(bool is_max, const llvm::APFloat& constant, Value* c, Value* x);
  Value* range_instruction(bool is_max, Value* a, Value* b);
  Value* divide(ScalarOp op, bool is_signed_type, Value* a, Value* b);
  Value* floor_divide(bool wants_rest, Value* a, Value* b);
  Value* half_fma(DataType type, Value* a, Value* b, Value* c);
  Value* fenced(Value* quotient);
  Value* floored_mod(Value* a, Value* b);
  Value* sign(Value* a);

  Value* float_to_bfloat(Value* a);
  Value* bfloat_to_float(Value* a);
  Value* double_to_odd_float(Value* a);
  Value* double_to_half(Value* a, DataType to);
  Value* float_to_integer(Value* a, DataType to);

  Value* intrinsic(llvm::Intrinsic::ID id, Value* a);
  Value* is_zero(Value* a);
  llvm::Type* integers_like(llvm::Type* type) const;
  llvm::Constant* same(Value* like, int64_t value) const;

  llvm::IRBuilder<>& b_;
  bool has_range_;
};

}  // namespace fusewise::codegen
