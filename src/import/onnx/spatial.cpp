#include "import/onnx/spatial.h"

#include <fmt/core.h>

#include <algorithm>

namespace fusewise::onnx {

namespace {

std::vector<int64_t> list_or(Call& c, std::string_view name, size_t count, int64_t otherwise, int64_t least) {
  auto given = c.integer_list(name);
  if (!given || given->empty()) return std::vector<int64_t>(count, otherwise);
  if (given->size() != count)
    c.fail(fmt::format("attribute '{}' has {} entries instead of {}", name, given->size(), count));
  for (int64_t v : *given) {
    if (v < least || v > INT32_MAX) c.fail(fmt::format("attribute '{}' holds {}", name, v));
  }
  return *given;
}

int64_t reach(const Spatial& s, size_t d) { return (s.kernel[d] - 1) * s.dilations[d] + 1; }

// As many positions as the extent divided by the stride, rounded up; the odd element goes to the end (or
// front).
void same_padding(Call& c, const Shape& shape, Spatial& s, bool upper) {
  for (size_t d = 0; d < s.rank(); ++d) {
    const Dim extent = shape[d + 2], stride = s.strides[d];
    const Dim total = max((ceil_div(extent, stride) - 1) * stride + Dim(reach(s, d)) - extent, 0);
    if (!total.is_constant()) c.unsupported("auto_pad whose padding depends on the shapes");
    s.pad_low[d] = upper ? total.value() / 2 : total.value() - total.value() / 2;
    s.pad_high[d] = total.value() - s.pad_low[d];
  }
}

}  // namespace

bool Spatial::is_padded() const {
  return std::ranges::any_of(pad_low, [](int64_t p) { return p != 0; }) ||
         std::ranges::any_of(pad_high, [](int64_t p) { return p != 0; });
}

Spatial spatial_of(Call& c, const Shape& shape, std::vector<int64_t> kernel) {
  Spatial s;
  s.kernel = std::move(kernel);
  const size_t n = s.rank();
  if (shape.size() != n + 2) {
    c.fail(fmt::format("an operand of rank {} does not fit a window of {} dimensions", shape.size(), n));
  }
  for (int64_t k : s.kernel)
    if (k < 1 || k > INT32_MAX) c.fail(fmt::format("the window has a dimension of {}", k));
  s.strides = list_or(c, "strides", n, 1, 1);
  s.dilations = list_or(c, "dilations", n, 1, 1);
  const std::vector<int64_t> pads = list_or(c, "pads", 2 * n, 0, INT32_MIN);
  s.pad_low.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
  s.pad_high.assign(pads.begin() + static_cast<std::ptrdiff_t>(n), pads.end());
  const std::string_view automatic = c.string("auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    same_padding(c, shape, s, automatic == "SAME_UPPER");
  } else if (automatic == "VALID") {
    s.pad_low.assign(n, 0);
    s.pad_high.assign(n, 0);
  } else if (automatic != "NOTSET" && !automatic.empty()) {
    c.fail(fmt::format("auto_pad '{}' is unknown", automatic));
  }
  return s;
}

std::vector<int64_t> round_positions_up(Call& c, const Shape& shape, Spatial& s) {
  std::vector<int64_t> added(s.rank(), 0);
  for (size_t d = 0; d < s.rank(); ++d) {
    const Dim rest = shape[d + 2] + Dim(s.pad_low[d] + s.pad_high[d] - reach(s, d));
    const Dim extra = (ceil_div(rest, s.strides[d]) - floor_div(rest, s.strides[d])) * Dim(s.strides[d]);
    if (extra.is(0)) continue;
    if (!rest.is_constant()) c.unsupported("ceil_mode over a dimension that depends on the shapes");
    // A window that would begin in the padding behind the operand is left out.
    const int64_t begin = ceil_div(rest, s.strides[d]).value() * s.strides[d];
    if (begin >= shape[d + 2].value() + s.pad_low[d]) continue;
    added[d] = begin - rest.value();
    s.pad_high[d] += added[d];
  }
  return added;
}

}  // namespace fusewise::onnx
