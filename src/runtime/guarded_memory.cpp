#include "runtime/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace fusewise::runtime {
namespace {

constexpr std::byte margin_value{0xA5};
constexpr size_t alignment = 64;

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

GuardedMemory::GuardedMemory(size_t bytes, Side side)
    : page_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))), bytes_(bytes) {
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  const size_t inside = round_up(bytes, page_);
  mapped_ = inside + 2 * page_;
  void* memory = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(memory);
  std::byte* begin = mapping_ + page_;
  data_ = side == Side::before ? begin : begin + inside - round_up(bytes, alignment);
  if (inside == 0) return;
  if (::mprotect(begin, inside, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(mapping_, mapped_);
    throw std::bad_alloc();
  }
  std::fill(begin, data_, margin_value);
  std::fill(data_ + bytes_, begin + inside, margin_value);
}

GuardedMemory::~GuardedMemory() { ::munmap(mapping_, mapped_); }

void GuardedMemory::protect(bool read_only) {
  if (bytes_ == 0) return;
  if (::mprotect(mapping_ + page_, mapped_ - 2 * page_, read_only ? PROT_READ : PROT_READ | PROT_WRITE) != 0)
    throw std::bad_alloc();
}

bool GuardedMemory::margins_intact() const {
  const auto intact = [](std::byte value) { return value == margin_value; };
  return std::all_of(mapping_ + page_, data_, intact) &&
         std::all_of(data_ + bytes_, std::max(data_ + bytes_, mapping_ + mapped_ - page_), intact);
}

}  // namespace fusewise::runtime
