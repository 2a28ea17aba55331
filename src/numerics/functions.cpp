// The build compiles this file for hardware with fused multiply-add (cmake/fusewise_options.cmake): a fused
// multiply-add in software gives the same numbers far more slowly.
#include "numerics/functions.h"

#include <bit>
#include <cmath>
#include <type_traits>

#include "numerics/functions_impl.h"

namespace fusewise {
namespace {

// The arithmetic on numbers.
template <class F>
struct PlainArithmetic {
  using Value = F;
  using Integer = std::conditional_t<sizeof(F) == 8, int64_t, int32_t>;
  using Unsigned = std::make_unsigned_t<Integer>;
  static constexpr bool is_double = sizeof(F) == 8;

  F constant(double value) { return static_cast<F>(value); }
  F add(F a, F b) { return a + b; }
  F sub(F a, F b) { return a - b; }
  F mul(F a, F b) { return a * b; }
  F div(F a, F b) { return a / b; }
  F fma(F a, F b, F c) { return std::fma(a, b, c); }
  F neg(F a) { return -a; }
  F abs(F a) { return std::fabs(a); }
  F floor(F a) { return std::floor(a); }
  F trunc(F a) { return std::trunc(a); }
  F round(F a) { return std::nearbyint(a); }
  F copysign(F magnitude, F sign) { return std::copysign(magnitude, sign); }
  F select(bool condition, F a, F b) { return condition ? a : b; }
  bool less(F a, F b) { return a < b; }
  bool equal(F a, F b) { return a == b; }
  bool and_(bool a, bool b) { return a && b; }
  bool or_(bool a, bool b) { return a || b; }
  bool not_(bool a) { return !a; }
  F from_int(Integer i) { return static_cast<F>(i); }
  Integer int_constant(int64_t value) { return static_cast<Integer>(value); }
  Integer int_add(Integer a, Integer b) { return wrap(bits(a) + bits(b)); }
  Integer int_sub(Integer a, Integer b) { return wrap(bits(a) - bits(b)); }
  Integer int_shift_left(Integer a, int count) { return wrap(bits(a) << count); }
  Integer int_shift_right(Integer a, int count) { return a >> count; }
  F bits_to_float(Integer a) { return std::bit_cast<F>(a); }
  Integer float_to_bits(F a) { return std::bit_cast<Integer>(a); }

 private:
  static Unsigned bits(Integer a) { return static_cast<Unsigned>(a); }
  static Integer wrap(Unsigned a) { return static_cast<Integer>(a); }
};

}  // namespace

double ulp_bound(ScalarOp function, DataType type) {
  check(type == DataType::float32 || type == DataType::float64, "error bounds are for float32 and float64");
  switch (function) {
    case ScalarOp::atan:
      return 2;
    case ScalarOp::cos:
      return 1;
    case ScalarOp::erf:
      return 1.5;
    case ScalarOp::exp:
      return 1;
    case ScalarOp::log:
      return 1;
    case ScalarOp::pow:
      return 2;
    case ScalarOp::sin:
      return 1;
    case ScalarOp::tan:
      return 3;
    case ScalarOp::tanh:
      return 2;
    default:
      throw InternalError("not a scalar function: " + std::string(name_of(function)));
  }
}

float evaluate_function(ScalarOp function, float a, float b) {
  PlainArithmetic<float> arithmetic;
  return build_function(arithmetic, function, a, b);
}

double evaluate_function(ScalarOp function, double a, double b) {
  PlainArithmetic<double> arithmetic;
  return build_function(arithmetic, function, a, b);
}

}  // namespace fusewise
