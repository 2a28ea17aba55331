// Slices, splits and padding.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "graph/shape_rules.h"
#include "import/onnx/compose.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

const Dim& at(const Shape& shape, int d) { return shape[static_cast<size_t>(d)]; }
Dim& at(Shape& shape, int d) { return shape[static_cast<size_t>(d)]; }

Value slice_of(Call& c, Value x, int axis, const Dim& start, const Dim& size) {
  Shape shape = c.builder().shape(x);
  std::vector<Dim> starts(shape.size(), Dim(0));
  at(starts, axis) = start;
  at(shape, axis) = size;
  return c.builder().slice(x, std::move(starts), std::vector<int64_t>(shape.size(), 1), shape);
}

void split(Call& c) {
  const int axis = c.axis(c.integer("axis", 0), c.rank(0));
  const Dim extent = at(c.type(0).shape, axis);
  std::vector<Dim> sizes;
  if (const auto given = c.integer_list("split")) {
    sizes.assign(given->begin(), given->end());
  } else if (c.has(1)) {
    sizes = c.dims(1);
  } else {
    const int64_t parts = c.integer("num_outputs", static_cast<int64_t>(c.outputs()));
    if (parts < 1) c.fail("there are no parts");
    if (parts != static_cast<int64_t>(c.outputs())) c.fail("num_outputs is not the number of outputs");
    const Dim size = ceil_div(extent, parts);
    sizes.assign(static_cast<size_t>(parts), size);
    // The last part takes what is left, which may be less from version 18 on.
    sizes.back() = extent - size * Dim(parts - 1);
    if (c.version() < 18 && sizes.back() != size && sizes.back().is_constant())
      c.fail(fmt::format("{} does not split into {} equal parts", extent.to_string(), parts));
  }
  if (sizes.size() != c.outputs()) c.fail("there are not as many sizes as outputs");
  Dim start = 0;
  for (const Dim& size : sizes) {
    if (size.is_constant() && size.value() < 0) c.fail("a size is negative");
    start = start + size;
  }
  if (graph::provably_different(start, extent))
    c.fail(fmt::format("the sizes add up to {} instead of {}", start.to_string(), extent.to_string()));
  start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (c.wants(i)) c.set_output(i, slice_of(c, c.value(0), axis, start, sizes[i]));
    start = start + sizes[i];
  }
}

// A constant this large means "to the end".
constexpr int64_t endless = INT32_MAX;

// A position counted from the end if negative. Where the sign depends on symbols, so does the sum.
Dim from_front(const Dim& position, const Dim& extent) {
  if (position.is_constant()) return position.value() < 0 ? position + extent : position;
  if (const auto low = position.lower_bound(); low && *low >= 0) return position;
  const Dim is_negative = min(max(Dim(0) - position, 0), 1);
  return position + extent * is_negative;
}

struct SliceRange {
  Dim start, size;
};

// The clamping of the operator's specification: to [0, extent] going up; going down the start to
// [0, extent - 1] and the end to [-1, extent - 1].
SliceRange slice_range(const Dim& start, const Dim& end, int64_t step, const Dim& extent) {
  const auto resolved = [&](const Dim& position, const Dim& low, const Dim& high) {
    if (position.is_constant() && position.value() >= endless && !extent.is_constant()) return high;
    if (position.is_constant() && position.value() <= -endless) return low;
    return max(min(from_front(position, extent), high), low);
  };
  if (step > 0) {
    const Dim begin = resolved(start, 0, extent), stop = resolved(end, 0, extent);
    return {begin, max(ceil_div(stop - begin, step), 0)};
  }
  const Dim begin = resolved(start, 0, extent - 1), stop = resolved(end, -1, extent - 1);
  return {begin, max(ceil_div(begin - stop, -step), 0)};
}

struct SliceOperands {
  std::vector<Dim> starts, ends;
  std::vector<int> axes;
  std::vector<int64_t> steps;
};

void slice_by(Call& c, SliceOperands s) {
  const Shape from = c.type(0).shape;
  if (s.axes.size() != s.starts.size() || s.ends.size() != s.starts.size() ||
      s.steps.size() != s.starts.size())
    c.fail("starts, ends, axes and steps have different lengths");
  std::vector<Dim> starts(from.size(), Dim(0));
  std::vector<int64_t> steps(from.size(), 1);
  Shape to = from;
  for (size_t i = 0; i < s.starts.size(); ++i) {
    if (s.steps[i] == 0) c.fail("a step is 0");
    // Beyond any extent a step does not matter, and arithmetic with it might overflow.
    const int64_t step = std::clamp(s.steps[i], -endless, endless);
    const SliceRange range = slice_range(s.starts[i], s.ends[i], step, at(from, s.axes[i]));
    at(to, s.axes[i]) = range.size;
    at(starts, s.axes[i]) = range.size.is(0) ? Dim(0) : range.start;
    steps[static_cast<size_t>(s.axes[i])] = range.size.is(0) ? 1 : step;
  }
  c.set(c.builder().slice(c.value(0), std::move(starts), std::move(steps), std::move(to)));
}

std::vector<int> leading_axes(Call& c, size_t count) {
  if (static_cast<int>(count) > c.rank(0)) c.fail("there are more starts than dimensions");
  return counting(0, static_cast<int>(count));
}

void slice(Call& c) {
  SliceOperands s{c.positions(1), c.positions(2), {}, {}};
  const auto axes = c.axes(c.rank(0), 3);
  s.axes = axes ? *axes : leading_axes(c, s.starts.size());
  s.steps = c.has(4) ? c.integers(4) : std::vector<int64_t>(s.starts.size(), 1);
  slice_by(c, std::move(s));
}

void slice_by_attributes(Call& c) {
  const auto starts = c.integer_list("starts"), ends = c.integer_list("ends");
  if (!starts || !ends) c.fail("attributes 'starts' and 'ends' are missing");
  SliceOperands s{{starts->begin(), starts->end()}, {ends->begin(), ends->end()}, {}, {}};
  const auto axes = c.axes(c.rank(0), SIZE_MAX);
  s.axes = axes ? *axes : leading_axes(c, s.starts.size());
  s.steps.assign(s.starts.size(), 1);
  slice_by(c, std::move(s));
}

struct Padding {
  std::vector<Dim> low, high;
};

Padding padding_of(Call& c, const std::vector<Dim>& pads, const std::vector<int>& axes) {
  if (pads.size() != 2 * axes.size()) c.fail("there are not two pads for every axis");
  const size_t rank = static_cast<size_t>(c.rank(0));
  Padding p{std::vector<Dim>(rank, Dim(0)), std::vector<Dim>(rank, Dim(0))};
  for (size_t i = 0; i < axes.size(); ++i) {
    at(p.low, axes[i]) = pads[i];
    at(p.high, axes[i]) = pads[i + axes.size()];
  }
  return p;
}

// The position in [0, extent) that the padded position p (which may lie outside) takes its element from.
Value source_position(Compose& m, std::string_view mode, Value p, const Dim& extent) {
  const auto number = [&](const Dim& d) { return m.dim_as(d, DataType::int64); };
  if (mode == "edge") return m.min(m.max(p, 0.0), number(extent - 1));
  if (mode == "wrap") return m.map(ScalarOp::mod, p, number(extent));
  // reflect: there and back again in 2 (extent - 1) steps; in a single element always 0.
  const Value period = number(Dim(2) * (extent - 1));
  const Value t = m.map(ScalarOp::mod, p, period);
  return m.min(t, m.sub(period, t));
}

Value pad_by_gather(Call& c, std::string_view mode, const Padding& p) {
  Compose m(c.builder());
  Value x = c.value(0);
  for (int axis = 0; axis < c.rank(0); ++axis) {
    const Dim extent = at(c.builder().shape(x), axis), low = at(p.low, axis), high = at(p.high, axis);
    if (low.is(0) && high.is(0)) continue;
    if (extent.is(0)) c.fail(fmt::format("an empty dimension cannot be padded in mode {}", mode));
    const Value positions = c.builder().iota({DataType::int64, {extent + low + high}}, 0);
    const Value shifted = low.is(0) ? positions : m.sub(positions, m.dim_as(low, DataType::int64));
    x = c.builder().gather(x, source_position(m, mode, shifted, extent), axis);
  }
  return x;
}

void pad_with(Call& c, const Padding& p, std::optional<Value> value) {
  const std::string_view mode = c.string("mode", "constant");
  if (mode == "edge" || mode == "reflect" || mode == "wrap") return c.set(pad_by_gather(c, mode, p));
  if (mode != "constant") c.fail(fmt::format("mode '{}' is unknown", mode));
  if (!value) value = c.builder().scalar(c.element(0), 0);
  if (!product(c.builder().shape(*value)).is(1)) c.fail("the pad value is not one number");
  c.set(c.builder().pad(c.value(0), c.builder().reshape(*value, {}), p.low, p.high));
}

void pad(Call& c) {
  const auto axes = c.axes(c.rank(0), 3);
  const Padding p = padding_of(c, c.positions(1), axes ? *axes : counting(0, c.rank(0)));
  pad_with(c, p, c.has(2) ? std::optional(c.value(2)) : std::nullopt);
}

void pad_by_attributes(Call& c) {
  const auto pads = c.integer_list(c.version() >= 2 ? "pads" : "paddings");
  if (!pads) c.fail("attribute 'pads' is missing");
  const Padding p = padding_of(c, {pads->begin(), pads->end()}, counting(0, c.rank(0)));
  pad_with(c, p, c.builder().scalar(c.element(0), c.number("value", 0)));
}

constexpr OpRow rows[] = {
    {"Pad", 1, 10, pad_by_attributes}, {"Pad", 11, newest, pad},    {"Slice", 1, 9, slice_by_attributes},
    {"Slice", 10, newest, slice},      {"Split", 1, newest, split},
};

}  // namespace

std::span<const OpRow> slice_ops() { return rows; }

}  // namespace fusewise::onnx
