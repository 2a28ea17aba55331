#include "numerics/error_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "numerics/reduction.h"

namespace fusewise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

Bounded apply(ScalarOp op, DataType type, std::vector<Bounded> operands,
              DataType result = DataType::undefined) {
  return evaluate_bounded(op, operands, type, result);
}

double number_of(const Scalar& scalar) {
  return is_float(scalar.type) ? scalar.f : static_cast<double>(scalar.i);
}

// Evaluates in the type at random points within the operands' errors: every result must be within the bound.
TEST(ErrorBound, holds_for_perturbed_operands) {
  std::mt19937_64 random(17);
  auto unit = [&random] { return static_cast<double>(random() >> 11) * 0x1p-52 - 1; };
  const ScalarOp operations[] = {
      ScalarOp::abs,       ScalarOp::add,    ScalarOp::atan, ScalarOp::ceil,  ScalarOp::cos,
      ScalarOp::div,       ScalarOp::equal,  ScalarOp::erf,  ScalarOp::exp,   ScalarOp::floor,
      ScalarOp::greater,   ScalarOp::is_nan, ScalarOp::less, ScalarOp::log,   ScalarOp::max,
      ScalarOp::min,       ScalarOp::mod,    ScalarOp::mul,  ScalarOp::neg,   ScalarOp::pow,
      ScalarOp::remainder, ScalarOp::round,  ScalarOp::sign, ScalarOp::sin,   ScalarOp::sqrt,
      ScalarOp::sub,       ScalarOp::tan,    ScalarOp::tanh, ScalarOp::trunc, ScalarOp::not_equal};
  for (DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64})
    for (ScalarOp op : operations) {
      int known = 0;
      for (int i = 0; i < 2000; ++i) {
        std::vector<Bounded> centres;
        std::vector<Scalar> points;
        for (int k = 0; k < arity_of(op); ++k) {
          double magnitude = std::ldexp(unit(), static_cast<int>(random() % 12) - 5);
          double error =
              i % 4 == 0 ? 0 : std::fabs(magnitude * std::ldexp(unit(), -static_cast<int>(random() % 20)));
          Scalar centre = convert({DataType::float64, magnitude, 0}, type);
          Scalar point = convert({DataType::float64, magnitude + unit() * error, 0}, type);
          error = error == 0 ? std::fabs(point.f - centre.f) : std::max(error, std::fabs(point.f - centre.f));
          centres.push_back({centre.f, error});
          points.push_back(point);
        }
        DataType result = class_of(op) == ScalarClass::compare ? DataType::boolean : type;
        double actual = number_of(evaluate(op, points, result));
        Bounded bound = apply(op, type, centres);
        known += bound.error < inf;
        ASSERT_TRUE(is_within(actual, bound))
            << name_of(op) << " " << name_of(type) << " " << centres[0].value << "+-" << centres[0].error
            << ": " << actual << " not within " << bound.value << "+-" << bound.error;
      }
      EXPECT_GT(known, 500) << name_of(op) << " bounds almost nothing";
    }
}

TEST(ErrorBound, is_tight_for_exact_operands) {
  EXPECT_LT(apply(ScalarOp::add, DataType::float32, {{1, 0}, {2, 0}}).error, 4e-7);
  EXPECT_LT(apply(ScalarOp::exp, DataType::float32, {{1, 0}}).error, 8e-7);
  EXPECT_LT(apply(ScalarOp::exp, DataType::float64, {{1, 0}}).error, 3e-15);
  EXPECT_EQ(apply(ScalarOp::max, DataType::float32, {{1, 0}, {2, 0}}).error, 0);
  EXPECT_EQ(apply(ScalarOp::floor, DataType::float32, {{1.5, 0.25}}).error, 0);
  EXPECT_EQ(apply(ScalarOp::neg, DataType::float16, {{1.5, 0.25}}).error, 0.25);
}

TEST(ErrorBound, near_singularities_nothing_is_claimed) {
  EXPECT_EQ(apply(ScalarOp::div, DataType::float32, {{1, 0}, {1e-3, 1e-2}}).error, inf);
  EXPECT_EQ(apply(ScalarOp::log, DataType::float32, {{1e-3, 1e-2}}).error, inf);
  EXPECT_EQ(apply(ScalarOp::sqrt, DataType::float32, {{1e-3, 1e-2}}).error, inf);
  EXPECT_EQ(apply(ScalarOp::tan, DataType::float32, {{1.5707, 1e-3}}).error, inf);
  EXPECT_EQ(apply(ScalarOp::pow, DataType::float32, {{0, 1e-3}, {0.5, 0}}).error, inf);
  EXPECT_EQ(apply(ScalarOp::mul, DataType::float16, {{65000, 1000}, {1, 0}}).error, inf);
  EXPECT_LT(apply(ScalarOp::pow, DataType::float32, {{0, 1e-3}, {2, 0}}).error, 1e-2);
}

TEST(ErrorBound, infinities_and_nan_are_exact) {
  Bounded overflow = apply(ScalarOp::exp, DataType::float16, {{60000, 0}});
  EXPECT_EQ(overflow.value, inf);
  EXPECT_EQ(overflow.error, 0);
  Bounded masked = apply(ScalarOp::exp, DataType::float32, {{-inf, 0}});
  EXPECT_EQ(masked.value, 0);
  EXPECT_EQ(masked.error, 0);
  EXPECT_EQ(apply(ScalarOp::add, DataType::float32, {{-inf, 0}, {1, 0.5}}).value, -inf);
  EXPECT_EQ(apply(ScalarOp::mul, DataType::float32, {{inf, 0}, {1, 2}}).error, inf);
  Bounded none = apply(ScalarOp::sub, DataType::float32, {{inf, 0}, {inf, 0}});
  EXPECT_TRUE(is_within(nan, none));
  EXPECT_FALSE(is_within(1, none));
  EXPECT_FALSE(is_within(nan, {1, 5}));
}

TEST(ErrorBound, least_normal_numbers) {
  EXPECT_EQ(least_normal(DataType::float16), 0x1p-14);
  EXPECT_EQ(least_normal(DataType::bfloat16), 0x1p-126);
  EXPECT_EQ(least_normal(DataType::float32), 0x1p-126);
  EXPECT_EQ(least_normal(DataType::float64), 0x1p-1022);
}

TEST(ErrorBound, subnormal_weights_may_lose_digits_when_they_are_scaled) {
  const auto sum = [](DataType type, double weight) {
    BoundedSum products(type);
    products.add_product({-104, 0}, {weight, 0});
    return products.result();
  };
  EXPECT_TRUE(is_within(-104 * 0x1p-148, sum(DataType::float32, 0x1p-149)));
  EXPECT_FALSE(is_within(-104 * 0x1p-147, sum(DataType::float32, 0x1p-149)));
  EXPECT_TRUE(is_within(-104 * 0x1p-1073, sum(DataType::float64, 0x1p-1074)));
  EXPECT_FALSE(is_within(-104 * 0x1p-125, sum(DataType::float32, 0x1p-126)));
  EXPECT_FALSE(
      is_within(-104 * 0x1p-16, sum(DataType::float16, 0x1p-17)));  // sums have more digits than weights
}

// Other orders of factors and summands need not overflow, or do so to the other side.
TEST(ErrorBound, overflows_of_sums_and_products_say_nothing) {
  EXPECT_EQ(apply(ScalarOp::mul, DataType::float16, {{60000, 0}, {60000, 0}}).error, inf);
  EXPECT_EQ(apply(ScalarOp::mul, DataType::float64, {{1e300, 0}, {1e300, 0}}).error, inf);
  EXPECT_EQ(apply(ScalarOp::div, DataType::float32, {{1e30, 0}, {1e-30, 0}}).error, inf);
  EXPECT_EQ(apply(ScalarOp::add, DataType::float32, {{3e38, 0}, {3e38, 0}}).error, inf);
  BoundedSum products(DataType::float32);
  products.add_product({1e30, 0}, {1e30, 0});
  products.add_product({1e30, 0}, {-1e30, 0});
  EXPECT_EQ(products.result().error, inf);
  BoundedSum of_infinity(DataType::float32);
  of_infinity.add_product({inf, 0}, {1e30, 0});
  EXPECT_EQ(of_infinity.result().value, inf);
  EXPECT_EQ(of_infinity.result().error, 0);
}

TEST(ErrorBound, decisions_that_may_flip) {
  EXPECT_EQ(apply(ScalarOp::less, DataType::float32, {{1, 0.1}, {2, 0.1}}).error, 0);
  EXPECT_EQ(apply(ScalarOp::less, DataType::float32, {{1, 0.6}, {2, 0.6}}).error, 1);
  EXPECT_EQ(apply(ScalarOp::equal, DataType::float32, {{1, 0}, {1, 0}}).error, 0);
  Bounded either = apply(ScalarOp::select, DataType::float32, {{1, 1}, {5, 0.5}, {7, 0.25}});
  EXPECT_TRUE(is_within(5, either));
  EXPECT_TRUE(is_within(7.25, either));
  Bounded fixed = apply(ScalarOp::select, DataType::float32, {{0, 0}, {5, 0.5}, {7, 0.25}});
  EXPECT_EQ(fixed.value, 7);
  EXPECT_EQ(fixed.error, 0.25);
  EXPECT_EQ(apply(ScalarOp::and_, DataType::boolean, {{1, 1}, {0, 0}}).error, 0);
  EXPECT_EQ(apply(ScalarOp::and_, DataType::boolean, {{1, 1}, {1, 0}}).error, 1);
  EXPECT_EQ(apply(ScalarOp::or_, DataType::boolean, {{0, 1}, {1, 0}}).error, 0);
}

TEST(ErrorBound, casts) {
  EXPECT_EQ(apply(ScalarOp::cast, DataType::float32, {{2.5, 0.25}}, DataType::int32).error, 0);
  EXPECT_EQ(apply(ScalarOp::cast, DataType::float32, {{2.9, 0.25}}, DataType::int32).error, 1);
  EXPECT_EQ(apply(ScalarOp::cast, DataType::float32, {{1e9, 1e6}}, DataType::uint8).error, 0);
  EXPECT_EQ(apply(ScalarOp::cast, DataType::float16, {{0.1, 0}}, DataType::float32).error, 0);
  EXPECT_GT(apply(ScalarOp::cast, DataType::float32, {{0.1, 0}}, DataType::float16).error, 0);
  EXPECT_EQ(apply(ScalarOp::cast, DataType::int32, {{300, 0}}, DataType::uint8).value, 44);
  EXPECT_EQ(apply(ScalarOp::cast, DataType::int32, {{255, 1}}, DataType::uint8).error, inf);
  EXPECT_EQ(apply(ScalarOp::cast, DataType::float32, {{0.1, 0.2}}, DataType::boolean).error, 1);
}

TEST(ErrorBound, integers) {
  EXPECT_EQ(apply(ScalarOp::div, DataType::int32, {{7, 0}, {2, 0}}).value, 3);
  EXPECT_EQ(apply(ScalarOp::add, DataType::int8, {{127, 0}, {1, 0}}).value, -128);
  EXPECT_EQ(apply(ScalarOp::add, DataType::int8, {{100, 1}, {1, 0}}).error, 1);
  EXPECT_EQ(apply(ScalarOp::add, DataType::int8, {{127, 1}, {0, 0}}).error, inf);
  EXPECT_EQ(apply(ScalarOp::div, DataType::int32, {{7, 1}, {2, 0}}).error, inf);
}

TEST(ErrorBound, sums_in_any_order) {
  std::mt19937 random(23);
  std::normal_distribution<float> normal(0.5f, 3);
  for (int count : {0, 1, 2, 17, 1000, 20000}) {
    std::vector<float> a, b;
    for (int i = 0; i < count; ++i) a.push_back(normal(random)), b.push_back(normal(random));
    BoundedSum plain(DataType::float32), dot(DataType::float32);
    float sequential = 0, backward = 0, contraction = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      plain.add({a[i], 0});
      dot.add_product({a[i], 0}, {b[i], 0});
      sequential += a[i];
      backward += a[a.size() - 1 - i];
      contraction = std::fma(a[i], b[i], contraction);
    }
    EXPECT_TRUE(is_within(sequential, plain.result())) << count;
    EXPECT_TRUE(is_within(backward, plain.result())) << count;
    EXPECT_TRUE(is_within(reduce_strided(Combine::sum, a.data(), count, 1), plain.result())) << count;
    EXPECT_TRUE(is_within(contraction, dot.result())) << count;
    EXPECT_LT(plain.result().error, 1e-2 * (count + 1));
  }
  BoundedSum infinite(DataType::float32);
  infinite.add({-inf, 0});
  infinite.add({1, 0});
  EXPECT_EQ(infinite.result().value, -inf);
  EXPECT_EQ(infinite.result().error, 0);
}

// Doubles round such integers, and narrow types wrap around.
TEST(ErrorBound, sums_of_large_integers_are_unknown) {
  const auto sum = [](DataType type, std::vector<double> terms) {
    BoundedSum all(type);
    for (double term : terms) all.add({term, 0});
    return all.result();
  };
  EXPECT_EQ(sum(DataType::int64, {0x1p63, -0x1p63, 25}).error, inf);
  EXPECT_EQ(sum(DataType::int64, {0x1p52, -0x1p51, 25}).error, 0);
  EXPECT_EQ(sum(DataType::int8, {100, 27}).error, 0);
  EXPECT_EQ(sum(DataType::int8, {100, 28}).error, inf);
  EXPECT_EQ(sum(DataType::uint8, {200, 55}).error, 0);
  EXPECT_EQ(apply(ScalarOp::sub, DataType::int64, {{0x1p60, 0}, {0x1p60, 0}}).error, inf);
}

}  // namespace
}  // namespace fusewise
