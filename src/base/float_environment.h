// The floating-point control state that every kernel assumes: round to nearest, no flush-to-zero, no
// denormals-are-zero, no traps. A host program may run with another one (games and audio code do).
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace fusewise {

// Sets the default state and puts the caller's back at the end of the scope.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() : saved_(read()), changed_((saved_ & control_bits) != default_control) {
    if (changed_) write(default_control);
  }
  ~DefaultFloatEnvironment() {
    if (changed_) write(saved_);
  }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  // The low six bits of MXCSR only record what happened.
  static constexpr uint64_t control_bits = 0xFFC0;
  static constexpr uint64_t default_control = 0x1F80;
  static uint64_t read() { return _mm_getcsr(); }
  static void write(uint64_t value) { _mm_setcsr(static_cast<uint32_t>(value)); }
#elif defined(__aarch64__)
  static constexpr uint64_t control_bits = ~uint64_t{0};
  static constexpr uint64_t default_control = 0;
  static uint64_t read() {
    uint64_t value = 0;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(uint64_t value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
#error "the floating-point control register of this architecture is not known"
#endif

  uint64_t saved_;
  bool changed_;
};

}  // namespace fusewise
