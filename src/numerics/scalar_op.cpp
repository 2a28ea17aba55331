#include "numerics/scalar_op.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "numerics/functions.h"

namespace fusewise {
namespace {

struct Row {
  std::string_view name;
  int arity;
  ScalarClass kind;
};

constexpr std::string_view without_underscore(std::string_view name) {
  return name.back() == '_' ? name.substr(0, name.size() - 1) : name;
}

constexpr Row rows[] = {
#define SCALAR_OP(name, arity, class_) {without_underscore(#name), arity, ScalarClass::class_},
#include "numerics/scalar_ops.def"
#undef SCALAR_OP
};

const Row& row_of(ScalarOp op) {
  check(static_cast<size_t>(op) < std::size(rows), "scalar operation out of range");
  return rows[static_cast<size_t>(op)];
}

[[noreturn]] void meaningless(ScalarOp op, DataType type) {
  throw InternalError(std::string(name_of(op)) + " has no meaning for " + std::string(name_of(type)));
}

// Whether an operation of class basic, compare or function is defined on operands of this type.
bool is_defined(ScalarOp op, DataType type) {
  switch (op) {
    case ScalarOp::and_:
    case ScalarOp::or_:
    case ScalarOp::xor_:
    case ScalarOp::not_:
      return !is_float(type);
    case ScalarOp::equal:
    case ScalarOp::not_equal:
    case ScalarOp::less:
    case ScalarOp::less_equal:
    case ScalarOp::greater:
    case ScalarOp::greater_equal:
    case ScalarOp::max:
    case ScalarOp::min:
    case ScalarOp::select:
      return true;
    case ScalarOp::sqrt:
      return is_float(type);
    default:
      if (class_of(op) == ScalarClass::function) return is_float(type);
      return type != DataType::boolean;
  }
}

template <class T>
T propagating_max(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class T>
T propagating_min(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class T>
T floored_mod(T a, T b) {
  T rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <class T>
T sign_of(T a) {
  if (std::isnan(a)) return a;
  return a > 0 ? T(1) : a < 0 ? T(-1) : T(0);
}

template <class T>
T basic_float(ScalarOp op, T a, T b, DataType type) {
  switch (op) {
    case ScalarOp::abs:
      return std::fabs(a);
    case ScalarOp::add:
      return a + b;
    case ScalarOp::ceil:
      return std::ceil(a);
    case ScalarOp::div:
      return a / b;
    case ScalarOp::floor:
      return std::floor(a);
    case ScalarOp::max:
      return propagating_max(a, b);
    case ScalarOp::min:
      return propagating_min(a, b);
    case ScalarOp::mod:
      return floored_mod(a, b);
    case ScalarOp::mul:
      return a * b;
    case ScalarOp::neg:
      return -a;
    case ScalarOp::remainder:
      return std::fmod(a, b);
    case ScalarOp::round:
      return std::nearbyint(a);
    case ScalarOp::sign:
      return sign_of(a);
    case ScalarOp::sqrt:
      return std::sqrt(a);
    case ScalarOp::sub:
      return a - b;
    case ScalarOp::trunc:
      return std::trunc(a);
    default:
      if (class_of(op) == ScalarClass::function) return evaluate_function(op, a, b);
      meaningless(op, type);
  }
}

bool compare_float(ScalarOp op, double a, double b, DataType type) {
  switch (op) {
    case ScalarOp::equal:
      return a == b;
    case ScalarOp::greater:
      return a > b;
    case ScalarOp::greater_equal:
      return a >= b;
    case ScalarOp::is_inf:
      return std::isinf(a);
    case ScalarOp::is_nan:
      return std::isnan(a);
    case ScalarOp::less:
      return a < b;
    case ScalarOp::less_equal:
      return a <= b;
    case ScalarOp::not_equal:
      return a != b;
    default:
      meaningless(op, type);
  }
}

template <class T>
bool compare_integer(ScalarOp op, T a, T b, DataType type) {
  switch (op) {
    case ScalarOp::equal:
      return a == b;
    case ScalarOp::greater:
      return a > b;
    case ScalarOp::greater_equal:
      return a >= b;
    case ScalarOp::is_inf:
    case ScalarOp::is_nan:
      return false;
    case ScalarOp::less:
      return a < b;
    case ScalarOp::less_equal:
      return a <= b;
    case ScalarOp::not_equal:
      return a != b;
    default:
      meaningless(op, type);
  }
}

uint64_t unsigned_of(int64_t value) { return static_cast<uint64_t>(value); }
int64_t signed_of(uint64_t value) { return static_cast<int64_t>(value); }

// Operations whose result depends on the signedness; the others are done on 64 wrapping bits.
uint64_t divide(ScalarOp op, int64_t a, int64_t b, bool is_signed_type) {
  if (b == 0) return 0;
  if (!is_signed_type)
    return op == ScalarOp::div ? unsigned_of(a) / unsigned_of(b) : unsigned_of(a) % unsigned_of(b);
  if (b == -1) return op == ScalarOp::div ? 0 - unsigned_of(a) : 0;
  if (op == ScalarOp::div) return unsigned_of(a / b);
  int64_t rest = a % b;
  if (op == ScalarOp::mod && rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return unsigned_of(rest);
}

bool is_less(int64_t a, int64_t b, bool is_signed_type) {
  return is_signed_type ? a < b : unsigned_of(a) < unsigned_of(b);
}

// The low 64 bits of the result; the caller wraps them to the type's width.
uint64_t basic_integer(ScalarOp op, int64_t a, int64_t b, DataType type) {
  bool is_signed_type = is_signed(type);
  switch (op) {
    case ScalarOp::abs:
      return is_signed_type && a < 0 ? 0 - unsigned_of(a) : unsigned_of(a);
    case ScalarOp::add:
      return unsigned_of(a) + unsigned_of(b);
    case ScalarOp::and_:
      return unsigned_of(a & b);
    case ScalarOp::ceil:
    case ScalarOp::floor:
    case ScalarOp::round:
    case ScalarOp::trunc:
      return unsigned_of(a);
    case ScalarOp::div:
    case ScalarOp::mod:
    case ScalarOp::remainder:
      return divide(op, a, b, is_signed_type);
    case ScalarOp::max:
      return unsigned_of(is_less(a, b, is_signed_type) ? b : a);
    case ScalarOp::min:
      return unsigned_of(is_less(a, b, is_signed_type) ? a : b);
    case ScalarOp::mul:
      return unsigned_of(a) * unsigned_of(b);
    case ScalarOp::neg:
      return 0 - unsigned_of(a);
    case ScalarOp::not_:
      return type == DataType::boolean ? (a == 0) : ~unsigned_of(a);
    case ScalarOp::or_:
      return unsigned_of(a | b);
    case ScalarOp::sign:
      if (a == 0) return 0;
      return is_signed_type && a < 0 ? ~uint64_t{0} : 1;
    case ScalarOp::sub:
      return unsigned_of(a) - unsigned_of(b);
    case ScalarOp::xor_:
      return unsigned_of(a ^ b);
    default:
      meaningless(op, type);
  }
}

// The value of the low bits of `bits` as an integer of this type, held as Scalar says.
int64_t wrapped(uint64_t bits, DataType type) {
  switch (type) {
    case DataType::boolean:
      return bits != 0;
    case DataType::int8:
      return static_cast<int8_t>(bits);
    case DataType::int16:
      return static_cast<int16_t>(bits);
    case DataType::int32:
      return static_cast<int32_t>(bits);
    case DataType::uint8:
      return static_cast<uint8_t>(bits);
    case DataType::uint16:
      return static_cast<uint16_t>(bits);
    case DataType::uint32:
      return static_cast<uint32_t>(bits);
    default:
      return signed_of(bits);
  }
}

// A value computed in float32 or float64, rounded to the storage type.
double rounded(double value, DataType type) {
  switch (type) {
    case DataType::float16:
      return float16_to_float(double_to_float16(value));
    case DataType::bfloat16:
      return bfloat16_to_float(double_to_bfloat16(value));
    case DataType::float32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

Scalar make_float(double value, DataType type) { return {type, value, 0}; }
Scalar make_integer(int64_t value, DataType type) { return {type, 0, value}; }

// Saturates; NaN gives 0. `bits` is the width of the integer type.
int64_t integer_from_float(double value, DataType type) {
  if (std::isnan(value)) return 0;
  int bits = bits_of(type);
  double whole = std::trunc(value);
  if (is_signed(type)) {
    double limit = std::ldexp(1.0, bits - 1);
    int64_t greatest = signed_of((uint64_t{1} << (bits - 1)) - 1);
    if (whole >= limit) return greatest;
    return whole <= -limit ? -greatest - 1 : static_cast<int64_t>(whole);
  }
  if (whole <= 0) return 0;
  if (whole >= std::ldexp(1.0, bits)) return bits == 64 ? -1 : signed_of((uint64_t{1} << bits) - 1);
  return signed_of(static_cast<uint64_t>(whole));
}

// One rounding to float64 or float32; the half types go through float32.
double float_from_integer(int64_t value, DataType from, DataType to) {
  bool is_unsigned = !is_signed(from);
  if (to == DataType::float64)
    return is_unsigned ? static_cast<double>(unsigned_of(value)) : static_cast<double>(value);
  float single = is_unsigned ? static_cast<float>(unsigned_of(value)) : static_cast<float>(value);
  return rounded(single, to);
}

}  // namespace

int arity_of(ScalarOp op) { return row_of(op).arity; }
ScalarClass class_of(ScalarOp op) { return row_of(op).kind; }
std::string_view name_of(ScalarOp op) { return row_of(op).name; }

std::optional<ScalarOp> scalar_op_of(std::string_view name) {
  for (size_t i = 0; i < std::size(rows); ++i)
    if (rows[i].name == name) return static_cast<ScalarOp>(i);
  return std::nullopt;
}

std::optional<DataType> result_type_of(ScalarOp op, std::span<const DataType> operands) {
  if (operands.size() != static_cast<size_t>(arity_of(op)) || op == ScalarOp::cast) return std::nullopt;
  if (op == ScalarOp::select) {
    if (operands[0] != DataType::boolean || operands[1] != operands[2]) return std::nullopt;
    return operands[1];
  }
  if (operands.size() == 2 && operands[0] != operands[1]) return std::nullopt;
  if (!is_computable(operands[0]) || !is_defined(op, operands[0])) return std::nullopt;
  return class_of(op) == ScalarClass::compare ? DataType::boolean : operands[0];
}

Scalar evaluate(ScalarOp op, std::span<const Scalar> operands, DataType result) {
  check(operands.size() == static_cast<size_t>(arity_of(op)),
        "a scalar operation has the wrong number of operands");
  if (op == ScalarOp::cast) return convert(operands[0], result);
  if (op == ScalarOp::select) return operands[0].i != 0 ? operands[1] : operands[2];
  const Scalar& a = operands[0];
  const Scalar& b = operands.back();  // the same as `a` for one operand, and unused then
  DataType type = a.type;
  if (!is_computable(type) || !is_defined(op, type)) meaningless(op, type);
  check(b.type == type, "the operands of a scalar operation differ in type");
  bool compares = class_of(op) == ScalarClass::compare;
  if (is_float(type)) {
    if (compares) return make_integer(compare_float(op, a.f, b.f, type), DataType::boolean);
    if (type == DataType::float64) return make_float(basic_float<double>(op, a.f, b.f, type), type);
    return make_float(
        rounded(basic_float<float>(op, static_cast<float>(a.f), static_cast<float>(b.f), type), type), type);
  }
  if (!compares) return make_integer(wrapped(basic_integer(op, a.i, b.i, type), type), type);
  bool answer = is_signed(type) ? compare_integer(op, a.i, b.i, type)
                                : compare_integer(op, unsigned_of(a.i), unsigned_of(b.i), type);
  return make_integer(answer, DataType::boolean);
}

Scalar convert(const Scalar& value, DataType to) {
  check(is_computable(value.type) && is_computable(to), "a cast from or to a type that nothing computes in");
  bool from_float = is_float(value.type);
  if (to == DataType::boolean) return make_integer(from_float ? value.f != 0 : value.i != 0, to);
  if (is_float(to))
    return make_float(from_float ? rounded(value.f, to) : float_from_integer(value.i, value.type, to), to);
  if (from_float) return make_integer(integer_from_float(value.f, to), to);
  return make_integer(wrapped(unsigned_of(value.i), to), to);
}

}  // namespace fusewise
