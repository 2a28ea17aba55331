#include "schedule/lower/boxes.h"

#include <algorithm>

namespace fusewise::schedule {

using kernel::Builder;
using kernel::ExprId;

Extent exact_extent(Builder& builder, int64_t extent) {
  Extent e;
  e.exact = e.bound = extent;
  e.value = e.bound_value = builder.integer(extent);
  e.multiple = std::max<int64_t>(extent, 1);
  return e;
}

Extent extent_of(Builder& builder, ExprId value, std::optional<int64_t> bound, ExprId bound_value,
                 int64_t multiple) {
  if (const auto constant = builder.constant_value(value)) {
    Extent e = exact_extent(builder, *constant);
    return e;
  }
  Extent e;
  e.value = value;
  e.bound = bound;
  e.bound_value = bound ? builder.integer(*bound) : bound_value;
  e.multiple = multiple;
  return e;
}

Extent swept_extent(Builder& builder, const std::vector<SweptAxis>& axes) {
  const ExprId one = builder.integer(1);
  std::optional<int64_t> exact = 1, bound = 1;
  ExprId value = one, bound_value = one;
  for (const auto& [axis, coefficient] : axes) {
    if (axis.bound == 0) return exact_extent(builder, 0);
    const int64_t magnitude = std::abs(coefficient);
    const auto add = [&](const std::optional<int64_t>& sum, const std::optional<int64_t>& extent) {
      return sum && extent ? std::optional(*sum + magnitude * (*extent - 1)) : std::nullopt;
    };
    const auto add_value = [&](ExprId sum, ExprId extent) {
      return builder.add(sum, builder.mul(builder.integer(magnitude), builder.sub(extent, one)));
    };
    exact = add(exact, axis.exact);
    bound = add(bound, axis.bound);
    value = add_value(value, axis.value);
    bound_value = add_value(bound_value, axis.bound ? builder.integer(*axis.bound) : axis.bound_value);
  }
  if (exact) return exact_extent(builder, *exact);
  // An axis that may have no element bounds nothing below that.
  return extent_of(builder, value, bound, builder.max(bound_value, builder.integer(0)), 1);
}

namespace {

bool is_empty(const BoxDim& box) { return box.extent.exact == 0; }

bool same(const Extent& a, const Extent& b) { return a.value == b.value; }

}  // namespace

BoxDim hull(Builder& builder, const BoxDim& a, const BoxDim& b, const Extent& domain) {
  if (is_empty(a)) return b;
  if (is_empty(b)) return a;
  BoxDim result;
  result.inside = a.inside && b.inside;
  if (a.end == b.end) result.end = a.end;
  if (a.low == b.low && same(a.extent, b.extent)) {
    result.low = a.low;
    result.extent = a.extent;
    return result;
  }
  const auto distance = builder.constant_value(builder.sub(b.low, a.low));
  if (distance && a.extent.exact && b.extent.exact) {
    result.low = *distance >= 0 ? a.low : b.low;
    const int64_t begin = std::min<int64_t>(0, *distance);
    const int64_t end = std::max(*a.extent.exact, *distance + *b.extent.exact);
    result.extent = exact_extent(builder, end - begin);
    return result;
  }
  result.low = builder.min(a.low, b.low);
  ExprId end = builder.max(builder.add(a.low, a.extent.value), builder.add(b.low, b.extent.value));
  const ExprId reached = end;
  if (result.inside) end = builder.min(end, domain.value);
  std::optional<int64_t> span;
  if (distance && a.extent.bound && b.extent.bound)
    span = std::max(*a.extent.bound, *distance + *b.extent.bound) - std::min<int64_t>(0, *distance);
  ExprId extent = builder.sub(end, result.low);
  // An empty box may lie behind the domain's end, and two of them begin there.
  if (end != reached) extent = builder.max(extent, builder.integer(0));
  result.extent = extent_of(builder, extent, span, kernel::none, 1);
  if (result.extent.exact || (span && !result.inside)) return result;
  // The domain bounds what lies inside it; a hull that may stick out is cut to it.
  if (!result.inside) result = clamp_to(builder, result, domain.value);
  if (result.extent.exact) return result;
  result.extent.bound = domain.bound;
  result.extent.bound_value = domain.bound_value;
  if (span && (!domain.bound || *span < *domain.bound)) {
    result.extent.bound = span;
    result.extent.bound_value = builder.integer(*span);
  }
  return result;
}

BoxDim clamp_to(Builder& builder, const BoxDim& box, ExprId domain) {
  if (box.inside) return box;
  BoxDim result;
  const ExprId zero = builder.integer(0);
  result.low = builder.max(box.low, zero);
  const ExprId end = builder.min(builder.add(box.low, box.extent.value), domain);
  const ExprId extent = builder.max(builder.sub(end, result.low), zero);
  result.inside = true;
  if (result.low == box.low && extent == box.extent.value) {
    result.extent = box.extent;
    return result;
  }
  result.extent = extent_of(builder, extent, box.extent.bound, box.extent.bound_value, 1);
  return result;
}

}  // namespace fusewise::schedule
