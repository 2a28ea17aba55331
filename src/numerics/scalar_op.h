// The closed list of scalar operations (scalar_ops.def) and their meaning on plain numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "numerics/data_type.h"

namespace fusewise {

enum class ScalarOp : uint8_t {
#define SCALAR_OP(name, arity, class_) name,
#include "numerics/scalar_ops.def"
#undef SCALAR_OP
};

enum class ScalarClass : uint8_t { basic, compare, function, convert };

int arity_of(ScalarOp op);
ScalarClass class_of(ScalarOp op);
std::string_view name_of(ScalarOp op);  // without the trailing underscore: "and"
std::optional<ScalarOp> scalar_op_of(std::string_view name);

// The result type for operands of these types (select: of the second); `cast` has none of its own. Nothing too
// when the operation has no meaning for them: operands of differing types, `sqrt` and functions of integers,
// arithmetic on booleans, logic on floats.
std::optional<DataType> result_type_of(ScalarOp op, std::span<const DataType> operands);

// One number of any computable type, held widened: floats as double (exact for every narrower float type),
// integers and booleans as 64-bit two's complement.
struct Scalar {
  DataType type = DataType::undefined;
  double f = 0;
  int64_t i = 0;
};

// The strict meaning of `op`: exactly what interpreter, constant folding and kernels compute, in the operands'
// type with the model's storage rounding (float16 and bfloat16 are evaluated in float32, then rounded).
Scalar evaluate(ScalarOp op, std::span<const Scalar> operands, DataType result);

// Conversions. Float to integer saturates and takes NaN to 0, then nothing else; integer to integer wraps;
// to boolean is != 0; to a narrower float rounds half to even, once (integer to float16 or bfloat16 goes through
// float32).
Scalar convert(const Scalar& value, DataType to);
Scalar load_scalar(const void* memory, DataType type);
void store_scalar(void* memory, const Scalar& value);

// float16 and bfloat16 as bit patterns, rounding half to even; NaN stays NaN.
float float16_to_float(uint16_t bits);
uint16_t float_to_float16(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);
uint16_t double_to_float16(double value);  // one rounding
uint16_t double_to_bfloat16(double value);

}  // namespace fusewise
