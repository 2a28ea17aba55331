// How large the members of a region are at the usual values of the symbols; what the choosers of trees and tiles share.
#pragma once

#include "schedule/footprint.h"
#include "schedule/region_forms.h"

namespace fusewise::fusion {

class UsualSizes {
 public:
  UsualSizes(const schedule::RegionForms& region, const SymbolValues& values)
      : region_(region), values_(values) {}

  int64_t extent(graph::NodeId node, int axis) const {
    return schedule::usual_value(region_.form(node).axes[static_cast<size_t>(axis)].extent, values_);
  }
  int64_t element_count(graph::NodeId node) const {
    int64_t n = 1;
    for (int a = 0; a < region_.form(node).parallel_axes(); ++a) n *= extent(node, a);
    return n;
  }
  int64_t reduction_elements(graph::NodeId node) const {
    const graph::Form& form = region_.form(node);
    int64_t n = 1;
    for (size_t a = 0; a < form.axes.size(); ++a)
      if (form.axes[a].reduction) n *= extent(node, static_cast<int>(a));
    return n;
  }

 private:
  const schedule::RegionForms& region_;
  const SymbolValues& values_;
};

}  // namespace fusewise::fusion
