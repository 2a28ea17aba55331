#include "graph/interpreter/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "base/aligned_buffer.h"

namespace fusewise::graph {

namespace {

size_t storage_bytes(DataType type, std::span<const int64_t> shape) {
  const int bits = bits_of(type);
  if (bits == 0) {
    throw UnsupportedError(fmt::format("not supported yet: tensors of element type {}", name_of(type)));
  }
  const int64_t count = element_count(shape);
  int64_t total = 0;
  if (__builtin_mul_overflow(count, int64_t{bits}, &total) ||
      __builtin_add_overflow(total, int64_t{7}, &total)) {
    throw UserError(fmt::format("a tensor of shape {} is too large", to_string(shape)));
  }
  return static_cast<size_t>(total / 8);
}

}  // namespace

int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  bool overflow = false;
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) throw UserError(fmt::format("a dimension of shape {} is negative", to_string(shape)));
    empty = empty || dim == 0;
    if (!empty) overflow = overflow || __builtin_mul_overflow(count, dim, &count);
  }
  if (empty) return 0;
  if (overflow) throw UserError(fmt::format("a tensor of shape {} is too large", to_string(shape)));
  return count;
}

std::string to_string(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Tensor::Tensor(DataType element_type, std::vector<int64_t> tensor_shape)
    : element(element_type), shape(std::move(tensor_shape)), own_(true) {
  auto buffer = std::make_shared<AlignedBuffer>(storage_bytes(element, shape));
  bytes_ = buffer->bytes();
  owner_ = std::move(buffer);
}

Tensor Tensor::borrow(DataType element_type, std::vector<int64_t> tensor_shape,
                      std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.size() != storage_bytes(element_type, tensor_shape)) {
    throw UserError(fmt::format("a tensor {}{} needs {} bytes of data, not {}", name_of(element_type),
                                to_string(tensor_shape), storage_bytes(element_type, tensor_shape),
                                bytes.size()));
  }
  Tensor result;
  result.element = element_type;
  result.shape = std::move(tensor_shape);
  result.bytes_ = bytes;
  result.owner_ = std::move(owner);
  return result;
}

Tensor Tensor::copy_of(DataType element_type, std::vector<int64_t> tensor_shape,
                       std::span<const std::byte> bytes) {
  const Tensor source = borrow(element_type, std::move(tensor_shape), bytes);
  Tensor result(source.element, source.shape);
  if (!bytes.empty()) std::memcpy(result.mutable_bytes().data(), bytes.data(), bytes.size());
  return result;
}

std::span<std::byte> Tensor::mutable_bytes() {
  if (!own_ || owner_.use_count() > 1) *this = copy_of(element, shape, bytes_);
  // The buffer was allocated here and nobody else holds it.
  return {const_cast<std::byte*>(bytes_.data()), bytes_.size()};
}

Tensor Tensor::reshaped(std::vector<int64_t> new_shape) const {
  if (element_count(new_shape) != count()) {
    throw UserError(
        fmt::format("a tensor of shape {} cannot be reshaped to {}", to_string(shape), to_string(new_shape)));
  }
  Tensor result = *this;
  result.shape = std::move(new_shape);
  return result;
}

Tensor Tensor::aligned() const {
  const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
  const size_t alignment = bits_of(element) <= 8 ? 1 : static_cast<size_t>(bits_of(element)) / 8;
  return address % alignment == 0 ? *this : copy_of(element, shape, bytes_);
}

void Tensor::check_access(size_t size, size_t alignment) const {
  check(bits_of(element) == static_cast<int>(size) * 8, "a tensor is read as elements of another size");
  check(reinterpret_cast<uintptr_t>(bytes_.data()) % alignment == 0, "a tensor's bytes are not aligned");
}

}  // namespace fusewise::graph
