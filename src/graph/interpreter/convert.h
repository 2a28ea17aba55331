// Between the storage types and the types that the loops compute in: float32 for the half types, unsigned
// integers (which wrap) for all integers, double for everything in the bounded interpreter.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/error.h"
#include "graph/interpreter/tensor.h"
#include "numerics/scalar_op.h"

namespace fusewise::graph {

// Sums and products over `element` wrap in: uint32, uint64, float32 or float64.
DataType contraction_type(DataType element);

// Each element in the wider type: integers extend by their own sign. Shares the bytes when there is nothing
// to do.
Tensor widened(const Tensor& tensor, DataType to);
// Back: floats round half to even, integers keep their low bits, to boolean is != 0.
Tensor narrowed(const Tensor& tensor, DataType to);

// For loops over pieces of arrays.
void load_floats(const std::byte* source, DataType type, int64_t count, float* target);
void store_floats(const float* source, int64_t count, DataType type, std::byte* target);

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

}  // namespace fusewise::graph
