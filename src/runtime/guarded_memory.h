// Memory whose neighbouring pages may not be touched: an access beyond the end (or before the start) ends the
// process at the instruction that makes it. A debugging aid.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fusewise::runtime {

class GuardedMemory {
 public:
  enum class Side : uint8_t {
    before,
    after
  };  // where the forbidden page is as near as the alignment of 64 allows

  GuardedMemory(size_t bytes, Side side);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  void protect(bool read_only);
  // Whether the bytes of the accessible pages that do not belong to the buffer are as they were made.
  bool margins_intact() const;

 private:
  std::byte* mapping_ = nullptr;
  size_t mapped_ = 0;
  size_t page_ = 0;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace fusewise::runtime
