// Arithmetic on index constants (wrapping) and on bounds (where the limits of int64_t stand for infinity).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernel/kernel.h"

namespace fusewise::kernel {

inline constexpr int64_t lowest = std::numeric_limits<int64_t>::min();
inline constexpr int64_t highest = std::numeric_limits<int64_t>::max();

inline int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Arithmetic on bounds, where the limits stand for infinity.
inline bool infinite(int64_t a) { return a == lowest || a == highest; }
__extension__ using Wide = __int128;
inline int64_t clamp(Wide value) {
  if (value <= lowest) return lowest;
  if (value >= highest) return highest;
  return static_cast<int64_t>(value);
}
inline int64_t bound_add(int64_t a, int64_t b) {
  if (infinite(a)) return a;
  if (infinite(b)) return b;
  return clamp(static_cast<Wide>(a) + b);
}
inline int64_t bound_mul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a < 0) == (b < 0) ? highest : lowest;
  return clamp(static_cast<Wide>(a) * b);
}

inline Range range_add(const Range& a, const Range& b) {
  return {bound_add(a.low, b.low), bound_add(a.high, b.high)};
}

inline Range range_mul(const Range& a, const Range& b) {
  const auto [low, high] = std::minmax({bound_mul(a.low, b.low), bound_mul(a.low, b.high),
                                        bound_mul(a.high, b.low), bound_mul(a.high, b.high)});
  return {low, high};
}

}  // namespace fusewise::kernel
