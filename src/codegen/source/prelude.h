// The helpers that every dialect's printed kernels call, in the part of C that all of them share. A dialect's own prelude
// comes first and defines as_float, as_int, ... and the functions fma, floor, ceil, trunc, rint, sqrt, fmod, fabs and
// copysign.
//
// Names end in the type that they are about: i8 ... u64, f16, bf16, f32, f64; half types are held as their bits.
#pragma once

#include <string_view>

namespace fusewise::codegen {

extern const std::string_view shared_prelude;         // without double
extern const std::string_view shared_double_prelude;  // what needs it

}  // namespace fusewise::codegen
