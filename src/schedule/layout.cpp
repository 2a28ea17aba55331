#include "schedule/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"

namespace fusewise::schedule {

bool Layout::is_row_major() const {
  if (!blocks.empty() || !within.empty()) return false;
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int>(i)) return false;
  return true;
}

int Layout::innermost() const {
  if (!blocks.empty()) return blocks.back().dim;
  return order.empty() ? -1 : order.back();
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
  const Shape& extents = layout.within.empty() ? shape : layout.within;
  std::vector<Dim> strides(shape.size());
  Dim stride = 1;
  for (size_t i = layout.order.size(); i-- > 0;) {
    const auto d = static_cast<size_t>(layout.order[i]);
    strides[d] = stride;
    stride = stride * extents[d];
  }
  return strides;
}

Dim physical_elements(const Layout& layout, const Shape& shape) {
  Dim elements = 1;
  if (!layout.within.empty()) {
    const std::vector<Dim> strides = strides_of(layout, shape);
    for (size_t d = 0; d < shape.size(); ++d) elements = elements + (shape[d] - Dim(1)) * strides[d];
    // Nothing at all where one extent is 0.
    return elements * min(product(shape), Dim(1));
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
