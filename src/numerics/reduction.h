// Reference reductions in the strict order of reduction_order.h, for interpreters and as the oracle of kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "numerics/reduction_order.h"
#include "numerics/scalar_op.h"

namespace fusewise {

// The result over no elements: 0, 1, and for max / min the least / greatest value of the type (infinite for floats).
template <class T>
T identity_of(Combine combine) {
  using Limits = std::numeric_limits<T>;
  switch (combine) {
    case Combine::sum:
      return T(0);
    case Combine::product:
      return T(1);
    case Combine::max:
      return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
    case Combine::min:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  throw InternalError("unknown way to combine");
}

// One step, as the scalar operations add, mul, max, min: integers wrap, NaN propagates, -0 < +0.
template <class T>
T combine_values(Combine combine, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Products of narrow types would be promoted to int and could overflow it.
    uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    if (combine == Combine::sum) return static_cast<T>(x + y);
    if (combine == Combine::product) return static_cast<T>(x * y);
    return combine == Combine::max ? std::max(a, b) : std::min(a, b);
  } else {
    if (combine == Combine::sum) return a + b;
    if (combine == Combine::product) return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) == (combine == Combine::max) ? b : a;
    return (a > b) == (combine == Combine::max) ? a : b;
  }
}

// Reduces get(0) ... get(count - 1), T being the accumulator's type.
template <class T, class Get>
T reduce_in_order(Combine combine, int64_t count, const Get& get, const ReductionOrder& order = {}) {
  check(order.lanes > 0 && order.block > 0 && order.block % order.lanes == 0 &&
            (order.lanes & (order.lanes - 1)) == 0,
        "a reduction's lanes are a power of two that divides its block");
  std::vector<T> lanes(static_cast<size_t>(order.lanes));
  std::vector<T> pending;  // completed groups of blocks, sizes as the bits of the number of blocks done
  int64_t blocks = 0;
  for (int64_t begin = 0; begin < count; begin += order.block, ++blocks) {
    int64_t length = std::min(order.block, count - begin);
    int64_t filled = std::min<int64_t>(length, order.lanes);
    for (int64_t i = 0; i < filled; ++i) {
      T first = static_cast<T>(get(begin + i));
      lanes[static_cast<size_t>(i)] =
          combine == Combine::sum ? combine_values<T>(combine, T(0), first) : first;
    }
    for (int64_t i = filled; i < length; ++i) {
      T& lane = lanes[static_cast<size_t>(i % order.lanes)];
      lane = combine_values<T>(combine, lane, static_cast<T>(get(begin + i)));
    }
    for (int64_t width = order.lanes / 2; width > 0; width /= 2)
      for (int64_t j = 0; j < width && j + width < filled; ++j)
        lanes[static_cast<size_t>(j)] =
            combine_values<T>(combine, lanes[static_cast<size_t>(j)], lanes[static_cast<size_t>(j + width)]);
    T value = lanes[0];
    for (int64_t bits = blocks; bits & 1; bits >>= 1) {
      value = combine_values<T>(combine, pending.back(), value);
      pending.pop_back();
    }
    pending.push_back(value);
  }
  if (pending.empty()) return identity_of<T>(combine);
  T result = pending.back();
  for (pending.pop_back(); !pending.empty(); pending.pop_back())
    result = combine_values<T>(combine, pending.back(), result);
  return result;
}

// The same over memory; `stride` is in elements.
template <class T>
T reduce_strided(Combine combine, const T* data, int64_t count, int64_t stride,
                 const ReductionOrder& order = {}) {
  return reduce_in_order<T>(combine, count, [&](int64_t i) { return data[i * stride]; }, order);
}

// The same over scalars of any computable type, in its accumulator's type and rounded back at the end. Booleans:
// sum and max are "any", product and min are "all".
Scalar reduce_scalars(Combine combine, DataType type, int64_t count,
                      const std::function<Scalar(int64_t)>& get, const ReductionOrder& order = {});

}  // namespace fusewise
