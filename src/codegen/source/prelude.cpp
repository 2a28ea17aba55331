#include "codegen/source/prelude.h"

namespace fusewise::codegen {

// NaN is told by bits: a compiler that assumes away NaN in comparisons does not reach them. Integers wrap in their
// unsigned type; division by zero gives zero, and the least value divided by -1 is itself.
const std::string_view shared_prelude = R"(
#define FW_NAN_F32(a) ((as_uint(a) & 0x7fffffffu) > 0x7f800000u)

float fw_max_f32(float a, float b) {
  if (FW_NAN_F32(a) || FW_NAN_F32(b)) return as_float(0x7fc00000u);
  if (a == b) return as_float(as_uint(a) & as_uint(b));
  return a > b ? a : b;
}
float fw_min_f32(float a, float b) {
  if (FW_NAN_F32(a) || FW_NAN_F32(b)) return as_float(0x7fc00000u);
  if (a == b) return as_float(as_uint(a) | as_uint(b));
  return a < b ? a : b;
}
float fw_sign_f32(float a) {
  if (FW_NAN_F32(a)) return a;
  return a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : 0.0f;
}
float fw_mod_f32(float a, float b) {
  const float rest = fmod(a, b);
  return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}
int fw_is_nan_f32(float a) { return FW_NAN_F32(a); }
int fw_is_inf_f32(float a) { return (as_uint(a) & 0x7fffffffu) == 0x7f800000u; }

#define FW_INTEGERS(T, U, N)                                                      \
  T fw_div_##N(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); }                   \
  T fw_rem_##N(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }                   \
  T fw_max_##N(T a, T b) { return a < b ? b : a; }                                \
  T fw_min_##N(T a, T b) { return a < b ? a : b; }
#define FW_SIGNED(T, U, N)                                                        \
  T fw_div_##N(T a, T b) {                                                        \
    return b == 0 ? (T)0 : b == (T)-1 ? (T)((U)0 - (U)a) : (T)(a / b);            \
  }                                                                               \
  T fw_rem_##N(T a, T b) { return b == 0 || b == (T)-1 ? (T)0 : (T)(a % b); }     \
  T fw_mod_##N(T a, T b) {                                                        \
    const T rest = fw_rem_##N(a, b);                                              \
    return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;             \
  }                                                                               \
  T fw_floor_div_##N(T a, T b) {                                                  \
    const T rest = fw_rem_##N(a, b), quotient = fw_div_##N(a, b);                 \
    return rest != 0 && (rest < 0) != (b < 0) ? (T)(quotient - 1) : quotient;     \
  }                                                                               \
  T fw_max_##N(T a, T b) { return a < b ? b : a; }                                \
  T fw_min_##N(T a, T b) { return a < b ? a : b; }                                \
  T fw_abs_##N(T a) { return a < 0 ? (T)((U)0 - (U)a) : a; }                      \
  T fw_sign_##N(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : (T)0; }
FW_SIGNED(char, uchar, i8)
FW_SIGNED(short, ushort, i16)
FW_SIGNED(int, uint, i32)
FW_SIGNED(long, ulong, i64)
FW_INTEGERS(uchar, uchar, u8)
FW_INTEGERS(ushort, ushort, u16)
FW_INTEGERS(uint, uint, u32)
FW_INTEGERS(ulong, ulong, u64)

#define FW_FROM_F32(T, N, LOW, HIGH, LEAST, MOST)                                 \
  T fw_f32_to_##N(float a) {                                                      \
    return FW_NAN_F32(a) ? (T)0 : a >= HIGH ? (T)MOST : a <= LOW ? (T)LEAST : (T)a; \
  }
FW_FROM_F32(char, i8, -128.0f, 127.0f, -128, 127)
FW_FROM_F32(short, i16, -32768.0f, 32767.0f, -32768, 32767)
FW_FROM_F32(int, i32, -2147483648.0f, 2147483648.0f, (-2147483647 - 1), 2147483647)
FW_FROM_F32(long, i64, -9223372036854775808.0f, 9223372036854775808.0f, (-9223372036854775807L - 1),
            9223372036854775807L)
FW_FROM_F32(uchar, u8, 0.0f, 255.0f, 0, 255)
FW_FROM_F32(ushort, u16, 0.0f, 65535.0f, 0, 65535)
FW_FROM_F32(uint, u32, 0.0f, 4294967296.0f, 0, 0xffffffffu)
FW_FROM_F32(ulong, u64, 0.0f, 18446744073709551616.0f, 0, 0xfffffffffffffffful)

float fw_bf16_to_f32(ushort a) { return as_float((uint)a << 16); }
ushort fw_f32_to_bf16(float a) {
  const uint bits = as_uint(a), upper = bits >> 16;
  if (FW_NAN_F32(a)) return (ushort)(upper | 0x40u);
  return (ushort)((bits + 0x7fffu + (upper & 1u)) >> 16);
}
float fw_f16_to_f32(ushort a) {
  const uint sign = ((uint)a & 0x8000u) << 16, exponent = ((uint)a >> 10) & 31u, fraction = (uint)a & 0x3ffu;
  if (exponent == 31u) return as_float(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0u) return as_float(sign | ((exponent + 112u) << 23) | (fraction << 13));
  return as_float(as_uint((float)fraction * 0x1p-24f) | sign);
}
ushort fw_f32_to_f16(float a) {
  const uint bits = as_uint(a), sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return (ushort)(sign | 0x7e00u | ((rest >> 13) & 0x3ffu));
  if (rest >= 0x47800000u) return (ushort)(sign | 0x7c00u);
  if (rest >= 0x38800000u) return (ushort)(sign | ((rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13));
  if (rest <= 0x33000000u) return (ushort)sign;
  const uint shift = 126u - (rest >> 23), fraction = (rest & 0x7fffffu) | 0x800000u;
  const uint kept = fraction >> shift, lost = fraction & ((1u << shift) - 1u), half_way = 1u << (shift - 1u);
  return (ushort)(sign | (kept + (lost > half_way || (lost == half_way && (kept & 1u)) ? 1u : 0u)));
}
)";

// The half types are reached from double through a float rounded to odd: a second rounding then gives what one gives.
const std::string_view shared_double_prelude = R"(
#define FW_NAN_F64(a) ((as_ulong(a) & 0x7ffffffffffffffful) > 0x7ff0000000000000ul)

double fw_max_f64(double a, double b) {
  if (FW_NAN_F64(a) || FW_NAN_F64(b)) return as_double(0x7ff8000000000000ul);
  if (a == b) return as_double(as_ulong(a) & as_ulong(b));
  return a > b ? a : b;
}
double fw_min_f64(double a, double b) {
  if (FW_NAN_F64(a) || FW_NAN_F64(b)) return as_double(0x7ff8000000000000ul);
  if (a == b) return as_double(as_ulong(a) | as_ulong(b));
  return a < b ? a : b;
}
double fw_sign_f64(double a) {
  if (FW_NAN_F64(a)) return a;
  return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : 0.0;
}
double fw_mod_f64(double a, double b) {
  const double rest = fmod(a, b);
  return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}
int fw_is_nan_f64(double a) { return FW_NAN_F64(a); }
int fw_is_inf_f64(double a) { return (as_ulong(a) & 0x7ffffffffffffffful) == 0x7ff0000000000000ul; }

#define FW_FROM_F64(T, N, LOW, HIGH, LEAST, MOST)                                 \
  T fw_f64_to_##N(double a) {                                                     \
    return FW_NAN_F64(a) ? (T)0 : a >= HIGH ? (T)MOST : a <= LOW ? (T)LEAST : (T)a; \
  }
FW_FROM_F64(char, i8, -128.0, 127.0, -128, 127)
FW_FROM_F64(short, i16, -32768.0, 32767.0, -32768, 32767)
FW_FROM_F64(int, i32, -2147483648.0, 2147483647.0, (-2147483647 - 1), 2147483647)
FW_FROM_F64(long, i64, -9223372036854775808.0, 9223372036854775808.0, (-9223372036854775807L - 1),
            9223372036854775807L)
FW_FROM_F64(uchar, u8, 0.0, 255.0, 0, 255)
FW_FROM_F64(ushort, u16, 0.0, 65535.0, 0, 65535)
FW_FROM_F64(uint, u32, 0.0, 4294967295.0, 0, 0xffffffffu)
FW_FROM_F64(ulong, u64, 0.0, 18446744073709551616.0, 0, 0xfffffffffffffffful)

float fw_f64_to_odd_f32(double a) {
  const float nearest = (float)a;
  const double back = (double)nearest;
  const uint bits = as_uint(nearest);
  if (FW_NAN_F64(a) || back == a || (bits & 1u)) return nearest;
  return as_float(fabs(back) > fabs(a) ? bits - 1u : bits + 1u);
}
ushort fw_f64_to_f16(double a) { return fw_f32_to_f16(fw_f64_to_odd_f32(a)); }
ushort fw_f64_to_bf16(double a) { return fw_f32_to_bf16(fw_f64_to_odd_f32(a)); }
double fw_odd_sum_f64(double a, double b) {
  const double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
  const ulong bits = as_ulong(sum);
  if (!(error < 0.0 || error > 0.0) || (bits & 1ul)) return sum;
  return as_double((error > 0.0) != (as_long(sum) < 0) ? bits + 1ul : bits - 1ul);
}
ushort fw_fma_f16(ushort a, ushort b, ushort c) {
  const double product = (double)fw_f16_to_f32(a) * (double)fw_f16_to_f32(b);
  return fw_f64_to_f16(fw_odd_sum_f64(product, (double)fw_f16_to_f32(c)));
}
ushort fw_fma_bf16(ushort a, ushort b, ushort c) {
  const double product = (double)fw_bf16_to_f32(a) * (double)fw_bf16_to_f32(b);
  return fw_f64_to_bf16(fw_odd_sum_f64(product, (double)fw_bf16_to_f32(c)));
}
)";

}  // namespace fusewise::codegen
