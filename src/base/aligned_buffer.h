// Uninitialised memory that starts at a cache line; a large piece starts at a huge page and asks for them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace fusewise {

class AlignedBuffer {
 public:
  static constexpr size_t alignment = 64;
  static constexpr size_t huge_page = size_t{2} << 20;
  static constexpr size_t huge_page_threshold = size_t{4} << 20;

  AlignedBuffer() = default;
  // Throws std::bad_alloc when the memory is not to be had. Size 0 allocates nothing.
  explicit AlignedBuffer(size_t size) : data_(allocate(size)), size_(size) {}
  ~AlignedBuffer() { std::free(data_); }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<std::byte> bytes() { return {data_, size_}; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // The memory as elements of T; bytes of a last incomplete element are left out.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }
  template <class T>
    requires std::is_trivially_copyable_v<T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

 private:
  static std::byte* allocate(size_t size) {
    if (size == 0) return nullptr;
    const bool huge = size >= huge_page_threshold;
    const size_t unit = huge ? huge_page : alignment;
    if (size > SIZE_MAX - unit) throw std::bad_alloc();
    const size_t rounded = (size + unit - 1) / unit * unit;
    void* memory = std::aligned_alloc(unit, rounded);
    if (!memory) throw std::bad_alloc();
    // Only a hint: without huge pages everything works, with more misses of the address cache.
    if (huge) ::madvise(memory, rounded, MADV_HUGEPAGE);
    return static_cast<std::byte*>(memory);
  }

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace fusewise
