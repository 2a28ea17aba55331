// From an element type to the C++ type that stores it, for loops over arrays.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "numerics/data_type.h"

namespace fusewise {

// f(value of the C++ type that stores `element`), the half types excepted.
template <class F>
auto with_plain_type(DataType element, F&& f) {
  switch (element) {
    case DataType::boolean:
    case DataType::uint8:
      return f(uint8_t{});
    case DataType::uint16:
      return f(uint16_t{});
    case DataType::uint32:
      return f(uint32_t{});
    case DataType::uint64:
      return f(uint64_t{});
    case DataType::int8:
      return f(int8_t{});
    case DataType::int16:
      return f(int16_t{});
    case DataType::int32:
      return f(int32_t{});
    case DataType::int64:
      return f(int64_t{});
    case DataType::float32:
      return f(float{});
    case DataType::float64:
      return f(double{});
    default:
      throw InternalError("a type that no loop computes in");
  }
}

}  // namespace fusewise
