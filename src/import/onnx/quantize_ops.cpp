// Quantisation: integers with a scale and a zero point for the whole tensor, for every position along one
// axis, or for blocks of positions.
#include <fmt/core.h>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/dynamic_quantization.h"
#include "import/onnx/op_table.h"
#include "import/onnx/tensor_data.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

// Scale or zero point in the shape of the data.
Value spread(Call& c, size_t input, const Shape& shape) {
  const Value v = c.value(input);
  const int rank = static_cast<int>(shape.size());
  const Shape own = c.type(input).shape;
  if (own.empty() || (own.size() == 1 && own[0].is(1))) return c.builder().reshape(v, {});
  const int axis = c.axis(c.integer("axis", 1), rank);
  if (own.size() == 1) return Compose(c.builder()).along(v, axis, rank);
  const int64_t block = c.integer("block_size", 0);
  if (block < 1 || own.size() != shape.size())
    c.fail(fmt::format("operand {} has a shape that does not fit", input));
  // One value for every block of positions along the axis.
  Shape repeated = own, joined = own;
  repeated.insert(repeated.begin() + axis + 1, Dim(block));
  joined[static_cast<size_t>(axis)] = own[static_cast<size_t>(axis)] * Dim(block);
  std::vector<int> dims = counting(0, rank + 1);
  dims.erase(dims.begin() + axis + 1);
  const Value all = c.builder().reshape(c.builder().broadcast(v, repeated, dims), joined);
  return c.builder().slice(all, std::vector<Dim>(shape.size(), Dim(0)), std::vector<int64_t>(shape.size(), 1),
                           shape);
}

// (x - zero) * scale
void dequantize(Call& c) {
  Compose m(c.builder());
  const Shape shape = c.type(0).shape;
  const DataType type = c.element(1), wide = arithmetic_type_of(type);
  Value x = c.builder().cast(c.value(0), DataType::int32);
  if (c.has(2)) x = m.sub(x, c.builder().cast(spread(c, 2, shape), DataType::int32));
  const Value scale = c.builder().cast(spread(c, 1, shape), wide);
  c.set(c.builder().cast(m.mul(c.builder().cast(x, wide), scale), type));
}

struct Range {
  double low, high;
};
Range range_of(Call& c, DataType type) {
  switch (type) {
    case DataType::int8:
      return {-128, 127};
    case DataType::uint8:
      return {0, 255};
    case DataType::int16:
      return {-32768, 32767};
    case DataType::uint16:
      return {0, 65535};
    default:
      c.unsupported(fmt::format("quantisation to {}", name_of(type)));
  }
}

// round(x / scale) + zero, half to even, clamped to the type.
Value quantized(graph::GraphBuilder& b, Value x, Value scale, std::optional<Value> zero, DataType type,
                Range range) {
  Compose m(b);
  Value y = m.map(ScalarOp::round, m.div(x, scale));
  if (zero) y = m.add(y, b.cast(*zero, b.type(y).element));
  return b.cast(m.min(m.max(y, range.low), range.high), type);
}

void quantize(Call& c) {
  Compose m(c.builder());
  const Shape shape = c.type(0).shape;
  DataType type = c.has(2) ? c.element(2) : DataType::uint8;
  if (const int64_t number = c.integer("output_dtype", 0); number != 0) {
    const auto given =
        number > 0 && number < 64 ? data_type_of_number(static_cast<int32_t>(number)) : std::nullopt;
    if (!given) c.unsupported(fmt::format("element type {}", number));
    type = *given;
  }
  Value x = m.widen(c.value(0));
  if (!is_float(c.element(0))) x = c.builder().cast(x, DataType::float32);
  const Value scale = c.builder().cast(spread(c, 1, shape), c.builder().type(x).element);
  const auto zero = c.has(2) ? std::optional(spread(c, 2, shape)) : std::nullopt;
  c.set(quantized(c.builder(), x, scale, zero, type, range_of(c, type)));
}

// `range`: a 255th of the distance of the least and greatest element, which is the scale where it is not 0.
struct Dynamic {
  DynamicallyQuantized quantized;
  Value range;
};
Dynamic dynamic(graph::GraphBuilder& b, Value x) {
  Compose m(b);
  const std::vector<int> all = counting(0, b.type(x).rank());
  const Value low = m.min(b.reduce(x, Combine::min, all), 0.0);
  const Value high = m.max(b.reduce(x, Combine::max, all), 0.0);
  const Value range = m.div(m.sub(high, low), 255.0);
  const Value is_zero = m.map(ScalarOp::equal, range, m.like(range, 0));
  const Value scale = m.select(is_zero, m.like(range, 1), range);
  const Value zero = m.map(ScalarOp::round, m.min(m.max(m.div(m.neg(low), scale), 0.0), 255.0));
  const Value values = quantized(b, x, scale, zero, DataType::uint8, {0, 255});
  return {{values, scale, b.cast(zero, DataType::uint8)}, range};
}

void dynamic_quantize(Call& c) {
  const Dynamic made = dynamic(c.builder(), c.value(0));
  c.set(made.quantized.values);
  c.set_output(1, made.range);
  c.set_output(2, made.quantized.zero);
}

constexpr OpRow rows[] = {
    {"DequantizeLinear", 10, newest, dequantize},
    {"DynamicQuantizeLinear", 11, newest, dynamic_quantize},
    {"QuantizeLinear", 10, newest, quantize},
};

}  // namespace

std::span<const OpRow> quantize_ops() { return rows; }

DynamicallyQuantized dynamically_quantized(graph::GraphBuilder& builder, Value x) {
  return dynamic(builder, x).quantized;
}

}  // namespace fusewise::onnx
