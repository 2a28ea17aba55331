// The meaning of single expressions on numbers, shared by constant folding and the interpreter.
#pragma once

#include <cstdint>

#include "kernel/kernel.h"
#include "numerics/scalar_op.h"

namespace fusewise::kernel {

// Between the bits of a constant (kernel.h) and a number; the type must be computable.
Scalar scalar_of_bits(DataType type, int64_t bits);
int64_t bits_of_scalar(const Scalar& value);
// Brings bits into the form that constants have: extended from the width of the type.
int64_t canonical_bits(DataType type, int64_t bits);

int64_t floor_divide(int64_t a, int64_t b);  // 0 when dividing by 0; least / -1 wraps
int64_t floor_modulo(int64_t a, int64_t b);  // a - b * floor_divide(a, b), but 0 when dividing by 0

Scalar evaluate(Native op, const Scalar& a, const Scalar& b);
// a * b + c, rounded once to the operands' type; integers wrap.
Scalar evaluate_fma(const Scalar& a, const Scalar& b, const Scalar& c);

}  // namespace fusewise::kernel
