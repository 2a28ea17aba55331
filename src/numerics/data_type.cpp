#include "numerics/data_type.h"

#include <array>

#include "base/error.h"

namespace fusewise {
namespace {

enum class Family : uint8_t { other, signed_integer, unsigned_integer, floating };

struct Row {
  DataType type;
  std::string_view name;
  int bits;
  Family family;
  bool computable;
};

constexpr std::array<Row, 25> rows = {{
    {DataType::undefined, "undefined", 0, Family::other, false},
    {DataType::boolean, "boolean", 8, Family::other, true},
    {DataType::int4, "int4", 4, Family::signed_integer, false},
    {DataType::int8, "int8", 8, Family::signed_integer, true},
    {DataType::int16, "int16", 16, Family::signed_integer, true},
    {DataType::int32, "int32", 32, Family::signed_integer, true},
    {DataType::int64, "int64", 64, Family::signed_integer, true},
    {DataType::uint4, "uint4", 4, Family::unsigned_integer, false},
    {DataType::uint8, "uint8", 8, Family::unsigned_integer, true},
    {DataType::uint16, "uint16", 16, Family::unsigned_integer, true},
    {DataType::uint32, "uint32", 32, Family::unsigned_integer, true},
    {DataType::uint64, "uint64", 64, Family::unsigned_integer, true},
    {DataType::float4e2m1, "float4e2m1", 4, Family::floating, false},
    {DataType::float8e4m3fn, "float8e4m3fn", 8, Family::floating, false},
    {DataType::float8e4m3fnuz, "float8e4m3fnuz", 8, Family::floating, false},
    {DataType::float8e5m2, "float8e5m2", 8, Family::floating, false},
    {DataType::float8e5m2fnuz, "float8e5m2fnuz", 8, Family::floating, false},
    {DataType::float8e8m0, "float8e8m0", 8, Family::floating, false},
    {DataType::bfloat16, "bfloat16", 16, Family::floating, true},
    {DataType::float16, "float16", 16, Family::floating, true},
    {DataType::float32, "float32", 32, Family::floating, true},
    {DataType::float64, "float64", 64, Family::floating, true},
    {DataType::complex64, "complex64", 64, Family::other, false},
    {DataType::complex128, "complex128", 128, Family::other, false},
    {DataType::string, "string", 0, Family::other, false},
}};

constexpr bool rows_follow_the_enumeration() {
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].type != static_cast<DataType>(i)) return false;
  return static_cast<size_t>(DataType::string) + 1 == rows.size();
}
static_assert(rows_follow_the_enumeration());

const Row& row_of(DataType type) {
  check(static_cast<size_t>(type) < rows.size(), "data type out of range");
  return rows[static_cast<size_t>(type)];
}

}  // namespace

int bits_of(DataType type) { return row_of(type).bits; }

int bytes_of(DataType type) {
  int bits = row_of(type).bits;
  check(bits >= 8, std::string("elements of type ") + std::string(name_of(type)) + " have no size in bytes");
  return bits / 8;
}

std::string_view name_of(DataType type) { return row_of(type).name; }

std::optional<DataType> data_type_of(std::string_view name) {
  for (const Row& row : rows)
    if (row.name == name) return row.type;
  return std::nullopt;
}

bool is_float(DataType type) { return row_of(type).family == Family::floating; }

bool is_integer(DataType type) {
  Family family = row_of(type).family;
  return family == Family::signed_integer || family == Family::unsigned_integer;
}

bool is_signed(DataType type) {
  Family family = row_of(type).family;
  return family == Family::signed_integer || family == Family::floating;
}

bool is_computable(DataType type) { return row_of(type).computable; }

DataType accumulator_of(DataType type) { return arithmetic_type_of(type); }

DataType arithmetic_type_of(DataType type) {
  return type == DataType::float16 || type == DataType::bfloat16 ? DataType::float32 : type;
}

}  // namespace fusewise
