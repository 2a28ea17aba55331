// What the functions share: their signature, and plain access to elements.
#pragma once

#include <cmath>
#include <type_traits>

#include "base/error.h"
#include "hostops/hostops.h"
#include "numerics/plain_type.h"
#include "numerics/scalar_op.h"

namespace fusewise::hostops {

struct Call {
  std::span<const Operand> operands;
  std::span<const int64_t> parameters;
  Receiver& receiver;
  Scratch& scratch;
};

#define FUNCTION(name, least, most, results) void name(const Call& call);
#include "hostops/functions.def"
#undef FUNCTION

int64_t count_of(std::span<const int64_t> shape);

// The half types, as floats.
struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};
inline float comparable(Float16 x) { return float16_to_float(x.bits); }
inline float comparable(Bfloat16 x) { return bfloat16_to_float(x.bits); }
template <class T>
T comparable(T x) {
  return x;
}

// The order of hostops.h: a strict weak order, in which only equal values are equivalent.
template <class T>
bool less(T a, T b) {
  const auto x = comparable(a), y = comparable(b);
  if constexpr (std::is_floating_point_v<std::remove_const_t<decltype(x)>>) {
    if (std::isnan(x)) return false;
    if (std::isnan(y)) return true;
  }
  return x < y;
}

// body(T()) with the C++ type of an element.
template <class Body>
void with_type(DataType type, const Body& body) {
  if (type == DataType::float16) return body(Float16{});
  if (type == DataType::bfloat16) return body(Bfloat16{});
  with_plain_type(type, body);
}

template <class T>
const T* elements(const Operand& operand) {
  return reinterpret_cast<const T*>(operand.data);
}
template <class T>
T* result(const Call& call, size_t index) {
  return reinterpret_cast<T*>(call.receiver.result(index));
}

}  // namespace fusewise::hostops
