// Operators that work element by element, NumPy broadcasting included.
#include <fmt/core.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/op_table.h"
#include "import/onnx/tensor_data.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

template <ScalarOp op>
void unary(Call& c) {
  c.set(c.builder().map(op, {c.value(0)}));
}

// Before version 7 the second operand broadcast only when asked to, and from the dimension `axis` on.
Value legacy_operand(Call& c) {
  const Value y = c.value(1);
  if (c.version() >= 7 || c.integer("broadcast", 0) == 0 || !c.attribute("axis")) return y;
  const int rank = c.rank(0), own = c.rank(1);
  const int axis = c.axis(c.integer("axis", 0), rank);
  if (axis + own > rank) c.fail("the second operand reaches beyond the first one's dimensions");
  return Compose(c.builder()).along(y, axis, rank);
}

void same_types(Call& c) {
  for (size_t i = 1; i < c.inputs(); ++i) {
    if (c.element(i) != c.element(0)) {
      c.fail(fmt::format("its operands have different types, {} and {}", name_of(c.element(0)),
                         name_of(c.element(i))));
    }
  }
}

template <ScalarOp op>
void binary(Call& c) {
  same_types(c);
  c.set(c.builder().map_broadcast(op, {c.value(0), legacy_operand(c)}));
}

template <ScalarOp op>
void variadic(Call& c) {
  same_types(c);
  Value result = c.value(0);
  for (size_t i = 1; i < c.inputs(); ++i) result = c.builder().map_broadcast(op, {result, c.value(i)});
  c.set(result);
}

void mean(Call& c) {
  Compose m(c.builder());
  Value result = c.value(0);
  for (size_t i = 1; i < c.inputs(); ++i) result = m.add(result, c.value(i));
  c.set(m.div(result, static_cast<double>(c.inputs())));
}

void mod(Call& c) {
  same_types(c);
  const bool truncates = c.integer("fmod", 0) != 0;
  c.set(c.builder().map_broadcast(truncates ? ScalarOp::remainder : ScalarOp::mod, {c.value(0), c.value(1)}));
}

void reciprocal(Call& c) {
  Compose m(c.builder());
  c.set(m.div(1.0, c.value(0)));
}

// A constant exponent of 1, 2 or 3 is repeated multiplication; integers go through float64.
void pow(Call& c) {
  Compose m(c.builder());
  const Value x = c.value(0);
  const DataType type = c.element(0);
  const auto exponent = c.elements(1);
  if (exponent && exponent->size() == 1 && c.rank(1) <= c.rank(0)) {
    const Scalar& e = (*exponent)[0];
    const double power = is_float(e.type) ? e.f : static_cast<double>(e.i);
    if (power == 1) return c.set(x);
    if (power == 2) return c.set(m.mul(x, x));
    if (power == 3) return c.set(m.mul(m.mul(x, x), x));
  }
  const DataType wide = is_float(type) ? type : DataType::float64;
  const Value result =
      m.map(ScalarOp::pow, c.builder().cast(x, wide), c.builder().cast(legacy_operand(c), wide));
  c.set(c.builder().cast(result, type));
}

void cast(Call& c) {
  const int64_t number = c.required_integer("to");
  const auto to =
      number >= 0 && number < 64 ? data_type_of_number(static_cast<int32_t>(number)) : std::nullopt;
  if (!to && is_later_element_type(number)) c.unsupported(fmt::format("a cast to element type {}", number));
  if (!to) c.fail(fmt::format("element type {} is unknown", number));
  if (!is_computable(*to)) c.unsupported(fmt::format("a cast to {}", name_of(*to)));
  c.set(c.builder().cast(c.value(0), *to));
}

void cast_like(Call& c) { c.set(c.builder().cast(c.value(0), c.element(1))); }

void where(Call& c) {
  if (c.element(0) != DataType::boolean) c.fail("the condition is not boolean");
  if (c.element(1) != c.element(2)) c.fail("the two values have different types");
  c.set(c.builder().map_broadcast(ScalarOp::select, {c.value(0), c.value(1), c.value(2)}));
}

void is_inf(Call& c) {
  Compose m(c.builder());
  const bool negative = c.integer("detect_negative", 1) != 0, positive = c.integer("detect_positive", 1) != 0;
  const Value x = c.value(0);
  Value result = m.map(ScalarOp::is_inf, x);
  if (!negative) result = m.map(ScalarOp::and_, result, m.greater(x, 0));
  if (!positive) result = m.map(ScalarOp::and_, result, m.less(x, 0));
  c.set(result);
}

void bitwise_not(Call& c) {
  c.set(c.builder().map_broadcast(ScalarOp::xor_, {c.value(0), c.builder().scalar(c.element(0), -1)}));
}

// (x - offset) * scale, one of each for all or for every feature.
void scaler(Call& c) {
  Compose m(c.builder());
  const auto numbers = [&](std::string_view name, float otherwise) {
    const Attribute* a = c.attribute(name);
    std::vector<float> values = a ? a->floats : std::vector<float>{otherwise};
    if (values.empty()) values.push_back(otherwise);
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    const Value all = c.builder().constant({DataType::float32, {Dim(static_cast<int64_t>(values.size()))}},
                                           std::move(bytes));
    return values.size() == 1 ? c.builder().reshape(all, {}) : all;
  };
  const Value x = c.builder().cast(c.value(0), DataType::float32);
  c.set(m.mul(m.sub(x, numbers("offset", 0)), numbers("scale", 1)));
}

// ln(x + sqrt(x^2 + 1)) and the like would lose digits near 0, so those functions are not here.
constexpr OpRow rows[] = {
    {"Abs", 1, newest, unary<ScalarOp::abs>},
    {"Add", 1, newest, binary<ScalarOp::add>},
    {"And", 1, newest, binary<ScalarOp::and_>},
    {"Atan", 7, newest, unary<ScalarOp::atan>},
    {"BitwiseAnd", 18, newest, binary<ScalarOp::and_>},
    {"BitwiseNot", 18, newest, bitwise_not},
    {"BitwiseOr", 18, newest, binary<ScalarOp::or_>},
    {"BitwiseXor", 18, newest, binary<ScalarOp::xor_>},
    {"Cast", 6, newest, cast},
    {"CastLike", 15, newest, cast_like},
    {"Ceil", 1, newest, unary<ScalarOp::ceil>},
    {"Cos", 7, newest, unary<ScalarOp::cos>},
    {"Div", 1, newest, binary<ScalarOp::div>},
    {"Equal", 1, newest, binary<ScalarOp::equal>},
    {"Erf", 9, newest, unary<ScalarOp::erf>},
    {"Exp", 1, newest, unary<ScalarOp::exp>},
    {"Floor", 1, newest, unary<ScalarOp::floor>},
    {"Greater", 1, newest, binary<ScalarOp::greater>},
    {"GreaterOrEqual", 12, newest, binary<ScalarOp::greater_equal>},
    {"IsInf", 10, newest, is_inf},
    {"IsNaN", 9, newest, unary<ScalarOp::is_nan>},
    {"Less", 1, newest, binary<ScalarOp::less>},
    {"LessOrEqual", 12, newest, binary<ScalarOp::less_equal>},
    {"Log", 1, newest, unary<ScalarOp::log>},
    {"Max", 1, newest, variadic<ScalarOp::max>},
    {"Mean", 1, newest, mean},
    {"Min", 1, newest, variadic<ScalarOp::min>},
    {"Mod", 10, newest, mod},
    {"Mul", 1, newest, binary<ScalarOp::mul>},
    {"Neg", 1, newest, unary<ScalarOp::neg>},
    {"Not", 1, newest, unary<ScalarOp::not_>},
    {"Or", 1, newest, binary<ScalarOp::or_>},
    {"Pow", 1, newest, pow},
    {"Reciprocal", 1, newest, reciprocal},
    {"Round", 11, newest, unary<ScalarOp::round>},
    {"Scaler", 1, newest, scaler, "ai.onnx.ml"},
    {"Sign", 9, newest, unary<ScalarOp::sign>},
    {"Sin", 7, newest, unary<ScalarOp::sin>},
    {"Sqrt", 1, newest, unary<ScalarOp::sqrt>},
    {"Sub", 1, newest, binary<ScalarOp::sub>},
    {"Sum", 1, newest, variadic<ScalarOp::add>},
    {"Tan", 7, newest, unary<ScalarOp::tan>},
    {"Tanh", 1, newest, unary<ScalarOp::tanh>},
    {"Where", 9, newest, where},
    {"Xor", 1, newest, binary<ScalarOp::xor_>},
};

}  // namespace

std::span<const OpRow> elementwise_ops() { return rows; }

}  // namespace fusewise::onnx
