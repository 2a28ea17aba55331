// The combining operations of reductions and windows, on plain numbers.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "numerics/reduction_order.h"

namespace fusewise::graph {

// A NaN operand gives NaN; -0 is less than +0.
template <class T>
T greater_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) return std::signbit(a) ? b : a;
    if (a > b) return a;
    return b > a ? b : std::numeric_limits<T>::quiet_NaN();
  } else {
    return a < b ? b : a;
  }
}

template <class T>
T lesser_of(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) return std::signbit(a) ? a : b;
    if (a < b) return a;
    return b < a ? b : std::numeric_limits<T>::quiet_NaN();
  } else {
    return b < a ? b : a;
  }
}

// Integer sums and products wrap.
template <class T, Combine combine>
T combined(T a, T b) {
  if constexpr (combine == Combine::max) {
    return greater_of(a, b);
  } else if constexpr (combine == Combine::min) {
    return lesser_of(a, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    return combine == Combine::sum ? a + b : a * b;
  } else {
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(combine == Combine::sum ? x + y : x * y);
  }
}

// What a combination starts from and an empty one gives.
template <class T, Combine combine>
constexpr T start_of() {
  using limits = std::numeric_limits<T>;
  if (combine == Combine::sum) return T(0);
  if (combine == Combine::product) return T(1);
  if (combine == Combine::max) return limits::has_infinity ? -limits::infinity() : limits::lowest();
  return limits::has_infinity ? limits::infinity() : limits::max();
}

// f(std::integral_constant<Combine, combine>).
template <class F>
auto with_combine(Combine combine, F&& f) {
  switch (combine) {
    case Combine::sum:
      return f(std::integral_constant<Combine, Combine::sum>{});
    case Combine::product:
      return f(std::integral_constant<Combine, Combine::product>{});
    case Combine::max:
      return f(std::integral_constant<Combine, Combine::max>{});
    case Combine::min:
      break;
  }
  return f(std::integral_constant<Combine, Combine::min>{});
}

}  // namespace fusewise::graph
