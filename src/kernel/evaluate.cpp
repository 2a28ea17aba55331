#include "kernel/evaluate.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace fusewise::kernel {

int64_t canonical_bits(DataType type, int64_t bits) {
  if (type == DataType::boolean) return bits != 0 ? 1 : 0;
  const int width = bits_of(type);
  if (width <= 0 || width >= 64) return bits;
  const int unused = 64 - width;
  const uint64_t shifted = static_cast<uint64_t>(bits) << unused;
  if (is_integer(type) && is_signed(type)) return static_cast<int64_t>(shifted) >> unused;
  return static_cast<int64_t>(shifted >> unused);
}

Scalar scalar_of_bits(DataType type, int64_t bits) {
  static_assert(std::endian::native == std::endian::little);
  return load_scalar(&bits, type);
}

int64_t bits_of_scalar(const Scalar& value) {
  int64_t bits = 0;
  store_scalar(&bits, value);
  return canonical_bits(value.type, bits);
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

namespace {

Scalar floating(DataType type, double value) {
  Scalar result;
  result.type = type;
  result.f = value;
  return result;
}

// The integer narrowed to its type.
Scalar integral(DataType type, int64_t value) {
  Scalar result;
  result.type = type;
  result.i = canonical_bits(type, value);
  return result;
}

// The sign of NaN counts too, and a double keeps it.
double copy_sign(double magnitude, double sign) { return std::copysign(magnitude, sign); }

Scalar shift(Native op, const Scalar& a, const Scalar& b) {
  const int width = bits_of(a.type);
  const uint64_t amount = static_cast<uint64_t>(b.i) % static_cast<uint64_t>(width);
  if (op == Native::shift_left)
    return integral(a.type, static_cast<int64_t>(static_cast<uint64_t>(a.i) << amount));
  if (is_signed(a.type)) return integral(a.type, a.i >> amount);
  return integral(a.type, static_cast<int64_t>(static_cast<uint64_t>(a.i) >> amount));
}

Scalar divide_unsigned(Native op, const Scalar& a, const Scalar& b) {
  const uint64_t dividend = static_cast<uint64_t>(a.i);
  const uint64_t divisor = static_cast<uint64_t>(b.i);
  if (divisor == 0) return integral(a.type, 0);
  const uint64_t value = op == Native::floor_div ? dividend / divisor : dividend % divisor;
  return integral(a.type, static_cast<int64_t>(value));
}

// The sum of two doubles rounded to odd: a second rounding to at most 51 bits then gives what one rounding gives.
double add_round_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  if (error == 0 || (std::bit_cast<uint64_t>(sum) & 1) != 0) return sum;
  return std::nextafter(sum, error > 0 ? INFINITY : -INFINITY);
}

}  // namespace

Scalar evaluate(Native op, const Scalar& a, const Scalar& b) {
  switch (op) {
    case Native::copysign:
      return floating(a.type, copy_sign(a.f, b.f));
    case Native::floor_div:
      if (!is_signed(a.type)) return divide_unsigned(op, a, b);
      return integral(a.type, floor_divide(a.i, b.i));
    case Native::floor_mod:
      if (!is_signed(a.type)) return divide_unsigned(op, a, b);
      return integral(a.type, floor_modulo(a.i, b.i));
    case Native::shift_left:
    case Native::shift_right:
      return shift(op, a, b);
  }
  throw InternalError("unknown native operation");
}

Scalar evaluate_fma(const Scalar& a, const Scalar& b, const Scalar& c) {
  switch (a.type) {
    case DataType::float64:
      return floating(a.type, std::fma(a.f, b.f, c.f));
    case DataType::float32:
      return floating(a.type,
                      std::fma(static_cast<float>(a.f), static_cast<float>(b.f), static_cast<float>(c.f)));
    case DataType::float16:
      return scalar_of_bits(a.type, double_to_float16(add_round_to_odd(a.f * b.f, c.f)));
    case DataType::bfloat16:
      return scalar_of_bits(a.type, double_to_bfloat16(add_round_to_odd(a.f * b.f, c.f)));
    default: {
      check(is_integer(a.type), "fma of a type that has no arithmetic");
      const uint64_t product = static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i);
      return integral(a.type, static_cast<int64_t>(product + static_cast<uint64_t>(c.i)));
    }
  }
}

}  // namespace fusewise::kernel
