// Between the storage types and the types that the loops compute in: float32 for the half types, unsigned
// integers (which wrap) for all integers, double for everything in the bounded interpreter.
#pragma once

#include <cstdint>
#include <type_traits>

#include "graph/interpreter/tensor.h"
#include "numerics/plain_type.h"
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

}  // namespace fusewise::graph
