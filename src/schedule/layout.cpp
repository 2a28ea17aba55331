#include "schedule/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"

namespace fusewise::schedule {

bool Layout::is_row_major() const {
  if (!blocks.empty() || !strides.empty()) return false;
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int>(i)) return false;
  return true;
}

int Layout::innermost() const {
  if (!blocks.empty()) return blocks.back().dim;
  if (order.empty() || (!strides.empty() && !strides[static_cast<size_t>(order.back())].is(1))) return -1;
  return order.back();
}

std::string Layout::to_string() const {
  if (blocks.empty() && std::is_sorted(order.begin(), order.end())) return "row";
  std::string text;
  for (size_t i = 0; i < order.size(); ++i) text += fmt::format("{}{}", i ? "." : "", order[i]);
  for (const Block& b : blocks) text += fmt::format("|{}:{}", b.dim, b.block);
  return text;
}

namespace {

int64_t parse_number(std::string_view& text, std::string_view whole) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) throw UserError(fmt::format("bad layout '{}'", whole));
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

}  // namespace

Layout Layout::parse(std::string_view text, int rank) {
  if (text == "row") return row_major(rank);
  Layout layout;
  const std::string_view whole = text;
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (int i = 0; i < rank; ++i) {
    if (i > 0) {
      if (text.empty() || text[0] != '.') throw UserError(fmt::format("bad layout '{}'", whole));
      text.remove_prefix(1);
    }
    const int64_t dim = parse_number(text, whole);
    if (dim >= rank || seen[static_cast<size_t>(dim)]) throw UserError(fmt::format("bad layout '{}'", whole));
    seen[static_cast<size_t>(dim)] = true;
    layout.order.push_back(static_cast<int>(dim));
  }
  while (!text.empty()) {
    if (text[0] != '|') throw UserError(fmt::format("bad layout '{}'", whole));
    text.remove_prefix(1);
    const int64_t dim = parse_number(text, whole);
    if (dim >= rank || text.empty() || text[0] != ':') throw UserError(fmt::format("bad layout '{}'", whole));
    text.remove_prefix(1);
    const int64_t block = parse_number(text, whole);
    if (block < 1) throw UserError(fmt::format("bad layout '{}'", whole));
    layout.blocks.push_back({static_cast<int>(dim), block});
  }
  return layout;
}

Layout row_major(int rank) {
  Layout layout;
  layout.order.resize(static_cast<size_t>(rank));
  std::iota(layout.order.begin(), layout.order.end(), 0);
  return layout;
}

std::vector<Dim> strides_of(const Layout& layout, const Shape& shape) {
  check(layout.blocks.empty(), "blocks have no strides");
  if (!layout.strides.empty()) return layout.strides;
  std::vector<Dim> strides(shape.size());
  Dim stride = 1;
  for (size_t i = layout.order.size(); i-- > 0;) {
    const auto d = static_cast<size_t>(layout.order[i]);
    strides[d] = stride;
    stride = stride * shape[d];
  }
  return strides;
}

namespace {

// To compare strides that depend on symbols: any value that is the same everywhere.
int64_t typical(const Dim& stride) {
  if (stride.is_constant()) return stride.value();
  SymbolValues values;
  for (const std::string& symbol : stride.symbols()) values[symbol] = 64;
  return stride.evaluate(values);
}

}  // namespace

Layout with_strides(std::vector<int> order, std::vector<Dim> strides, const Shape& shape) {
  const auto stride_at = [&](int d) { return typical(strides[static_cast<size_t>(d)]); };
  // Dimensions of a single index come first: the last one is that of the smallest stride.
  const auto units = std::stable_partition(order.begin(), order.end(),
                                           [&](int d) { return shape[static_cast<size_t>(d)].is(1); });
  std::stable_sort(units, order.end(), [&](int a, int b) { return stride_at(a) > stride_at(b); });
  const std::vector<int> several(units, order.end());
  Layout layout;
  layout.order = std::move(order);
  const std::vector<Dim> dense = strides_of(layout, shape);
  const bool is_dense = std::all_of(several.begin(), several.end(), [&](int d) {
    return strides[static_cast<size_t>(d)] == dense[static_cast<size_t>(d)];
  });
  if (!is_dense)
    layout.strides = std::move(strides);
  else if (std::is_sorted(several.begin(), several.end()))
    return row_major(static_cast<int>(shape.size()));
  return layout;
}

Dim physical_elements(const Layout& layout, const Shape& shape) {
  Dim elements = 1;
  if (!layout.strides.empty()) {
    // Nothing at all where one extent is 0, but of those along which all read the same element: kernels read that
    // before the run tells them of how many.
    Dim different = 1;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (layout.strides[d].is(0) && !shape[d].is(0)) continue;
      elements = elements + (shape[d] - Dim(1)) * layout.strides[d];
      different = different * shape[d];
    }
    return elements * min(different, Dim(1));
  }
  for (int dim : layout.order) {
    Dim extent = shape[static_cast<size_t>(dim)];
    for (const Layout::Block& b : layout.blocks)
      if (b.dim == dim) extent = ceil_div(extent, b.block) * b.block;
    elements = elements * extent;
  }
  return elements;
}

}  // namespace fusewise::schedule
