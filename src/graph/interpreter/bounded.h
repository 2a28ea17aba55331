// Reductions of numbers with a bound (numerics/error_bound.h) in any order.
#pragma once

#include <limits>

#include "numerics/error_bound.h"
#include "numerics/reduction_order.h"

namespace fusewise::graph {

inline constexpr double unknown = std::numeric_limits<double>::infinity();

// What n roundings of a type may multiply a number by, less 1, the double evaluation's own included; unknown
// when they are too many for a bound.
double accumulated(int64_t roundings, DataType type);

// Sum, product, maximum or minimum in the accumulator of `type`, with one rounding to it at the end.
class BoundedReduction {
 public:
  BoundedReduction(Combine combine, DataType type);
  void clear();
  void add(const Bounded& x);
  Bounded result() const;

 private:
  Bounded product() const;
  Bounded extreme() const;

  Combine combine_;
  DataType type_;
  BoundedSum sum_;
  int64_t count_ = 0;
  bool not_finite_ = false;  // an operand is an infinity or NaN
  bool exact_ = true;        // no operand has an error
  bool unknown_ = false;     // an operand's error is infinite
  double value_ = 0;
  double low_ = 0, high_ = 0;  // maximum and minimum: the interval
  double magnitude_ = 1,
         most_ = 1;       // products: of the factors' magnitudes, and of the greatest they may have
  double above_one_ = 1;  // products: what a partial product may reach
};

}  // namespace fusewise::graph
