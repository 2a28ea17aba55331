// The elements of constants as text.
#include <fmt/core.h>

#include <charconv>
#include <cstring>

#include "base/error.h"
#include "graph/shape_rules.h"
#include "graph/text_internal.h"
#include "numerics/scalar_op.h"

namespace fusewise::graph::text_internal {

namespace {

constexpr std::string_view bytes_mark = "bytes:";
constexpr std::string_view nan_mark = "nan:";
constexpr std::string_view hex_digits = "0123456789abcdef";

void print_float(std::string& out, const Scalar& value, uint64_t bits) {
  if (value.f != value.f)
    out += fmt::format("{}{:0{}x}", nan_mark, bits, bytes_of(value.type) * 2);
  else if (value.type == DataType::float64)
    out += fmt::format("{}", value.f);
  else
    out += fmt::format("{}", static_cast<float>(value.f));  // exact, and shorter
}

template <class T>
T parse_number(std::string_view word, int base = 10) {
  T value{};
  std::from_chars_result result{};
  if constexpr (std::is_floating_point_v<T>)
    result = std::from_chars(word.data(), word.data() + word.size(), value);
  else
    result = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (result.ec != std::errc() || result.ptr != word.data() + word.size())
    throw UserError(fmt::format("'{}' is not a number of the constant's type", word));
  return value;
}

uint64_t parse_integer(DataType type, std::string_view word) {
  const int bits = bits_of(type);
  const auto refuse = [&] {
    throw UserError(fmt::format("'{}' does not fit into the type {}", word, name_of(type)));
  };
  if (is_signed(type)) {
    const int64_t value = parse_number<int64_t>(word);
    if (bits < 64 && (value < -(int64_t{1} << (bits - 1)) || value >= int64_t{1} << (bits - 1))) refuse();
    return static_cast<uint64_t>(value);
  }
  const uint64_t value = parse_number<uint64_t>(word);
  if (type == DataType::boolean ? value > 1 : bits < 64 && value >> bits != 0) refuse();
  return value;
}

// The element's storage in the low bytes.
uint64_t parse_element(DataType type, std::string_view word) {
  if (!is_float(type)) return parse_integer(type, word);
  if (word.starts_with(nan_mark)) {
    const uint64_t bits = parse_number<uint64_t>(word.substr(nan_mark.size()), 16);
    if (bits_of(type) < 64 && bits >> bits_of(type) != 0)
      throw UserError(fmt::format("'{}' does not fit into the type {}", word, name_of(type)));
    return bits;
  }
  if (word.starts_with("nan") || word.starts_with("-nan"))
    throw UserError(fmt::format("'{}': a NaN is written as nan: and its bits", word));
  uint64_t bits = 0;
  if (type == DataType::float64) {
    const double value = parse_number<double>(word);
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
  const float value = parse_number<float>(word);
  Scalar scalar;
  scalar.type = type;
  scalar.f = static_cast<double>(type == DataType::float16    ? float16_to_float(float_to_float16(value))
                                 : type == DataType::bfloat16 ? bfloat16_to_float(float_to_bfloat16(value))
                                                              : value);
  store_scalar(&bits, scalar);
  return bits;
}

std::vector<std::byte> parse_bytes(const TensorType& type, std::string_view text) {
  std::vector<std::byte> bytes;
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  for (size_t i = 0; i < text.size(); i += 2) {
    const size_t high = hex_digits.find(text[i]);
    const size_t low = i + 1 < text.size() ? hex_digits.find(text[i + 1]) : std::string_view::npos;
    if (high == std::string_view::npos || low == std::string_view::npos)
      throw UserError("bytes: is followed by pairs of hexadecimal digits");
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  if (bits_of(type.element) != 0 && static_bytes(type) != static_cast<int64_t>(bytes.size()))
    throw UserError(fmt::format("{} needs {} bytes, and there are {}", to_string(type), static_bytes(type),
                                bytes.size()));
  return bytes;
}

}  // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const unsigned code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) {
      out += fmt::format("\\x{:02x}", code);
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string print_elements(const ConstantData& data) {
  const DataType type = data.type.element;
  std::string out;
  if (!is_computable(type)) {
    out = fmt::format(" {}", bytes_mark);
    for (const std::byte b : data.bytes) out += fmt::format("{:02x}", std::to_integer<unsigned>(b));
    return out;
  }
  const size_t size = static_cast<size_t>(bytes_of(type));
  for (size_t i = 0; i + size <= data.bytes.size(); i += size) {
    uint64_t bits = 0;
    std::memcpy(&bits, data.bytes.data() + i, size);
    const Scalar value = load_scalar(&bits, type);
    out += ' ';
    if (is_float(type))
      print_float(out, value, bits);
    else if (is_signed(type))
      out += fmt::format("{}", value.i);
    else
      out += fmt::format("{}", bits);
  }
  return out;
}

std::vector<std::byte> parse_elements(const TensorType& type, std::string_view text) {
  if (text.starts_with(bytes_mark)) return parse_bytes(type, text.substr(bytes_mark.size()));
  if (!is_computable(type.element))
    throw UserError(fmt::format("a constant of type {} is given as bytes:", name_of(type.element)));
  const size_t size = static_cast<size_t>(bytes_of(type.element));
  const int64_t count = static_count(type);
  std::vector<std::byte> bytes;
  int64_t found = 0;
  for (size_t begin = text.find_first_not_of(' '); begin != std::string_view::npos; ++found) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const uint64_t bits = parse_element(type.element, text.substr(begin, end - begin));
    const auto* first = reinterpret_cast<const std::byte*>(&bits);
    bytes.insert(bytes.end(), first, first + size);
    begin = text.find_first_not_of(' ', end);
  }
  if (found != count)
    throw UserError(fmt::format("{} has {} elements, and {} are given", to_string(type), count, found));
  return bytes;
}

}  // namespace fusewise::graph::text_internal
