// Tensors of plain numbers: row-major bytes with a type and a shape. What goes into and comes out of the
// interpreter, and what tests, sessions and the command line hand around.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "numerics/data_type.h"

namespace fusewise::graph {

// The product of the dimensions; UserError when one is negative or the product leaves 64 bits.
int64_t element_count(std::span<const int64_t> shape);
std::string to_string(std::span<const int64_t> shape);  // "[2, 3]"

// A value type: copies share their bytes, and writing makes a shared or borrowed tensor's bytes its own
// first. The C++ type of an element is the obvious one, uint8_t for boolean and uint16_t for the half types.
class Tensor {
 public:
  DataType element = DataType::undefined;
  std::vector<int64_t> shape;

  Tensor() = default;
  // Uninitialised memory of its own. UnsupportedError for element types without storage.
  Tensor(DataType element_type, std::vector<int64_t> tensor_shape);
  // Bytes that `owner` keeps alive, or, with a null owner, that the caller does. UserError when their number
  // is not what type and shape need.
  static Tensor borrow(DataType element_type, std::vector<int64_t> tensor_shape,
                       std::span<const std::byte> bytes, std::shared_ptr<const void> owner = nullptr);
  template <class T>
  static Tensor from(DataType element_type, std::vector<int64_t> tensor_shape, const std::vector<T>& values) {
    return copy_of(element_type, std::move(tensor_shape), std::as_bytes(std::span(values)));
  }
  static Tensor copy_of(DataType element_type, std::vector<int64_t> tensor_shape,
                        std::span<const std::byte> bytes);

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t count() const { return element_count(shape); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<std::byte> mutable_bytes();

  // The elements; T must have the element's size and the bytes its alignment (see aligned).
  template <class T>
  std::span<const T> as() const {
    check_access(sizeof(T), alignof(T));
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <class T>
  std::span<T> mutable_as() {
    const std::span<std::byte> memory = mutable_bytes();
    check_access(sizeof(T), alignof(T));
    return {reinterpret_cast<T*>(memory.data()), memory.size() / sizeof(T)};
  }

  // The same bytes, with another shape of the same element count.
  Tensor reshaped(std::vector<int64_t> new_shape) const;
  // This tensor, copied only when its bytes are not aligned to the element (a borrowed piece of a file).
  Tensor aligned() const;

 private:
  void check_access(size_t size, size_t alignment) const;

  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  bool own_ = false;  // owner_ is a buffer that this class allocated
};

}  // namespace fusewise::graph
