#include "numerics/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "numerics/functions.h"

namespace fusewise {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double double_roundoff = 0x1p-53;

Bounded unknown(double value) { return {value, infinity}; }
Bounded undecided(bool value) { return {value ? 1.0 : 0.0, 1}; }
Bounded decided(bool value) { return {value ? 1.0 : 0.0, 0}; }

// The ideal value; functions by the C library, whose error the callers' slack covers.
double ideal(ScalarOp op, double a, double b) {
  switch (op) {
    case ScalarOp::atan:
      return std::atan(a);
    case ScalarOp::cos:
      return std::cos(a);
    case ScalarOp::erf:
      return std::erf(a);
    case ScalarOp::exp:
      return std::exp(a);
    case ScalarOp::log:
      return std::log(a);
    case ScalarOp::pow:
      return std::pow(a, b);
    case ScalarOp::sin:
      return std::sin(a);
    case ScalarOp::tan:
      return std::tan(a);
    case ScalarOp::tanh:
      return std::tanh(a);
    default:
      break;
  }
  Scalar operands[] = {{DataType::float64, a, 0}, {DataType::float64, b, 0}};
  return evaluate(op, std::span(operands, static_cast<size_t>(arity_of(op))), DataType::float64).f;
}

// Where the interval passes the end of the type's range, which no evaluation does, the part inside is kept: a mask
// of the least number stays one.
Bounded within_range(Bounded x, double greatest) {
  if (std::fabs(x.value) + x.error <= greatest) return x;
  double low = std::max(x.value - x.error, -greatest), high = std::min(x.value + x.error, greatest);
  double middle = low / 2 + high / 2;
  return {middle, std::max(high - middle, middle - low) + 2 * double_roundoff * std::fabs(middle)};
}

// Rounding after an exact operation in `type`, counted `times` over.
Bounded with_rounding(Bounded x, DataType type, double times) {
  if (!is_float(type) || std::isnan(x.value) || x.error == infinity || std::isinf(x.value)) return x;
  double step = unit_roundoff(type) * (std::fabs(x.value) + x.error) + least_positive(type) / 2;
  // Less than half a step beyond the greatest number still rounds to it.
  double before = std::fabs(x.value) + x.error + std::max(0.0, times - 1) * step;
  x.error += times * step;
  double greatest = greatest_finite(type);
  double overflow = greatest * (1 + unit_roundoff(type));
  if (std::fabs(x.value) - x.error >= overflow && std::isfinite(overflow))
    return {std::copysign(infinity, x.value), 0};
  if (!(before <= greatest * (1 + 0.49 * unit_roundoff(type))) || std::isinf(before)) return unknown(x.value);
  return within_range(x, greatest);
}

// Error of a monotone step function (floor, round, sign, a cast to integers): the values at both ends.
template <class F>
Bounded at_ends(Bounded x, F f) {
  double middle = f(x.value), low = f(x.value - x.error), high = f(x.value + x.error);
  return {middle, std::max(std::fabs(high - middle), std::fabs(middle - low))};
}

double least_magnitude(Bounded x) { return std::max(0.0, std::fabs(x.value) - x.error); }

double pow_error(Bounded x, Bounded y, double value) {
  if (x.error == 0 && y.error == 0) return 0;
  if (y.error == 0 && y.value >= 1 && y.value == std::trunc(y.value))
    return y.value * std::pow(std::fabs(x.value) + x.error, y.value - 1) * x.error;
  if (x.value - x.error <= 0) return infinity;
  double log_error = -std::log1p(-x.error / x.value);
  double exponent_error =
      std::fabs(y.value) * log_error + std::fabs(std::log(x.value)) * y.error + y.error * log_error;
  return std::fabs(value) * std::expm1(exponent_error);
}

double mod_error(ScalarOp op, Bounded a, Bounded b) {
  if (a.error == 0 && b.error == 0) return 0;
  double least_divisor = std::fabs(b.value) - b.error;
  double widest = std::fabs(b.value) + b.error;
  if (least_divisor <= 0) return infinity;
  double quotient = a.value / b.value;
  double spread = (a.error + std::fabs(quotient) * b.error) / least_divisor;
  auto whole = [op](double q) { return op == ScalarOp::mod ? std::floor(q) : std::trunc(q); };
  spread += 4 * double_roundoff * std::fabs(quotient);
  if (whole(quotient - spread) != whole(quotient + spread)) return 2 * widest;
  return a.error + std::fabs(whole(quotient)) * b.error;
}

// The error that the operands' errors cause, for finite operands.
double carried_error(ScalarOp op, Bounded a, Bounded b, double value) {
  double e = a.error;
  switch (op) {
    case ScalarOp::abs:
    case ScalarOp::neg:
      return e;
    case ScalarOp::add:
    case ScalarOp::sub:
      return e + b.error;
    case ScalarOp::atan:
      return e / (1 + least_magnitude(a) * least_magnitude(a));
    case ScalarOp::cos:
    case ScalarOp::sin:
      return std::min(e, 2.0);
    case ScalarOp::div: {
      double least = std::fabs(b.value) - b.error;
      if (b.error == 0) return b.value == 0 ? (e == 0 ? 0 : infinity) : e / std::fabs(b.value);
      return least <= 0 ? infinity : (e + std::fabs(value) * b.error) / least;
    }
    case ScalarOp::erf: {
      double least = least_magnitude(a);
      return std::min(2.0, e * 1.1283791670955126 * std::exp(-least * least));
    }
    case ScalarOp::exp:
      // A great error beside a value that underflows: what is below exp(v + e) errs by no more than that.
      return e > 1 ? std::exp(a.value + e) : value * std::expm1(e);
    case ScalarOp::log:
      return e == 0 ? 0 : a.value - e <= 0 ? infinity : -std::log1p(-e / a.value);
    case ScalarOp::max:
    case ScalarOp::min:
      return std::max(e, b.error);
    case ScalarOp::mod:
    case ScalarOp::remainder:
      return mod_error(op, a, b);
    case ScalarOp::mul:
      return std::fabs(a.value) * b.error + std::fabs(b.value) * e + e * b.error;
    case ScalarOp::pow:
      return pow_error(a, b, value);
    case ScalarOp::sqrt:
      if (e == 0) return 0;
      return a.value - e < 0 ? infinity : e / (std::sqrt(a.value) + std::sqrt(a.value - e));
    case ScalarOp::tan: {
      double least = std::fabs(std::cos(a.value)) - e;
      return e == 0 ? 0 : least <= 0 ? infinity : e / (least * least);
    }
    case ScalarOp::tanh: {
      double tanh = std::tanh(least_magnitude(a));
      return std::min(2.0, e * (1 - tanh) * (1 + tanh));
    }
    default:
      return infinity;
  }
}

bool is_step(ScalarOp op) {
  return op == ScalarOp::ceil || op == ScalarOp::floor || op == ScalarOp::round || op == ScalarOp::sign ||
         op == ScalarOp::trunc;
}

bool is_exact(ScalarOp op) {
  return op == ScalarOp::abs || op == ScalarOp::neg || op == ScalarOp::max || op == ScalarOp::min ||
         op == ScalarOp::remainder || is_step(op);
}

// The rounding of an operation that is no exact one; the half types are evaluated in float32 first.
Bounded round_function(Bounded x, ScalarOp op, DataType type) {
  DataType arithmetic = arithmetic_type_of(type);
  double times = class_of(op) == ScalarClass::function ? 2 * ulp_bound(op, arithmetic) : 1;
  x = with_rounding(x, arithmetic, times);
  return arithmetic == type ? x : with_rounding(x, type, 1);
}

// An operand that is infinite or NaN: the result is known only if it is the same at all corners.
Bounded beside_infinity(ScalarOp op, Bounded a, Bounded b, DataType type) {
  double value = ideal(op, a.value, b.value);
  for (double x : {a.value - a.error, a.value, a.value + a.error})
    for (double y : {b.value - b.error, b.value, b.value + b.error}) {
      double corner = ideal(op, x, y);
      if (corner != value && !(std::isnan(corner) && std::isnan(value))) return unknown(value);
    }
  if (!std::isfinite(value) || value == 0 || class_of(op) != ScalarClass::function) return {value, 0};
  return round_function({value, 0}, op, type);  // the arc tangent's limits
}

Bounded evaluate_floats(ScalarOp op, Bounded a, Bounded b, DataType type) {
  if (arity_of(op) == 1) b = {};
  // An operand that may be NaN: even what has two values only may be NaN, too.
  if (std::isinf(a.error) || std::isinf(b.error)) return unknown(ideal(op, a.value, b.value));
  if (!std::isfinite(a.value) || !std::isfinite(b.value)) return beside_infinity(op, a, b, type);
  Bounded result;
  if (is_step(op)) {
    result = at_ends(a, [op](double x) { return ideal(op, x, 0); });
  } else {
    result.value = ideal(op, a.value, b.value);
    result.error = carried_error(op, a, b, result.value);
    if (std::isnan(result.error)) result.error = infinity;
    // An infinity from a zero has that zero's sign, which is not certain.
    bool from_zero = (op == ScalarOp::div && b.value == 0) || (op == ScalarOp::pow && a.value == 0);
    if (std::isinf(result.value) && from_zero) return unknown(result.value);
    if (std::isinf(result.value) && class_of(op) != ScalarClass::function) return unknown(result.value);
    if (!std::isfinite(result.value))
      return a.error == 0 && b.error == 0 ? Bounded{result.value, 0} : unknown(result.value);
  }
  if (is_exact(op)) return result;
  // The ideal value was itself computed in double, and so was the carried error.
  result.error += 4 * double_roundoff * (std::fabs(result.value) + result.error);
  result = round_function(result, op, type);
  // Factors and summands may meet in another order (weights hold what scales their sums): that may stay finite, or
  // overflow sooner, to the other side.
  const bool overflows = std::isinf(result.value) && class_of(op) != ScalarClass::function;
  return overflows ? unknown(result.value) : result;
}

Bounded compare(ScalarOp op, Bounded a, Bounded b) {
  if (op == ScalarOp::is_nan || op == ScalarOp::is_inf) {
    bool answer = op == ScalarOp::is_nan ? std::isnan(a.value) : std::isinf(a.value);
    return std::isinf(a.error) ? undecided(answer) : decided(answer);
  }
  Scalar operands[] = {{DataType::float64, a.value, 0}, {DataType::float64, b.value, 0}};
  bool answer = evaluate(op, operands, DataType::boolean).i != 0;
  if (std::isinf(a.error) || std::isinf(b.error)) return undecided(answer);
  if (!std::isfinite(a.value) || !std::isfinite(b.value)) return decided(answer);
  double error = a.error + b.error;
  return error == 0 || std::fabs(a.value - b.value) > error ? decided(answer) : undecided(answer);
}

Bounded select(std::span<const Bounded> operands) {
  bool first = operands[0].value != 0;
  Bounded chosen = operands[first ? 1 : 2];
  if (operands[0].error == 0) return chosen;
  Bounded other = operands[first ? 2 : 1];
  if (chosen.value == other.value) return {chosen.value, std::max(chosen.error, other.error)};
  double error = std::fabs(chosen.value - other.value) + other.error;
  chosen.error = std::isnan(error) ? infinity : std::max(chosen.error, error);
  return chosen;
}

Bounded logic(ScalarOp op, Bounded a, Bounded b) {
  bool x = a.value != 0, y = b.value != 0;
  bool sure = a.error == 0 && b.error == 0;
  switch (op) {
    case ScalarOp::and_:
      return sure || (a.error == 0 && !x) || (b.error == 0 && !y) ? decided(x && y) : undecided(x && y);
    case ScalarOp::or_:
      return sure || (a.error == 0 && x) || (b.error == 0 && y) ? decided(x || y) : undecided(x || y);
    case ScalarOp::xor_:
      return sure ? decided(x != y) : undecided(x != y);
    case ScalarOp::not_:
      return a.error == 0 ? decided(!x) : undecided(!x);
    case ScalarOp::max:
      return logic(ScalarOp::or_, a, b);
    case ScalarOp::min:
      return logic(ScalarOp::and_, a, b);
    default:
      throw InternalError(std::string(name_of(op)) + " has no meaning for boolean");
  }
}

// An integer of this type as a Scalar, saturated; exact below 2^53.
Scalar integer_scalar(double value, DataType type) { return convert({DataType::float64, value, 0}, type); }

double as_double(const Scalar& integer) { return convert(integer, DataType::float64).f; }

Bounded evaluate_integers(ScalarOp op, std::span<const Bounded> operands, DataType type) {
  bool sure = true;
  double largest = 0;
  std::vector<Scalar> scalars;
  for (const Bounded& operand : operands) {
    sure = sure && operand.error == 0;
    largest = std::max(largest, std::fabs(operand.value));
    scalars.push_back(integer_scalar(operand.value, type));
  }
  double value = as_double(evaluate(op, scalars, type));
  // Doubles are not exact there.
  if (std::max(largest, std::fabs(value)) > 0x1p53) return unknown(value);
  if (sure) return {value, 0};
  bool smooth = op == ScalarOp::abs || op == ScalarOp::add || op == ScalarOp::max || op == ScalarOp::min ||
                op == ScalarOp::mul || op == ScalarOp::neg || op == ScalarOp::sub;
  if (!smooth) return unknown(value);
  double error = carried_error(op, operands[0], operands.back(), value);
  double greatest = greatest_exact(type);
  bool may_wrap = value + error > greatest || value - error < (is_signed(type) ? -greatest - 1 : 0);
  return may_wrap ? unknown(value) : Bounded{value, error};
}

Bounded cast(Bounded x, DataType from, DataType to) {
  if (to == DataType::boolean) {
    bool answer = x.value != 0;
    return x.error == 0 || least_magnitude(x) > 0 ? decided(answer) : undecided(answer);
  }
  if (is_float(to)) {
    if (is_float(from) && unit_roundoff(to) <= unit_roundoff(from) &&
        greatest_finite(to) >= greatest_finite(from))
      return x;
    if (!is_float(from)) x = with_rounding(x, arithmetic_type_of(to), 1);
    return with_rounding(x, to, 1);
  }
  if (std::isnan(x.value) || std::isinf(x.error)) return {as_double(integer_scalar(x.value, to)), x.error};
  if (is_float(from)) return at_ends(x, [to](double v) { return as_double(integer_scalar(v, to)); });
  if (from == DataType::boolean) return x;
  auto wrap = [&](double v) { return as_double(convert(integer_scalar(v, from), to)); };
  double low = wrap(x.value - x.error), middle = wrap(x.value), high = wrap(x.value + x.error);
  if (x.error != 0 && (high - low != 2 * x.error)) return unknown(middle);
  return {middle, x.error};
}

}  // namespace

int significand_bits(DataType type) {
  switch (type) {
    case DataType::bfloat16:
      return 8;
    case DataType::float16:
      return 11;
    case DataType::float32:
      return 24;
    case DataType::float64:
      return 53;
    default:
      return 0;
  }
}

double unit_roundoff(DataType type) { return is_float(type) ? std::ldexp(1.0, -significand_bits(type)) : 0; }

double least_normal(DataType type) { return least_positive(type) / (2 * unit_roundoff(type)); }

double greatest_exact(DataType integer) {
  return std::min(0x1p53, std::ldexp(1.0, bits_of(integer) - (is_signed(integer) ? 1 : 0)) - 1);
}

double least_positive(DataType type) {
  switch (type) {
    case DataType::bfloat16:
      return 0x1p-133;
    case DataType::float16:
      return 0x1p-24;
    case DataType::float32:
      return 0x1p-149;
    case DataType::float64:
      return std::numeric_limits<double>::denorm_min();
    default:
      return 0;
  }
}

double greatest_finite(DataType type) {
  switch (type) {
    case DataType::bfloat16:
      return 0x1.fep127;
    case DataType::float16:
      return 65504;
    case DataType::float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

Bounded round_bounded(Bounded x, DataType type) { return with_rounding(x, type, 1); }

Bounded evaluate_bounded(ScalarOp op, std::span<const Bounded> operands, DataType type, DataType result) {
  check(operands.size() == static_cast<size_t>(arity_of(op)),
        "a scalar operation has the wrong number of operands");
  if (op == ScalarOp::select) return select(operands);
  if (op == ScalarOp::cast) return cast(operands[0], type, result);
  if (class_of(op) == ScalarClass::compare) return compare(op, operands[0], operands.back());
  if (type == DataType::boolean) return logic(op, operands[0], operands.back());
  if (is_float(type)) return evaluate_floats(op, operands[0], operands.back(), type);
  return evaluate_integers(op, operands, type);
}

void BoundedSum::add(Bounded term) {
  sum_ += term.value;
  if (std::isfinite(term.value)) magnitudes_ += std::fabs(term.value) + term.error;
  errors_ += term.error;
  ++count_;
}

Bounded as_weight(Bounded x, DataType type) {
  if (!is_float(type) || accumulator_of(type) != type) return x;
  if (std::fabs(x.value) < least_normal(type)) x.error += std::fabs(x.value);
  return x;
}

void BoundedSum::add_product(Bounded a, Bounded b) {
  a = as_weight(a, type_);
  b = as_weight(b, type_);
  Bounded product{a.value * b.value, carried_error(ScalarOp::mul, a, b, 0)};
  if (std::isnan(product.error)) product.error = std::isfinite(product.value) ? infinity : 0;
  product = with_rounding(product, accumulator_of(type_), 1);
  const bool overflows = std::isinf(product.value) && std::isfinite(a.value) && std::isfinite(b.value);
  add(overflows ? unknown(product.value) : product);
}

Bounded BoundedSum::result() const {
  if (std::isnan(sum_)) return {sum_, std::isinf(errors_) ? infinity : 0};
  if (!is_float(type_)) return magnitudes_ <= greatest_exact(type_) ? Bounded{sum_, errors_} : unknown(sum_);
  DataType accumulator = accumulator_of(type_);
  double n = static_cast<double>(count_);
  double growth = n * (unit_roundoff(accumulator) + double_roundoff);
  if (growth >= 0.5) return unknown(sum_);
  double error = errors_ + growth / (1 - growth) * magnitudes_ + n * least_positive(accumulator);
  // A partial sum in another order may overflow although the whole does not, or meets an infinity of the other sign.
  if (!(magnitudes_ + error <= greatest_finite(accumulator))) return unknown(sum_);
  return {sum_, std::isinf(sum_) ? 0 : error};
}

bool is_within(double actual, Bounded expected) {
  if (expected.error == infinity) return true;
  if (std::isnan(expected.value)) return std::isnan(actual);
  if (actual == expected.value) return true;
  return std::fabs(actual - expected.value) <= expected.error;
}

}  // namespace fusewise
