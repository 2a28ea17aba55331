// Scalars in memory, and the half types as bit patterns.
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "base/error.h"
#include "numerics/scalar_op.h"

namespace fusewise {
namespace {

template <class T>
T load(const void* memory) {
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

template <class T>
void store(void* memory, T value) {
  std::memcpy(memory, &value, sizeof value);
}

[[noreturn]] void not_computable(DataType type) {
  throw InternalError("a scalar of type " + std::string(name_of(type)) + " cannot be read or written");
}

// Rounds once, half to even, to a format of 16 bits with so many bits of mantissa.
template <int mantissa_bits>
uint16_t round_to_16_bits(double value) {
  constexpr int exponent_bits = 15 - mantissa_bits;
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  constexpr int dropped = 52 - mantissa_bits;
  constexpr uint16_t infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
  constexpr uint64_t least_normal = static_cast<uint64_t>(1023 + 1 - bias) << 52;
  // The greatest finite value plus half a unit in its last place.
  constexpr uint64_t overflow = (static_cast<uint64_t>(1023 + bias) << 52) |
                                (((uint64_t{1} << (mantissa_bits + 1)) - 1) << (dropped - 1));
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 48) & 0x8000);
  uint64_t magnitude = bits & 0x7FFFFFFFFFFFFFFFull;
  if (magnitude > 0x7FF0000000000000ull)  // NaN: made quiet, the top of its payload kept
    return static_cast<uint16_t>(sign | infinity | (1 << (mantissa_bits - 1)) |
                                 ((magnitude >> dropped) & ((1 << mantissa_bits) - 1)));
  if (magnitude >= overflow) return sign | infinity;
  if (magnitude < least_normal) {
    constexpr double units =
        std::bit_cast<double>(static_cast<uint64_t>(1023 + bias - 1 + mantissa_bits) << 52);
    double count = std::nearbyint(std::fabs(value) * units);  // exact product
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(count));
  }
  uint64_t odd = (magnitude >> dropped) & 1;
  magnitude += (uint64_t{1} << (dropped - 1)) - 1 + odd;
  uint64_t rebiased = (magnitude >> dropped) - (static_cast<uint64_t>(1023 - bias) << mantissa_bits);
  return static_cast<uint16_t>(sign | rebiased);
}

}  // namespace

uint16_t double_to_float16(double value) { return round_to_16_bits<10>(value); }
uint16_t double_to_bfloat16(double value) { return round_to_16_bits<7>(value); }
uint16_t float_to_float16(float value) { return round_to_16_bits<10>(static_cast<double>(value)); }

uint16_t float_to_bfloat16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float float16_to_float(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 31;
  uint32_t mantissa = bits & 0x3FF;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

Scalar load_scalar(const void* memory, DataType type) {
  switch (type) {
    case DataType::boolean:
      return {type, 0, load<uint8_t>(memory) != 0};
    case DataType::int8:
      return {type, 0, load<int8_t>(memory)};
    case DataType::int16:
      return {type, 0, load<int16_t>(memory)};
    case DataType::int32:
      return {type, 0, load<int32_t>(memory)};
    case DataType::int64:
      return {type, 0, load<int64_t>(memory)};
    case DataType::uint8:
      return {type, 0, load<uint8_t>(memory)};
    case DataType::uint16:
      return {type, 0, load<uint16_t>(memory)};
    case DataType::uint32:
      return {type, 0, load<uint32_t>(memory)};
    case DataType::uint64:
      return {type, 0, static_cast<int64_t>(load<uint64_t>(memory))};
    case DataType::bfloat16:
      return {type, bfloat16_to_float(load<uint16_t>(memory)), 0};
    case DataType::float16:
      return {type, float16_to_float(load<uint16_t>(memory)), 0};
    case DataType::float32:
      return {type, load<float>(memory), 0};
    case DataType::float64:
      return {type, load<double>(memory), 0};
    default:
      not_computable(type);
  }
}

void store_scalar(void* memory, const Scalar& value) {
  switch (value.type) {
    case DataType::boolean:
      return store(memory, static_cast<uint8_t>(value.i != 0));
    case DataType::int8:
      return store(memory, static_cast<int8_t>(value.i));
    case DataType::int16:
      return store(memory, static_cast<int16_t>(value.i));
    case DataType::int32:
      return store(memory, static_cast<int32_t>(value.i));
    case DataType::int64:
      return store(memory, value.i);
    case DataType::uint8:
      return store(memory, static_cast<uint8_t>(value.i));
    case DataType::uint16:
      return store(memory, static_cast<uint16_t>(value.i));
    case DataType::uint32:
      return store(memory, static_cast<uint32_t>(value.i));
    case DataType::uint64:
      return store(memory, static_cast<uint64_t>(value.i));
    case DataType::bfloat16:
      return store(memory, double_to_bfloat16(value.f));
    case DataType::float16:
      return store(memory, double_to_float16(value.f));
    case DataType::float32:
      return store(memory, static_cast<float>(value.f));
    case DataType::float64:
      return store(memory, value.f);
    default:
      not_computable(value.type);
  }
}

}  // namespace fusewise
