#include "session/files/tensor_proto.h"

#include <array>
#include <cstdint>
#include <string_view>

#include "base/mapped_file.h"
#include "export/onnx_builder.h"

namespace fusewise::session {
namespace {

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// Field numbers of TensorProto, and wire types.
constexpr uint64_t dims_field = 1, element_type_field = 2, name_field = 8, raw_data_field = 9;
constexpr uint64_t varint = 0, length_delimited = 2;

void append_key(std::string& out, uint64_t field, uint64_t wire_type) {
  append_varint(out, field << 3 | wire_type);
}

}  // namespace

void write_tensor_proto(const std::filesystem::path& path, const std::string& name,
                        const graph::Tensor& tensor) {
  std::string front;
  for (const int64_t extent : tensor.shape) {
    append_key(front, dims_field, varint);
    append_varint(front, static_cast<uint64_t>(extent));
  }
  append_key(front, element_type_field, varint);
  append_varint(front, static_cast<uint64_t>(onnx_element_type(tensor.element)));
  append_key(front, name_field, length_delimited);
  append_varint(front, name.size());
  front += name;
  append_key(front, raw_data_field, length_delimited);
  append_varint(front, tensor.bytes().size());
  const std::array<std::span<const std::byte>, 2> pieces = {std::as_bytes(std::span(front)), tensor.bytes()};
  write_file_atomically(path, pieces);
}

}  // namespace fusewise::session
