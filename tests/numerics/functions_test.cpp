#include "numerics/functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

#include "numerics/functions_impl.h"

namespace fusewise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

const ScalarOp unary[] = {ScalarOp::atan, ScalarOp::cos, ScalarOp::erf, ScalarOp::exp,
                          ScalarOp::log,  ScalarOp::sin, ScalarOp::tan, ScalarOp::tanh};

template <class R>
R reference(ScalarOp op, R a, R b) {
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
    default:
      return std::tanh(a);
  }
}

// Distance in units in the last place that F has at the exact value; denormals count their fixed step.
template <class F, class R>
double distance(F got, R exact) {
  constexpr double unlike = 1e9;
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) == std::isnan(got) ? 0 : unlike;
  F nearest = static_cast<F>(exact);
  if (std::isinf(nearest) || std::isinf(got)) {
    if (nearest == got) return 0;
    // Next to the overflow threshold the neighbour is one unit away.
    return std::nextafter(got, nearest) == nearest || std::nextafter(nearest, got) == got ? 1 : unlike;
  }
  if (std::signbit(exact) != std::signbit(got) && exact != 0 && got != 0) return unlike;
  if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(exact) ? 0 : unlike;
  constexpr int digits = std::numeric_limits<F>::digits - 1, least = std::numeric_limits<F>::min_exponent - 1;
  int exponent = std::max(std::ilogb(exact), least) - digits;
  return static_cast<double>(std::fabs((static_cast<R>(got) - exact)) / std::ldexp(R(1), exponent));
}

TEST(Functions, float32_error_over_all_patterns) {
  for (ScalarOp op : unary) {
    double worst = 0;
    float where = 0;
    for (uint64_t pattern = 0; pattern < (uint64_t{1} << 32); pattern += 997) {
      float x = std::bit_cast<float>(static_cast<uint32_t>(pattern));
      double error = distance(evaluate_function(op, x, 0.0f), reference<double>(op, x, 0));
      if (error > worst) worst = error, where = x;
    }
    EXPECT_LE(worst, ulp_bound(op, DataType::float32)) << name_of(op) << " at " << where;
  }
}

TEST(Functions, float32_error_in_the_usual_range) {
  for (ScalarOp op : unary) {
    double worst = 0;
    float where = 0;
    for (int i = -400000; i <= 400000; ++i) {
      float x = static_cast<float>(i) * 2.60417e-4f;
      double error = distance(evaluate_function(op, x, 0.0f), reference<double>(op, x, 0));
      if (error > worst) worst = error, where = x;
    }
    EXPECT_LE(worst, ulp_bound(op, DataType::float32)) << name_of(op) << " at " << where;
  }
}

TEST(Functions, float64_error) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "no wider type to compare with";
  for (ScalarOp op : unary) {
    std::mt19937_64 random(11);
    double worst = 0, where = 0;
    for (int i = 0; i < 200000; ++i) {
      double x =
          std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, static_cast<int>(random() % 24) - 14);
      if (i % 3 == 0) x = std::bit_cast<double>(static_cast<uint64_t>(random()));
      if (i % 2) x = -x;
      double error = distance(evaluate_function(op, x, 0.0), reference<long double>(op, x, 0));
      if (error > worst) worst = error, where = x;
    }
    EXPECT_LE(worst, ulp_bound(op, DataType::float64)) << name_of(op) << " at " << where;
  }
}

// Arguments next to multiples of pi/2, where the reduction must be exact.
TEST(Functions, circle_near_its_axes) {
  for (ScalarOp op : {ScalarOp::sin, ScalarOp::cos, ScalarOp::tan})
    for (int exponent = 0; exponent < 127; ++exponent)
      for (int k = 1; k < 60; ++k) {
        float x = static_cast<float>(std::ldexp(static_cast<double>(k) * 1.5707963267948966, exponent));
        if (std::isinf(x)) continue;
        for (float near : {x, std::nextafter(x, 0.0f), std::nextafter(x, 1e38f)})
          ASSERT_LE(distance(evaluate_function(op, near, 0.0f), reference<double>(op, near, 0)),
                    ulp_bound(op, DataType::float32))
              << name_of(op) << " " << near;
      }
}

template <class F, class R>
void check_pow(DataType type, double range, int count) {
  std::mt19937_64 random(5);
  double worst = 0;
  F worst_x = 0, worst_y = 0;
  for (int i = 0; i < count; ++i) {
    double unit = static_cast<double>(random() >> 11) * 0x1p-53,
           other = static_cast<double>(random() >> 11) * 0x1p-53;
    F x = static_cast<F>(
        std::ldexp(1 + unit, i % 2 ? static_cast<int>(random() % 60) - 30 : -static_cast<int>(random() % 2)));
    F y = static_cast<F>((other * 2 - 1) * range / std::log2(static_cast<double>(x)));
    if (i % 5 == 0) y = std::trunc(y), x = -x;
    double error =
        distance(evaluate_function(ScalarOp::pow, x, y), std::pow(static_cast<R>(x), static_cast<R>(y)));
    if (error > worst) worst = error, worst_x = x, worst_y = y;
  }
  EXPECT_LE(worst, ulp_bound(ScalarOp::pow, type)) << worst_x << " " << worst_y;
}

TEST(Functions, pow_error) {
  check_pow<float, double>(DataType::float32, 155, 500000);
  if (std::numeric_limits<long double>::digits >= 64)
    check_pow<double, long double>(DataType::float64, 1080, 100000);
}

template <class F>
void check_special_values() {
  const double edges[] = {0.0,
                          -0.0,
                          0.5,
                          -0.5,
                          1,
                          -1,
                          2,
                          -2,
                          3,
                          -3,
                          2.5,
                          -2.5,
                          1e30,
                          -1e30,
                          1e-30,
                          inf,
                          -inf,
                          nan,
                          std::numeric_limits<F>::max(),
                          -std::numeric_limits<F>::max(),
                          std::numeric_limits<F>::denorm_min(),
                          -std::numeric_limits<F>::denorm_min(),
                          std::numeric_limits<F>::min(),
                          1 - std::numeric_limits<F>::epsilon(),
                          4503599627370497.0};
  for (double x : edges)
    for (double y : edges) {
      F a = static_cast<F>(x), b = static_cast<F>(y);
      F got = evaluate_function(ScalarOp::pow, a, b), wanted = std::pow(a, b);
      EXPECT_LE(distance(got, static_cast<long double>(wanted)), 2) << a << " ^ " << b << " = " << got;
      EXPECT_TRUE(std::isnan(wanted) || std::signbit(got) == std::signbit(wanted)) << a << " ^ " << b;
    }
  for (ScalarOp op : unary)
    for (double x : edges) {
      F a = static_cast<F>(x);
      F got = evaluate_function(op, a, F(0)), wanted = reference<F>(op, a, 0);
      EXPECT_LE(distance(got, static_cast<long double>(wanted)), 4) << name_of(op) << " " << a << " " << got;
      EXPECT_TRUE(std::isnan(wanted) || std::signbit(got) == std::signbit(wanted)) << name_of(op) << " " << a;
    }
}

TEST(Functions, special_values_are_those_of_c) {
  check_special_values<float>();
  check_special_values<double>();
}

TEST(Functions, every_kind_of_nan_stays_nan) {
  for (ScalarOp op : unary)
    for (uint32_t payload : {1u, 0x155u, 0x1FFu, 0x200000u, 0x3FFFFFu, 0x400000u, 0x7FFFFFu})
      for (uint32_t sign : {0u, 0x80000000u})
        EXPECT_TRUE(
            std::isnan(evaluate_function(op, std::bit_cast<float>(sign | 0x7F800000u | payload), 0.0f)))
            << name_of(op) << payload;
}

TEST(Functions, exp_reaches_denormals_and_both_ends) {
  EXPECT_EQ(evaluate_function(ScalarOp::exp, -104.0f, 0.0f), 0);
  EXPECT_GT(evaluate_function(ScalarOp::exp, -103.5f, 0.0f), 0);
  EXPECT_EQ(evaluate_function(ScalarOp::exp, 88.8f, 0.0f), std::numeric_limits<float>::infinity());
  EXPECT_LT(evaluate_function(ScalarOp::exp, 88.7f, 0.0f), std::numeric_limits<float>::infinity());
  EXPECT_EQ(evaluate_function(ScalarOp::exp, 0.0f, 0.0f), 1);
  EXPECT_EQ(evaluate_function(ScalarOp::exp, -746.0, 0.0), 0);
  EXPECT_GT(evaluate_function(ScalarOp::exp, -745.0, 0.0), 0);
  EXPECT_EQ(evaluate_function(ScalarOp::log, 0x1p-149f, 0.0f), static_cast<float>(-149 * std::log(2.0)));
}

TEST(Functions, saturating_functions_stay_within_one) {
  for (int i = 0; i < 200000; ++i) {
    float x = static_cast<float>(i) * 1e-4f;
    for (ScalarOp op : {ScalarOp::erf, ScalarOp::tanh}) {
      ASSERT_LE(evaluate_function(op, x, 0.0f), 1);
      ASSERT_EQ(evaluate_function(op, -x, 0.0f), -evaluate_function(op, x, 0.0f));
    }
  }
}

// Another arithmetic over the same definitions: counts operations, and has only what functions.h promises.
struct CountingArithmetic {
  struct Value {
    float x = 0;
  };
  struct Boolean {
    bool b;
  };
  struct Integer {
    uint32_t i;
  };
  static constexpr bool is_double = false;
  int operations = 0;

  Value one(float x) { return ++operations, Value{x}; }
  Boolean truth(bool b) { return ++operations, Boolean{b}; }
  Integer bits(uint32_t i) { return ++operations, Integer{i}; }

  Value constant(double x) { return {static_cast<float>(x)}; }
  Value add(Value a, Value b) { return one(a.x + b.x); }
  Value sub(Value a, Value b) { return one(a.x - b.x); }
  Value mul(Value a, Value b) { return one(a.x * b.x); }
  Value div(Value a, Value b) { return one(a.x / b.x); }
  Value fma(Value a, Value b, Value c) { return one(std::fma(a.x, b.x, c.x)); }
  Value neg(Value a) { return one(-a.x); }
  Value abs(Value a) { return one(std::fabs(a.x)); }
  Value floor(Value a) { return one(std::floor(a.x)); }
  Value trunc(Value a) { return one(std::trunc(a.x)); }
  Value round(Value a) { return one(std::nearbyint(a.x)); }
  Value copysign(Value a, Value b) { return one(std::copysign(a.x, b.x)); }
  Value select(Boolean b, Value x, Value y) { return one(b.b ? x.x : y.x); }
  Boolean less(Value a, Value b) { return truth(a.x < b.x); }
  Boolean equal(Value a, Value b) { return truth(a.x == b.x); }
  Boolean and_(Boolean a, Boolean b) { return truth(a.b && b.b); }
  Boolean or_(Boolean a, Boolean b) { return truth(a.b || b.b); }
  Boolean not_(Boolean a) { return truth(!a.b); }
  Value from_int(Integer a) { return one(static_cast<float>(static_cast<int32_t>(a.i))); }
  Integer int_constant(int64_t v) { return {static_cast<uint32_t>(v)}; }
  Integer int_add(Integer a, Integer b) { return bits(a.i + b.i); }
  Integer int_sub(Integer a, Integer b) { return bits(a.i - b.i); }
  Integer int_shift_left(Integer a, int n) { return bits(a.i << n); }
  Integer int_shift_right(Integer a, int n) {
    return bits(static_cast<uint32_t>(static_cast<int32_t>(a.i) >> n));
  }
  Value bits_to_float(Integer a) { return {std::bit_cast<float>(a.i)}; }
  Integer float_to_bits(Value a) { return {std::bit_cast<uint32_t>(a.x)}; }
};

int operations_of(ScalarOp op, float x, float y) {
  CountingArithmetic arithmetic;
  float got = build_function(arithmetic, op, {x}, {y}).x;
  float wanted = evaluate_function(op, x, y);
  EXPECT_TRUE(std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(wanted) ||
              (std::isnan(got) && std::isnan(wanted)))
      << name_of(op) << " " << x;
  return arithmetic.operations;
}

TEST(Functions, any_arithmetic_gives_the_same_bits_by_straight_line_code) {
  for (ScalarOp op : {ScalarOp::atan, ScalarOp::cos, ScalarOp::erf, ScalarOp::exp, ScalarOp::log,
                      ScalarOp::pow, ScalarOp::sin, ScalarOp::tan, ScalarOp::tanh}) {
    int count = operations_of(op, 1, 1);
    for (float x :
         {0.0f, -0.0f, 0.3f, -0.7f, 1.5f, 20.0f, -1e20f, 1e-40f, std::numeric_limits<float>::infinity()})
      EXPECT_EQ(operations_of(op, x, 1.7f), count) << name_of(op) << " " << x;
    RecordProperty(std::string(name_of(op)), count);
  }
  EXPECT_LE(operations_of(ScalarOp::exp, 1, 0), 24);
  EXPECT_LE(operations_of(ScalarOp::tanh, 1, 0), 36);
  EXPECT_LE(operations_of(ScalarOp::erf, 1, 0), 40);
}

}  // namespace
}  // namespace fusewise
