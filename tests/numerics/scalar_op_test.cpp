#include "numerics/scalar_op.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"

namespace fusewise {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::nan("");
constexpr int64_t least64 = std::numeric_limits<int64_t>::min();

const std::vector<DataType> computable = {
    DataType::boolean,  DataType::int8,    DataType::int16,  DataType::int32,  DataType::int64,
    DataType::uint8,    DataType::uint16,  DataType::uint32, DataType::uint64, DataType::float16,
    DataType::bfloat16, DataType::float32, DataType::float64};

std::vector<ScalarOp> all_operations() {
  return {
#define SCALAR_OP(name, arity, class_) ScalarOp::name,
#include "numerics/scalar_ops.def"
#undef SCALAR_OP
  };
}

Scalar number(DataType type, double value) { return {type, value, 0}; }
Scalar whole(DataType type, int64_t value) { return {type, 0, value}; }

double floats(ScalarOp op, DataType type, double a, double b = 0) {
  Scalar operands[] = {number(type, a), number(type, b)};
  return evaluate(op, std::span(operands, static_cast<size_t>(arity_of(op))), type).f;
}

int64_t wholes(ScalarOp op, DataType type, int64_t a, int64_t b = 0) {
  Scalar operands[] = {whole(type, a), whole(type, b)};
  return evaluate(op, std::span(operands, static_cast<size_t>(arity_of(op))), type).i;
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST(DataTypes, tables_are_consistent) {
  for (int i = 0; i <= static_cast<int>(DataType::string); ++i) {
    DataType type = static_cast<DataType>(i);
    EXPECT_EQ(data_type_of(name_of(type)), type);
    EXPECT_FALSE(is_float(type) && is_integer(type));
    EXPECT_TRUE(!is_signed(type) || is_float(type) || is_integer(type));
  }
  EXPECT_FALSE(data_type_of("float31").has_value());
  int count = 0;
  for (int i = 0; i <= static_cast<int>(DataType::string); ++i)
    count += is_computable(static_cast<DataType>(i));
  EXPECT_EQ(count, static_cast<int>(computable.size()));
  EXPECT_EQ(bits_of(DataType::int4), 4);
  EXPECT_THROW(bytes_of(DataType::int4), InternalError);
  EXPECT_THROW(bytes_of(DataType::string), InternalError);
  EXPECT_EQ(bytes_of(DataType::complex128), 16);
  EXPECT_EQ(accumulator_of(DataType::bfloat16), DataType::float32);
  EXPECT_EQ(accumulator_of(DataType::int8), DataType::int8);
}

TEST(ScalarOps, list_is_sorted_and_named) {
  std::string previous;
  for (ScalarOp op : all_operations()) {
    std::string name(name_of(op));
    EXPECT_LT(previous, name);
    EXPECT_EQ(scalar_op_of(name), op);
    EXPECT_GE(arity_of(op), 1);
    previous = name;
  }
  EXPECT_EQ(scalar_op_of("and"), ScalarOp::and_);
  EXPECT_FALSE(scalar_op_of("and_").has_value());
}

TEST(ScalarOps, result_types) {
  auto type = [](ScalarOp op, std::vector<DataType> operands) { return result_type_of(op, operands); };
  constexpr DataType f = DataType::float32, i = DataType::int32, b = DataType::boolean;
  EXPECT_EQ(type(ScalarOp::add, {f, f}), f);
  EXPECT_EQ(type(ScalarOp::less, {i, i}), b);
  EXPECT_EQ(type(ScalarOp::select, {b, i, i}), i);
  EXPECT_EQ(type(ScalarOp::and_, {b, b}), b);
  EXPECT_FALSE(type(ScalarOp::add, {f, i}));
  EXPECT_FALSE(type(ScalarOp::add, {f}));
  EXPECT_FALSE(type(ScalarOp::add, {b, b}));
  EXPECT_FALSE(type(ScalarOp::exp, {i}));
  EXPECT_FALSE(type(ScalarOp::sqrt, {i}));
  EXPECT_FALSE(type(ScalarOp::and_, {f, f}));
  EXPECT_FALSE(type(ScalarOp::select, {f, i, i}));
  EXPECT_FALSE(type(ScalarOp::select, {b, i, f}));
  EXPECT_FALSE(type(ScalarOp::cast, {f}));
  EXPECT_FALSE(type(ScalarOp::neg, {DataType::float8e5m2}));
}

// Every operation on every type either has a type and evaluates, or is refused by both.
TEST(ScalarOps, types_and_evaluation_agree) {
  for (ScalarOp op : all_operations()) {
    if (op == ScalarOp::cast || op == ScalarOp::select) continue;
    for (DataType type : computable) {
      std::vector<DataType> types(static_cast<size_t>(arity_of(op)), type);
      std::vector<Scalar> operands(types.size(), Scalar{type, 1, 1});
      std::optional<DataType> result = result_type_of(op, types);
      if (result)
        EXPECT_EQ(evaluate(op, operands, *result).type, *result) << name_of(op) << name_of(type);
      else
        EXPECT_THROW(evaluate(op, operands, type), InternalError) << name_of(op) << name_of(type);
    }
  }
}

TEST(ScalarOps, integers_at_the_edges) {
  for (DataType type : computable) {
    if (!is_integer(type)) continue;
    int bits = bits_of(type);
    bool has_sign = is_signed(type);
    int64_t least = has_sign ? static_cast<int64_t>(~uint64_t{0} << (bits - 1)) : 0;
    int64_t greatest = has_sign ? ~least : static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
    SCOPED_TRACE(std::string(name_of(type)));
    EXPECT_EQ(wholes(ScalarOp::add, type, greatest, 1), least);
    EXPECT_EQ(wholes(ScalarOp::sub, type, least, 1), greatest);
    EXPECT_EQ(wholes(ScalarOp::mul, type, greatest, 2), has_sign ? -2 : greatest - 1);
    EXPECT_EQ(wholes(ScalarOp::neg, type, least), least);
    EXPECT_EQ(wholes(ScalarOp::abs, type, least), least);
    EXPECT_EQ(wholes(ScalarOp::div, type, 5, 0), 0);
    EXPECT_EQ(wholes(ScalarOp::mod, type, 5, 0), 0);
    EXPECT_EQ(wholes(ScalarOp::remainder, type, 5, 0), 0);
    EXPECT_EQ(wholes(ScalarOp::div, type, greatest, 2),
              static_cast<int64_t>((~uint64_t{0} >> (64 - bits)) >> (has_sign ? 2 : 1)));
    EXPECT_EQ(wholes(ScalarOp::not_, type, 0), has_sign ? -1 : greatest);
    EXPECT_EQ(wholes(ScalarOp::xor_, type, 12, 10), 6);
    EXPECT_EQ(wholes(ScalarOp::max, type, least, greatest), greatest);
    EXPECT_EQ(wholes(ScalarOp::min, type, greatest, least), least);
    EXPECT_EQ(wholes(ScalarOp::less, type, least, greatest), 1);
    EXPECT_EQ(wholes(ScalarOp::greater_equal, type, least, greatest), 0);
    EXPECT_EQ(wholes(ScalarOp::sign, type, greatest), 1);
    EXPECT_EQ(wholes(ScalarOp::floor, type, greatest), greatest);
    EXPECT_EQ(wholes(ScalarOp::is_nan, type, greatest), 0);
    if (!has_sign) continue;
    EXPECT_EQ(wholes(ScalarOp::div, type, least, -1), least);
    EXPECT_EQ(wholes(ScalarOp::mod, type, least, -1), 0);
    EXPECT_EQ(wholes(ScalarOp::div, type, -7, 2), -3);
    EXPECT_EQ(wholes(ScalarOp::mod, type, -7, 3), 2);
    EXPECT_EQ(wholes(ScalarOp::mod, type, 7, -3), -2);
    EXPECT_EQ(wholes(ScalarOp::remainder, type, -7, 3), -1);
    EXPECT_EQ(wholes(ScalarOp::sign, type, least), -1);
  }
}

TEST(ScalarOps, booleans) {
  DataType type = DataType::boolean;
  for (int64_t a : {0, 1}) {
    EXPECT_EQ(wholes(ScalarOp::not_, type, a), 1 - a);
    for (int64_t b : {0, 1}) {
      EXPECT_EQ(wholes(ScalarOp::and_, type, a, b), a & b);
      EXPECT_EQ(wholes(ScalarOp::or_, type, a, b), a | b);
      EXPECT_EQ(wholes(ScalarOp::xor_, type, a, b), a ^ b);
      EXPECT_EQ(wholes(ScalarOp::max, type, a, b), a | b);
      EXPECT_EQ(wholes(ScalarOp::less, type, a, b), a < b);
    }
  }
}

TEST(ScalarOps, floats_at_the_edges) {
  for (DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64}) {
    SCOPED_TRACE(std::string(name_of(type)));
    auto expect = [type](ScalarOp op, double a, double b, double wanted) {
      double got = floats(op, type, a, b);
      EXPECT_TRUE(same(got, wanted)) << name_of(op) << "(" << a << ", " << b << ") = " << got;
    };
    for (double other : {1.0, inf, nan}) {
      expect(ScalarOp::max, nan, other, nan);
      expect(ScalarOp::max, other, nan, nan);
      expect(ScalarOp::min, nan, other, nan);
      expect(ScalarOp::min, other, nan, nan);
    }
    expect(ScalarOp::max, -0.0, 0.0, 0.0);
    expect(ScalarOp::max, 0.0, -0.0, 0.0);
    expect(ScalarOp::min, -0.0, 0.0, -0.0);
    expect(ScalarOp::min, 0.0, -0.0, -0.0);
    expect(ScalarOp::max, -inf, 1, 1);
    expect(ScalarOp::round, 0.5, 0, 0);
    expect(ScalarOp::round, 1.5, 0, 2);
    expect(ScalarOp::round, 2.5, 0, 2);
    expect(ScalarOp::round, -0.25, 0, -0.0);
    expect(ScalarOp::floor, -0.5, 0, -1);
    expect(ScalarOp::ceil, -0.5, 0, -0.0);
    expect(ScalarOp::trunc, -1.5, 0, -1);
    expect(ScalarOp::sign, nan, 0, nan);
    expect(ScalarOp::sign, -0.0, 0, 0);
    expect(ScalarOp::sign, -inf, 0, -1);
    expect(ScalarOp::div, 1, 0, inf);
    expect(ScalarOp::div, -1, 0, -inf);
    expect(ScalarOp::div, 0, 0, nan);
    expect(ScalarOp::mod, -7, 3, 2);
    expect(ScalarOp::mod, 7, -3, -2);
    expect(ScalarOp::mod, 6, 3, 0);
    expect(ScalarOp::mod, 5, 0, nan);
    expect(ScalarOp::mod, 5, inf, 5);
    expect(ScalarOp::remainder, -7, 3, -1);
    expect(ScalarOp::remainder, -6, 3, -0.0);
    expect(ScalarOp::sqrt, -0.0, 0, -0.0);
    expect(ScalarOp::sqrt, -1, 0, nan);
    expect(ScalarOp::abs, -0.0, 0, 0);
    expect(ScalarOp::neg, 0.0, 0, -0.0);
    expect(ScalarOp::sub, inf, inf, nan);
    EXPECT_EQ(wholes(ScalarOp::is_nan, DataType::int8, 0), 0);
    Scalar pair[] = {number(type, nan), number(type, nan)};
    EXPECT_EQ(evaluate(ScalarOp::equal, pair, DataType::boolean).i, 0);
    EXPECT_EQ(evaluate(ScalarOp::not_equal, pair, DataType::boolean).i, 1);
    EXPECT_EQ(evaluate(ScalarOp::less_equal, pair, DataType::boolean).i, 0);
    EXPECT_EQ(evaluate(ScalarOp::is_nan, std::span(pair, 1), DataType::boolean).i, 1);
    EXPECT_EQ(evaluate(ScalarOp::is_inf, std::span(pair, 1), DataType::boolean).i, 0);
  }
}

TEST(ScalarOps, floats_round_in_their_type) {
  EXPECT_EQ(floats(ScalarOp::add, DataType::float32, 16777216, 1), 16777216);
  EXPECT_EQ(floats(ScalarOp::add, DataType::float64, 16777216, 1), 16777217);
  EXPECT_EQ(floats(ScalarOp::add, DataType::float16, 2048, 1), 2048);
  EXPECT_EQ(floats(ScalarOp::add, DataType::bfloat16, 256, 1), 256);
  EXPECT_EQ(floats(ScalarOp::mul, DataType::float16, 65504, 2), inf);
  EXPECT_EQ(floats(ScalarOp::mul, DataType::float32, 0x1p-149, 0.5), 0);
  EXPECT_EQ(floats(ScalarOp::mul, DataType::float32, 0x1p-126, 0.5), 0x1p-127);
  EXPECT_EQ(floats(ScalarOp::exp, DataType::float16, 1), float16_to_float(double_to_float16(std::exp(1.0))));
}

TEST(ScalarOps, select_takes_one_operand_whole) {
  Scalar operands[] = {whole(DataType::boolean, 1), number(DataType::float32, nan),
                       number(DataType::float32, 2)};
  EXPECT_TRUE(std::isnan(evaluate(ScalarOp::select, operands, DataType::float32).f));
  operands[0].i = 0;
  EXPECT_EQ(evaluate(ScalarOp::select, operands, DataType::float32).f, 2);
}

TEST(Convert, floats_to_integers_saturate) {
  auto cast = [](double value, DataType to) { return convert(number(DataType::float64, value), to).i; };
  for (DataType type : computable) {
    if (!is_integer(type)) continue;
    int bits = bits_of(type);
    int64_t least = is_signed(type) ? static_cast<int64_t>(~uint64_t{0} << (bits - 1)) : 0;
    int64_t greatest = is_signed(type) ? ~least : static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
    EXPECT_EQ(cast(nan, type), 0);
    EXPECT_EQ(cast(inf, type), greatest);
    EXPECT_EQ(cast(-inf, type), least);
    EXPECT_EQ(cast(1e30, type), greatest);
    EXPECT_EQ(cast(-1e30, type), least);
    EXPECT_EQ(cast(2.9, type), 2);
    EXPECT_EQ(cast(-0.9, type), 0);
    EXPECT_EQ(cast(-2.9, type), is_signed(type) ? -2 : 0);
    EXPECT_EQ(cast(std::ldexp(1.0, bits - 1), type),
              is_signed(type) ? greatest : static_cast<int64_t>(uint64_t{1} << (bits - 1)));
  }
  EXPECT_EQ(cast(255.9, DataType::uint8), 255);
  EXPECT_EQ(cast(0x1.fffffffffffffp63, DataType::uint64), static_cast<int64_t>(0xFFFFFFFFFFFFF800ull));
}

TEST(Convert, integers) {
  EXPECT_EQ(convert(whole(DataType::int32, 300), DataType::uint8).i, 44);
  EXPECT_EQ(convert(whole(DataType::int32, 200), DataType::int8).i, -56);
  EXPECT_EQ(convert(whole(DataType::int8, -1), DataType::uint32).i, 0xFFFFFFFFll);
  EXPECT_EQ(convert(whole(DataType::int64, least64), DataType::float64).f, -0x1p63);
  EXPECT_EQ(convert(whole(DataType::uint64, -1), DataType::float32).f, 0x1p64);
  EXPECT_EQ(convert(whole(DataType::int32, 16777217), DataType::float32).f, 16777216);
  EXPECT_EQ(convert(whole(DataType::int32, 65520), DataType::float16).f, inf);
  EXPECT_EQ(convert(whole(DataType::int32, 256), DataType::boolean).i, 1);
  EXPECT_EQ(convert(number(DataType::float32, nan), DataType::boolean).i, 1);
  EXPECT_EQ(convert(number(DataType::float32, -0.0), DataType::boolean).i, 0);
  EXPECT_THROW(convert(whole(DataType::int4, 1), DataType::int8), InternalError);
}

TEST(Memory, scalars_survive) {
  for (DataType type : computable)
    for (int64_t value : {0, 1, -1, 100, -100}) {
      Scalar scalar = convert(whole(DataType::int64, value), type);
      unsigned char memory[8];
      std::memset(memory, 0xA5, sizeof memory);
      store_scalar(memory, scalar);
      for (size_t i = static_cast<size_t>(bytes_of(type)); i < sizeof memory; ++i) EXPECT_EQ(memory[i], 0xA5);
      Scalar read = load_scalar(memory, type);
      EXPECT_EQ(read.type, type);
      EXPECT_EQ(read.i, scalar.i);
      EXPECT_EQ(read.f, scalar.f);
    }
  EXPECT_THROW(load_scalar("", DataType::string), InternalError);
}

// The value of a 16-bit pattern, from the definition.
double value_of(uint16_t bits, int mantissa_bits) {
  int exponent_bits = 15 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  int mantissa = bits & ((1 << mantissa_bits) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa ? nan : sign * inf;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

template <class ToFloat, class FromFloat, class FromDouble>
void check_half_type(int mantissa_bits, ToFloat to_float, FromFloat from_float, FromDouble from_double) {
  for (uint32_t pattern = 0; pattern < 65536; ++pattern) {
    uint16_t bits = static_cast<uint16_t>(pattern);
    double exact = value_of(bits, mantissa_bits);
    ASSERT_TRUE(same(to_float(bits), exact)) << pattern;
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(to_float(from_float(to_float(bits))))) << pattern;
      ASSERT_TRUE(std::isnan(to_float(from_double(exact)))) << pattern;
      continue;
    }
    ASSERT_EQ(from_float(static_cast<float>(exact)), bits);
    ASSERT_EQ(from_double(exact), bits);
    if (std::isinf(exact)) continue;
    // Halfway to the next pattern away from zero, and next to that; "infinity" is where the next power would be.
    uint16_t next = static_cast<uint16_t>(bits + 1);
    bool even = (bits & 1) == 0;
    double step = std::fabs(std::isinf(value_of(next, mantissa_bits))
                                ? exact - value_of(static_cast<uint16_t>(bits - 1), mantissa_bits)
                                : value_of(next, mantissa_bits) - exact);
    double sign = bits & 0x8000 ? -1 : 1;
    double half = exact + sign * step / 2;
    ASSERT_EQ(from_double(half), even ? bits : next) << pattern;
    ASSERT_EQ(from_double(std::nextafter(half, sign * inf)), next) << pattern;
    ASSERT_EQ(from_double(std::nextafter(half, 0.0)), bits) << pattern;
    ASSERT_EQ(from_float(static_cast<float>(half)), even ? bits : next) << pattern;
    ASSERT_EQ(from_float(std::nextafter(static_cast<float>(half), static_cast<float>(sign * inf))), next)
        << pattern;
    ASSERT_EQ(from_float(std::nextafter(static_cast<float>(half), 0.0f)), bits) << pattern;
  }
}

TEST(Halves, float16_every_pattern) {
  check_half_type(10, float16_to_float, float_to_float16, double_to_float16);
}
TEST(Halves, bfloat16_every_pattern) {
  check_half_type(7, bfloat16_to_float, float_to_bfloat16, double_to_bfloat16);
}

TEST(Halves, tiny_and_huge_doubles) {
  for (double value : {1e-320, 1e-300, 1e300, std::numeric_limits<double>::max()}) {
    EXPECT_EQ(double_to_float16(value), value < 1 ? 0 : 0x7C00);
    EXPECT_EQ(double_to_bfloat16(-value), value < 1 ? 0x8000 : 0xFF80);
  }
}

}  // namespace
}  // namespace fusewise
