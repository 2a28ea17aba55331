// Boxes of elements as kernel expressions: what a stage must compute at a place in the loop nest.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"

namespace fusewise::schedule {

// The number of elements along one axis.
struct Extent {
  std::optional<int64_t> exact;  // known at compile time
  kernel::ExprId value = kernel::none;
  std::optional<int64_t> bound;               // a constant that it never exceeds
  kernel::ExprId bound_value = kernel::none;  // the same as an expression over parameters, for allocations
  int64_t multiple = 1;                       // it is a multiple of this
  bool masked = false;  // a vector axis whose loop has `bound` steps, the rest masked off
};

struct BoxDim {
  kernel::ExprId low = kernel::none;
  Extent extent;
  bool inside = false;  // known to lie within the value
  // A thread's tile of constant extent may stick out: elements from here on do not exist. None: all do.
  kernel::ExprId end = kernel::none;
};

using Box = std::vector<BoxDim>;

// An axis of a linear index: how far it runs, and its coefficient there.
struct SweptAxis {
  Extent extent;
  int64_t coefficient = 1;
};

Extent exact_extent(kernel::Builder& builder, int64_t extent);
// A run-time extent; folds to an exact one when the expression is a constant.
Extent extent_of(kernel::Builder& builder, kernel::ExprId value, std::optional<int64_t> bound,
                 kernel::ExprId bound_value, int64_t multiple);

// From the least to the greatest value of a linear index over the axes: 1 + sum of |coefficient| * (extent - 1), or
// nothing where an axis has no element.
Extent swept_extent(kernel::Builder& builder, const std::vector<SweptAxis>& axes);

// The smallest box that holds both; `domain` bounds the extent when nothing better is known.
BoxDim hull(kernel::Builder& builder, const BoxDim& a, const BoxDim& b, const Extent& domain);
// The part of the box within [0, domain).
BoxDim clamp_to(kernel::Builder& builder, const BoxDim& box, kernel::ExprId domain);

}  // namespace fusewise::schedule
