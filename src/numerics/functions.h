// The scalar functions (class `function` of scalar_ops.def), each defined once over an abstract arithmetic, so
// that evaluating on numbers and building kernel expressions perform the same operations in the same order.
//
// An arithmetic A over a value type V offers:
//   V constant(double)                      a float constant of V's element type (rounded to it)
//   V add(V,V) sub(V,V) mul(V,V) div(V,V) fma(V,V,V)      each rounded once; fma is fused
//   V neg(V) abs(V) sqrt(V) floor(V) trunc(V) round(V)    round: half to even
//   V copysign(V magnitude, V sign)
//   V max(V,V) min(V,V)                     as scalar_ops.def: NaN propagates
//   V select(B, V, V)
//   B less(V,V) less_equal(V,V) equal(V,V)  ordered comparisons; B and_(B,B) or_(B,B) not_(B)
//   B is_nan(V)
//   I to_int(V)                             V is integral and small: exact conversion to a same-width integer
//   V from_int(I)                           exact for small values
//   I int_constant(int64_t); I int_add(I,I) int_sub(I,I) int_and(I,I) int_shift_left(I,int) int_shift_right(I,int) (arithmetic)
//   V bits_to_float(I)   I float_to_bits(V)
//   static constexpr bool is_double         which polynomials to use
//
// Evaluations follow C's special values (exp(-inf)=0, log(-1)=NaN, pow(x,0)=1, ...), keep denormals, and state
// their error in ULP against the exact value.
#pragma once

#include "numerics/scalar_op.h"

namespace fusewise {

// Error bound in ULP of the float32 and float64 evaluation of a `function`-class operation.
double ulp_bound(ScalarOp function, DataType type);  // over the whole range of arguments

// The float32 / float64 evaluation.
float evaluate_function(ScalarOp function, float a, float b);
double evaluate_function(ScalarOp function, double a, double b);

// The definition over an abstract arithmetic, for kernel expressions; instantiated from functions_impl.h:
//   template <class A>
//   typename A::Value build_function(A& arithmetic, ScalarOp function, typename A::Value a, typename A::Value b)
// It uses of the arithmetic: constant add sub mul div fma neg abs floor trunc round copysign select, less equal
// and_ or_ not_, from_int int_constant int_add int_sub int_shift_left int_shift_right bits_to_float float_to_bits.

}  // namespace fusewise
