// Element types: every type that an ONNX tensor can have, with its place even where nothing computes in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fusewise {

// Sorted by family. `boolean` is stored as one byte, 0 or 1. Sub-byte types are packed two (or four) to a byte.
enum class DataType : uint8_t {
  undefined,
  boolean,
  int4,
  int8,
  int16,
  int32,
  int64,
  uint4,
  uint8,
  uint16,
  uint32,
  uint64,
  float4e2m1,
  float8e4m3fn,
  float8e4m3fnuz,
  float8e5m2,
  float8e5m2fnuz,
  float8e8m0,
  bfloat16,
  float16,
  float32,
  float64,
  complex64,
  complex128,
  string,
};

// Storage in bits; 0 for undefined and string.
int bits_of(DataType type);
// Storage of one element in bytes; check fails for sub-byte types and for strings.
int bytes_of(DataType type);
std::string_view name_of(DataType type);  // "float32", "boolean", ...
std::optional<DataType> data_type_of(std::string_view name);
bool is_float(DataType type);    // float4 to float64
bool is_integer(DataType type);  // int4 to uint64, not boolean
bool is_signed(DataType type);   // signed integers and all floats
// True for the types that the interpreter and the kernels compute in: boolean, 8- to 64-bit integers,
// float16, bfloat16, float32, float64.
bool is_computable(DataType type);
// The type in which a sum over elements of `type` is accumulated: float32 for the half types, otherwise itself.
DataType accumulator_of(DataType type);
// The type in which an elementwise function over `type` is evaluated before its result is rounded back:
// float32 for float16 and bfloat16, otherwise the type itself.
DataType arithmetic_type_of(DataType type);

}  // namespace fusewise
