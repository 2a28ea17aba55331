// The definitions of the scalar functions over an abstract arithmetic (functions.h describes one). Everything is
// straight-line code: special cases are selects, so that a kernel can evaluate many elements at once.
//
// Terms used below: a product or sum "with its rest" is the rounded value and the exact rounding error.
#pragma once

#include <limits>

#include "base/error.h"
#include "numerics/functions.h"
#include "numerics/functions_constants.h"

namespace fusewise {

template <class A>
class FunctionBuilder {
 public:
  using V = typename A::Value;

  explicit FunctionBuilder(A& arithmetic) : a_(arithmetic) {}

  V build(ScalarOp function, V x, V y) {
    switch (function) {
      case ScalarOp::atan:
        return atan(x);
      case ScalarOp::cos:
        return circle(x).cos;
      case ScalarOp::erf:
        return erf(x);
      case ScalarOp::exp:
        return exp(x);
      case ScalarOp::log:
        return log(x);
      case ScalarOp::pow:
        return pow(x, y);
      case ScalarOp::sin:
        return sin(x);
      case ScalarOp::tan:
        return tan(x);
      case ScalarOp::tanh:
        return tanh(x);
      default:
        throw InternalError("not a scalar function: " + std::string(name_of(function)));
    }
  }

 private:
  using T = function_constants::Table<A::is_double>;

  // A value and a much smaller one that is to be added to it.
  struct Pair {
    V high, low;
  };
  struct Circle {
    V sin, cos;
  };

  V c(double value) { return a_.constant(value); }
  V infinity() { return c(std::numeric_limits<double>::infinity()); }
  V not_a_number() { return c(std::numeric_limits<double>::quiet_NaN()); }

  template <size_t n>
  V polynomial(V x, const double (&coefficients)[n]) {
    V sum = c(coefficients[0]);
    for (size_t i = 1; i < n; ++i) sum = a_.fma(sum, x, c(coefficients[i]));
    return sum;
  }

  // NaN passes through both.
  V at_least(V x, double low) { return a_.select(a_.less(x, c(low)), c(low), x); }
  V at_most(V x, double high) { return a_.select(a_.less(c(high), x), c(high), x); }

  Pair product(V x, V y) {
    V high = a_.mul(x, y);
    return {high, a_.fma(x, y, a_.neg(high))};
  }

  // The sum with its rest, for |x| >= |y| or x = 0.
  Pair ordered_sum(V x, V y) {
    V high = a_.add(x, y);
    return {high, a_.add(a_.sub(x, high), y)};
  }

  // The sum with its rest, for any two numbers.
  Pair sum(V x, V y) {
    V high = a_.add(x, y);
    V part = a_.sub(high, x);
    return {high, a_.add(a_.sub(x, a_.sub(high, part)), a_.sub(y, part))};
  }

  // 2^n for |n| small enough that it is normal, where `shifted` is n + round_shift as a float.
  V power_of_two(V shifted) { return power_of_two_from_bits(a_.float_to_bits(shifted)); }

  template <class I>
  V power_of_two_from_bits(I n) {
    I one = a_.int_constant(static_cast<int64_t>(T::exponent_bias) << T::mantissa_bits);
    return a_.bits_to_float(a_.int_add(a_.int_shift_left(n, T::mantissa_bits), one));
  }

  // x * 2^n with one rounding, down to denormals and up to infinity: the power in two halves, the first exact.
  V scaled(V x, V shifted) {
    auto n = a_.float_to_bits(shifted);
    auto half = a_.int_shift_right(n, 1);
    auto rest = a_.int_sub(n, half);
    return a_.mul(a_.mul(x, power_of_two_from_bits(half)), power_of_two_from_bits(rest));
  }

  // x = n ln 2 + r with |r| <= ln(2)/2; e^r and n (as a float plus round_shift).
  Pair exp_parts(V x) {
    V shifted = a_.fma(x, c(1.4426950408889634), c(T::round_shift));
    V n = a_.sub(shifted, c(T::round_shift));
    V r = a_.fma(n, c(-T::ln2_high), x);
    r = a_.fma(n, c(-T::ln2_low), r);
    V p = a_.fma(polynomial(r, T::exp), r, c(1));
    return {a_.fma(p, r, c(1)), shifted};
  }

  V exp(V x) {
    Pair parts = exp_parts(at_most(at_least(x, T::exp_low), T::exp_high));
    return scaled(parts.high, parts.low);
  }

  // e^x where the result is a normal number and well below overflow.
  V exp_of_moderate(V x) {
    Pair parts = exp_parts(x);
    return a_.mul(parts.high, power_of_two(parts.low));
  }

  // 1 - 2 / (e^2|x| + 1), and a polynomial where that cancels.
  V tanh(V x) {
    V magnitude = a_.abs(x);
    V doubled = at_most(a_.add(magnitude, magnitude), 40);
    V big = a_.sub(c(1), a_.div(c(2), a_.add(exp_of_moderate(doubled), c(1))));
    V z = a_.mul(x, x);
    V small = a_.fma(a_.mul(polynomial(z, T::tanh), z), x, x);
    return a_.copysign(a_.select(a_.less(magnitude, c(0.57)), small, big), x);  // tanh(-0) = -0
  }

  // erf(x) = x + x P(x^2) for |x| < 1, and 1 - erfc(|x|) with erfc as an exponential beyond.
  V erf(V x) {
    V magnitude = a_.abs(x);
    V t = at_most(magnitude, T::erf_limit);
    V erfc;
    if constexpr (A::is_double) {
      V v = a_.div(a_.sub(t, c(3)), a_.add(t, c(3)));
      erfc = a_.mul(exp_of_moderate(a_.neg(a_.mul(t, t))), polynomial(v, T::erf_tail));
    } else {
      erfc = exp_of_moderate(polynomial(t, T::erf_tail));
    }
    V small = a_.fma(x, polynomial(a_.mul(x, x), T::erf), x);
    return a_.select(a_.less(magnitude, c(1)), small, a_.copysign(a_.sub(c(1), erfc), x));
  }

  // x = m * 2^e with m about sqrt(1/2) .. sqrt(2), for positive finite x, denormals included. Returns m - 1
  // (exact) and e.
  Pair split_exponent(V x) {
    constexpr double grow = A::is_double ? 0x1p54 : 0x1p25;
    constexpr double grow_exponent = A::is_double ? 54 : 25;
    auto denormal = a_.less(x, c(T::least_normal));
    V normal = a_.select(denormal, a_.mul(x, c(grow)), x);
    auto bits = a_.float_to_bits(normal);
    auto above = a_.int_sub(bits, a_.float_to_bits(c(T::square_root_half)));
    auto e = a_.int_shift_right(above, T::mantissa_bits);
    V m = a_.bits_to_float(a_.int_sub(bits, a_.int_shift_left(e, T::mantissa_bits)));
    V exponent = a_.sub(a_.from_int(e), a_.select(denormal, c(grow_exponent), c(0)));
    return {a_.sub(m, c(1)), exponent};
  }

  V log(V x) {
    auto [f, e] = split_exponent(x);
    V result;
    if constexpr (A::is_double) {
      V half_square = a_.mul(a_.mul(f, f), c(0.5));
      V u = a_.div(f, a_.add(f, c(2)));
      V z = a_.mul(u, u);
      V rest = a_.mul(z, polynomial(z, T::log));
      V tail = a_.fma(u, a_.add(half_square, rest), a_.mul(e, c(T::ln2_low)));
      result = a_.fma(e, c(T::ln2_high), a_.sub(f, a_.sub(half_square, tail)));
    } else {
      // f - f^2/2 is kept with its rest: near e = -1 one more rounding would be felt.
      V square = a_.mul(f, f);
      V tail = a_.fma(a_.mul(square, f), polynomial(f, T::log), a_.mul(e, c(T::ln2_low)));
      tail = a_.fma(square, c(-0.5), tail);
      Pair main = ordered_sum(f, tail);
      Pair whole = sum(a_.mul(e, c(T::ln2_high)), main.high);
      result = a_.add(whole.high, a_.add(whole.low, main.low));
    }
    result = a_.select(a_.less(x, infinity()), result, x);  // infinity and NaN
    result = a_.select(a_.less(x, c(0)), not_a_number(), result);
    return a_.select(a_.equal(x, c(0)), c(-std::numeric_limits<double>::infinity()), result);
  }

  // log2(x) to about twice the precision, for positive finite x: u = (m - 1) / (m + 1) as a pair, then
  // e + u (2/ln2 + u^2 (2/(3 ln2) + u^2 tail(u^2))).
  Pair precise_log2(V x) {
    auto [f, e] = split_exponent(x);
    Pair denominator = ordered_sum(c(2), f);
    V u = a_.div(f, denominator.high);
    V rest = a_.fma(a_.neg(u), denominator.high, f);
    rest = a_.fma(a_.neg(u), denominator.low, rest);
    V u_low = a_.div(rest, denominator.high);
    Pair square = product(u, u);
    V square_low = a_.fma(a_.add(u, u), u_low, square.low);
    V tail = a_.mul(square.high, polynomial(square.high, T::pow_tail));
    Pair inner = ordered_sum(c(T::two_over_3ln2[0]), tail);
    V inner_low = a_.add(inner.low, c(T::two_over_3ln2[1]));
    Pair middle = product(square.high, inner.high);
    V middle_low = a_.fma(square.high, inner_low, a_.fma(square_low, inner.high, middle.low));
    Pair outer = ordered_sum(c(T::two_over_ln2[0]), middle.high);
    V outer_low = a_.add(outer.low, a_.add(middle_low, c(T::two_over_ln2[1])));
    Pair log_m = product(u, outer.high);
    V log_m_low = a_.fma(u, outer_low, a_.fma(u_low, outer.high, log_m.low));
    Pair whole = ordered_sum(e, log_m.high);
    return {whole.high, a_.add(whole.low, log_m_low)};
  }

  V pow(V x, V y) {
    V magnitude = a_.abs(x);
    Pair log2 = precise_log2(magnitude);
    auto ordinary = a_.and_(a_.less(magnitude, infinity()), a_.less(c(0), magnitude));
    V special = a_.select(a_.equal(magnitude, c(0)), c(-std::numeric_limits<double>::infinity()), magnitude);
    V log_high = a_.select(ordinary, log2.high, special);
    V log_low = a_.select(ordinary, log2.low, c(0));

    V high = a_.mul(y, log_high);
    V clamped = at_most(at_least(high, T::exp2_low), T::exp2_high);
    V low = a_.fma(y, log_low, a_.fma(y, log_high, a_.neg(high)));
    low = a_.select(a_.equal(clamped, high), low, c(0));
    V shifted = a_.add(clamped, c(T::round_shift));
    V r = a_.add(a_.sub(clamped, a_.sub(shifted, c(T::round_shift))), low);
    V result = scaled(a_.fma(r, polynomial(r, T::exp2), c(1)), shifted);

    // 1^y and (-1)^(+-infinity) are 1; a negative base needs an integer exponent, odd ones give its sign.
    auto y_is_number = a_.equal(y, y);
    result = a_.select(a_.and_(a_.equal(magnitude, c(1)), y_is_number), c(1), result);
    auto y_is_integer = a_.equal(a_.trunc(y), y);
    V half = a_.mul(y, c(0.5));
    auto y_is_odd = a_.and_(y_is_integer, a_.not_(a_.equal(a_.trunc(half), half)));
    result = a_.select(y_is_odd, a_.copysign(result, x), result);
    auto negative = a_.and_(a_.less(x, c(0)), a_.less(magnitude, infinity()));
    auto y_is_fraction = a_.and_(a_.not_(y_is_integer), y_is_number);
    result = a_.select(a_.and_(negative, y_is_fraction), not_a_number(), result);
    return a_.select(a_.or_(a_.equal(y, c(0)), a_.equal(x, c(1))), c(1), result);
  }

  // |x| = w * 2^shift, where shift is 0 or w an integer below 2^(mantissa_bits + 1 + window_bits). So the product
  // of w and (2^shift * 2/pi) mod 4, which is held in four chunks, is the angle in quarter turns, modulo 4, with an
  // error well below the least distance of any number from a multiple of pi/2. Returns the nearest integer
  // (modulo 4, in 0 .. 3) and the fraction in -1/2 .. 1/2 as a pair.
  struct Turn {
    V quarter;
    Pair fraction;
  };

  Turn quarter_turns(V magnitude) {
    constexpr int chunks = 4;
    V scale = c(1);
    V chunk[chunks] = {window_chunk(0, 0), window_chunk(0, 1), window_chunk(0, 2), window_chunk(0, 3)};
    constexpr double window_size = static_cast<double>(int64_t{1} << T::window_bits);
    double threshold = static_cast<double>(int64_t{2} << T::mantissa_bits) * window_size, inverse = 1;
    for (int window = 1; window < T::windows; ++window) {
      auto below = a_.less(magnitude, c(threshold));
      inverse /= window_size;
      scale = a_.select(below, scale, c(inverse));
      for (int i = 0; i < chunks; ++i) chunk[i] = a_.select(below, chunk[i], window_chunk(window, i));
      threshold *= window_size;
    }
    V w = a_.mul(magnitude, scale);
    Pair first = product(w, chunk[0]);
    Pair second = product(w, chunk[1]);
    Pair third = product(w, chunk[2]);
    V whole = a_.round(first.high);
    Pair upper = sum(first.low, second.high);
    Pair main = sum(a_.sub(first.high, whole), upper.high);
    V more = a_.round(main.high);
    Pair middle = sum(main.low, upper.low);
    Pair lower = sum(second.low, third.high);
    Pair small = sum(middle.high, lower.high);
    Pair fraction = sum(a_.sub(main.high, more), small.high);
    V tail = a_.fma(w, chunk[3], third.low);
    tail = a_.add(tail, a_.add(a_.add(middle.low, lower.low), small.low));
    V low = a_.add(fraction.low, tail);
    V quarter = a_.add(modulo_4(whole), modulo_4(more));
    return {modulo_4(quarter), ordered_sum(fraction.high, low)};
  }

  V window_chunk(int window, int chunk) {
    constexpr const auto& chunks = function_constants::chunks_of_two_over_pi<A::is_double>;
    return c(chunks[static_cast<size_t>(window)][static_cast<size_t>(chunk)]);
  }

  V modulo_4(V n) { return a_.fma(a_.floor(a_.mul(n, c(0.25))), c(-4), n); }

  // Sine and cosine of |x| with the signs of their quarter; sine has the sign of x too.
  Circle circle(V x) {
    V magnitude = a_.abs(x);
    Turn turn = quarter_turns(magnitude);
    Pair r = product(turn.fraction.high, c(T::half_pi[0]));
    V r_low = a_.fma(turn.fraction.high, c(T::half_pi[1]), r.low);
    r_low = a_.fma(turn.fraction.low, c(T::half_pi[0]), r_low);

    V z = a_.mul(r.high, r.high);
    V half_z = a_.mul(z, c(0.5));
    V one_less = a_.sub(c(1), half_z);
    V sin_tail = a_.fma(r_low, one_less, a_.mul(a_.mul(r.high, z), polynomial(z, T::sin)));
    V sine = a_.add(r.high, sin_tail);
    V cos_tail = a_.fma(a_.neg(r.high), r_low, a_.mul(a_.mul(z, z), polynomial(z, T::cos)));
    V cosine = a_.add(one_less, a_.add(a_.sub(a_.sub(c(1), one_less), half_z), cos_tail));

    auto is_one = a_.equal(turn.quarter, c(1));
    auto is_two = a_.equal(turn.quarter, c(2));
    auto swap = a_.or_(is_one, a_.equal(turn.quarter, c(3)));
    V s = a_.select(swap, cosine, sine);
    V k = a_.select(swap, sine, cosine);
    s = a_.select(a_.less(turn.quarter, c(2)), s, a_.neg(s));
    k = a_.select(a_.or_(is_one, is_two), a_.neg(k), k);
    return {a_.mul(s, a_.copysign(c(1), x)), k};
  }

  V sin(V x) { return a_.select(a_.less(a_.abs(x), c(T::tiny_angle)), x, circle(x).sin); }

  V tan(V x) {
    Circle both = circle(x);
    return a_.select(a_.less(a_.abs(x), c(T::tiny_angle)), x, a_.div(both.sin, both.cos));
  }

  // atan(x) = base + atan(q): q is x, (x - 1) / (x + 1) or -1 / x, of magnitude at most sqrt(2) - 1.
  V atan(V x) {
    V magnitude = a_.abs(x);
    auto small = a_.less(magnitude, c(0.41421356237309503));
    auto large = a_.less(c(2.414213562373095), magnitude);
    V above = a_.select(small, magnitude, a_.select(large, c(-1), a_.sub(magnitude, c(1))));
    V below = a_.select(small, c(1), a_.select(large, magnitude, a_.add(magnitude, c(1))));
    V base = a_.select(small, c(0), a_.select(large, c(T::half_pi[0]), c(T::half_pi[0] / 2)));
    V base_low = a_.select(small, c(0), a_.select(large, c(T::half_pi[1]), c(T::half_pi[1] / 2)));
    V q = a_.div(above, below);
    V z = a_.mul(q, q);
    V tail = a_.fma(a_.mul(q, z), polynomial(z, T::atan), base_low);
    return a_.copysign(a_.add(base, a_.add(q, tail)), x);
  }

  A& a_;
};

// `b` is used by pow only.
template <class A>
typename A::Value build_function(A& arithmetic, ScalarOp function, typename A::Value a, typename A::Value b) {
  return FunctionBuilder<A>(arithmetic).build(function, a, b);
}

}  // namespace fusewise
