#include "session/files/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/mapped_file.h"
#include "graph/interpreter/strided.h"
#include "session/files/npy_header.h"

namespace fusewise::session {
namespace {

using graph::Tensor;

constexpr std::string_view magic = "\x93NUMPY";

// The header's text and where the data begins.
std::pair<std::string_view, size_t> split(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(magic)) throw UserError("it is no .npy file");
  if (text.size() < 10) throw UserError("it is cut short within its header");
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3)
    throw UnsupportedError(fmt::format("its format version {} is not known", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (text.size() < 8 + length_bytes) throw UserError("it is cut short within its header");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    length |= size_t{static_cast<unsigned char>(text[8 + i])} << (8 * i);
  const size_t begin = 8 + length_bytes;
  if (length > text.size() - begin) throw UserError("it is cut short within its header");
  return {text.substr(begin, length), begin + length};
}

void swap_bytes(std::span<std::byte> bytes, size_t unit) {
  for (size_t at = 0; at + unit <= bytes.size(); at += unit) std::reverse(&bytes[at], &bytes[at] + unit);
}

// Numbers of a complex element are swapped one by one.
size_t swap_unit(DataType type) {
  const auto size = static_cast<size_t>(bytes_of(type));
  return type == DataType::complex64 || type == DataType::complex128 ? size / 2 : size;
}

Tensor in_row_major_order(const Tensor& columns_first) {
  std::vector<int> reversed(columns_first.shape.size());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return graph::transposed(columns_first, reversed);
}

Tensor parse(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  const auto [text, begin] = split(bytes);
  const NpyHeader header = parse_npy_header(text);
  const int64_t count = graph::element_count(header.shape);
  const std::span<const std::byte> data = bytes.subspan(begin);
  const auto size = static_cast<uint64_t>(bytes_of(header.type));
  if (static_cast<uint64_t>(count) > data.size() / size)
    throw UserError(
        fmt::format("it is cut short: {} elements of {} bytes are announced and {} bytes are there", count,
                    size, data.size()));
  const size_t used = static_cast<size_t>(count) * size;
  if (used != data.size())
    throw UserError(fmt::format("{} bytes follow its last element", data.size() - used));
  std::vector<int64_t> shape = header.shape;
  if (header.fortran_order) std::reverse(shape.begin(), shape.end());
  Tensor tensor = Tensor::borrow(header.type, shape, data, std::move(owner));
  if (header.big_endian && size > 1) swap_bytes(tensor.mutable_bytes(), swap_unit(header.type));
  if (header.type == DataType::boolean) {
    // Any other byte than 0 counts as true for NumPy.
    for (std::byte& value : tensor.mutable_bytes())
      value = value == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  return header.fortran_order ? in_row_major_order(tensor.aligned()) : tensor.aligned();
}

std::string header_of(DataType type, const std::vector<int64_t>& shape) {
  std::string dims = fmt::format("{}", fmt::join(shape, ", "));
  if (shape.size() == 1) dims += ",";
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", npy_descriptor(type), dims);
  // The data starts at a multiple of 64 bytes.
  constexpr size_t prefix = 10;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';
  check(text.size() < 0x10000, "the header of a .npy file");
  std::string header(magic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace

Tensor parse_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                 const std::string& what) {
  try {
    return parse(bytes, std::move(owner));
  } catch (const UserError& error) {
    throw UserError(fmt::format("{} cannot be read: {}", what, error.what()), {.file = what});
  } catch (const UnsupportedError& error) {
    throw UserError(fmt::format("{} cannot be read: {}", what, error.what()), {.file = what});
  }
}

Tensor read_npy(const std::filesystem::path& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  return parse_npy(file->bytes(), file, path.string());
}

DataType npy_type(DataType type) {
  switch (type) {
    case DataType::bfloat16:
      return DataType::uint16;
    case DataType::float8e4m3fn:
    case DataType::float8e4m3fnuz:
    case DataType::float8e5m2:
    case DataType::float8e5m2fnuz:
    case DataType::float8e8m0:
      return DataType::uint8;
    default:
      break;
  }
  npy_descriptor(type);
  return type;
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  const std::string header = header_of(npy_type(tensor.element), tensor.shape);
  const std::array<std::span<const std::byte>, 2> pieces = {std::as_bytes(std::span(header)), tensor.bytes()};
  write_file_atomically(path, pieces);
}

}  // namespace fusewise::session
