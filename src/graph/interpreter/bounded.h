// Reductions of numbers with a bound (numerics/error_bound.h) in any order.
#pragma once

#include <limits>

#include "numerics/error_bound.h"
#include "numerics/reduction_order.h"

namespace fusewise::graph {

inline constexpr double unknown = std::numeric_limits<double>::infinity();

// How errors of many terms add up.
//   worst_case  all with the same sign: a proof, but one that grows by the sum of a layer's weights, and so
//               says nothing after a few layers of a deep network
//   probable    in contractions and sums as independent errors of either sign do, by the root of the sum of
//               their squares; roundings by the root of their number, four times over. No proof, yet far above
//               what is observed unless something is wrong
enum class ErrorModel : uint8_t { worst_case, probable };

// What n roundings of a type may multiply a number by, less 1, the double evaluation's own included; unknown
// when they are too many for a bound.
double accumulated(int64_t roundings, DataType type, ErrorModel model);

// Sum, product, maximum or minimum in the accumulator of `type`, with one rounding to it at the end.
class BoundedReduction {
 public:
  BoundedReduction(Combine combine, DataType type, ErrorModel model);
  void clear();
  void add(const Bounded& x);
  Bounded result() const;

 private:
  Bounded sum() const;
  Bounded product() const;
  Bounded extreme() const;

  Combine combine_;
  DataType type_;
  ErrorModel model_;
  BoundedSum sum_;
  int64_t count_ = 0;
  bool not_finite_ = false;  // an operand is an infinity or NaN
  bool exact_ = true;        // no operand has an error
  bool unknown_ = false;     // an operand's error is infinite
  double value_ = 0;
  double low_ = 0, high_ = 0;  // maximum and minimum: the interval
  double magnitude_ = 1,
         most_ = 1;  // products: of the factors' magnitudes, and of the greatest they may have
  double squares_ = 0, sum_of_magnitudes_ = 0;  // probable sums: of the errors
  double above_one_ = 1, below_one_ = 1;        // products: the most and the least that a part may be
};

}  // namespace fusewise::graph
