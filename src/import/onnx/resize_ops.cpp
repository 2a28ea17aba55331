// Resizing: along every axis that changes, each result is a weighted sum of a few elements, whose positions
// and weights are worked out here.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

struct Axis {
  int axis = 0;
  Dim from, to;
  double scale = 1;
};

struct Method {
  std::string_view mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false;
};

// The position in the operand that result position `i` looks at.
double source_position(Call& c, const Method& method, const Axis& a, int64_t i) {
  const double x = static_cast<double>(i), from = static_cast<double>(a.from.value());
  const double to = static_cast<double>(a.to.value());
  if (method.coordinates == "asymmetric") return x / a.scale;
  if (method.coordinates == "align_corners") {
    // With a scale that is not whole the length is not rounded, as in the format's reference.
    const double length = from * a.scale;
    return to == 1 || length == 1 ? 0 : x * (from - 1) / (length - 1);
  }
  if (method.coordinates == "pytorch_half_pixel") return to > 1 ? (x + 0.5) / a.scale - 0.5 : 0;
  if (method.coordinates == "half_pixel") return (x + 0.5) / a.scale - 0.5;
  if (method.coordinates == "half_pixel_symmetric") {
    const double adjustment = to / (a.scale * from);
    const double centre = from / 2, offset = centre * (1 - adjustment);
    return offset + (x + 0.5) / a.scale - 0.5;
  }
  c.unsupported(fmt::format("coordinate_transformation_mode '{}'", method.coordinates));
}

int64_t nearest_position(Call& c, const Method& method, double x) {
  if (method.nearest == "floor") return static_cast<int64_t>(std::floor(x));
  if (method.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (method.nearest == "round_prefer_floor") return static_cast<int64_t>(std::ceil(x - 0.5));
  if (method.nearest == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  c.fail(fmt::format("nearest_mode '{}' is unknown", method.nearest));
}

// The weights of the four neighbours of a point that lies t behind the second one.
std::vector<double> cubic_weights(double t, double a) {
  const auto near = [&](double s) { return ((a + 2) * s - (a + 3)) * s * s + 1; };
  const auto far = [&](double s) { return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

// Positions and weights of all taps: taps[k] holds one for every result position.
struct Taps {
  std::vector<std::vector<int64_t>> positions;
  std::vector<std::vector<float>> weights;
};

Taps taps_of(Call& c, const Method& method, const Axis& a) {
  const int64_t last = a.from.value() - 1, count = a.to.value();
  const size_t taps = method.mode == "nearest" ? 1 : method.mode == "linear" ? 2 : 4;
  Taps result{std::vector<std::vector<int64_t>>(taps), std::vector<std::vector<float>>(taps)};
  for (int64_t i = 0; i < count; ++i) {
    double x = source_position(c, method, a, i);
    int64_t first = 0;
    std::vector<double> weights{1};
    if (taps == 1) {
      first = nearest_position(c, method, x);
    } else {
      if (taps == 2) x = std::clamp(x, 0.0, static_cast<double>(last));
      const double floor = std::floor(x), t = x - floor;
      first = static_cast<int64_t>(floor) - (taps == 4 ? 1 : 0);
      weights = taps == 2 ? std::vector<double>{1 - t, t} : cubic_weights(t, method.cubic_a);
    }
    double total = 0;
    for (size_t k = 0; k < taps; ++k) {
      const int64_t position = first + static_cast<int64_t>(k);
      if (method.exclude_outside && (position < 0 || position > last)) weights[k] = 0;
      total += weights[k];
    }
    for (size_t k = 0; k < taps; ++k) {
      result.positions[k].push_back(std::clamp<int64_t>(first + static_cast<int64_t>(k), 0, last));
      result.weights[k].push_back(
          static_cast<float>(method.exclude_outside ? weights[k] / total : weights[k]));
    }
  }
  return result;
}

template <class T>
Value vector_constant(Call& c, DataType type, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return c.builder().constant({type, {Dim(static_cast<int64_t>(values.size()))}}, std::move(bytes));
}

// Every element repeated a whole number of times: works for dimensions that depend on symbols.
bool repeats(const Method& method, const Axis& a) {
  const bool floors = method.coordinates == "asymmetric"
                          ? method.nearest == "floor"
                          : method.coordinates == "half_pixel" && method.nearest == "round_prefer_floor";
  return method.mode == "nearest" && floors && a.scale >= 1 && a.scale == std::trunc(a.scale) &&
         a.scale < 1e6;
}

Value repeated(Call& c, Value x, const Axis& a) {
  const int64_t times = static_cast<int64_t>(a.scale);
  const Shape shape = c.builder().shape(x);
  Shape spread = shape, joined = shape;
  spread.insert(spread.begin() + a.axis + 1, Dim(times));
  joined[static_cast<size_t>(a.axis)] = a.from * Dim(times);
  std::vector<int> dims = counting(0, static_cast<int>(spread.size()));
  dims.erase(dims.begin() + a.axis + 1);
  return c.builder().reshape(c.builder().broadcast(x, spread, dims), joined);
}

Value resampled(Call& c, Value x, const Method& method, const Axis& a) {
  if (repeats(method, a) && a.to == a.from * Dim(static_cast<int64_t>(a.scale))) return repeated(c, x, a);
  if (!a.from.is_constant() || !a.to.is_constant()) c.unsupported("a dimension that depends on the shapes");
  if (a.from.value() < 1) c.fail("an empty dimension cannot be resized");
  Compose m(c.builder());
  const Taps taps = taps_of(c, method, a);
  const DataType type = c.builder().type(x).element;
  std::optional<Value> sum;
  for (size_t k = 0; k < taps.positions.size(); ++k) {
    const Value part = c.builder().gather(x, vector_constant(c, DataType::int64, taps.positions[k]), a.axis);
    if (taps.positions.size() == 1) return part;
    const Value weights = c.builder().cast(vector_constant(c, DataType::float32, taps.weights[k]), type);
    const Value spread = c.builder().broadcast(weights, c.builder().shape(part), {a.axis});
    const Value term = m.mul(part, spread);
    sum = sum ? m.add(*sum, term) : term;
  }
  return *sum;
}

// floor(extent * scale), with the scale as the float that the file holds.
Dim scaled_extent(Call& c, const Dim& extent, double scale) {
  if (extent.is_constant()) {
    const double size = std::floor(static_cast<double>(extent.value()) * scale);
    if (!(size >= 0 && size < 1e12)) c.fail("a scale is out of range");
    return static_cast<int64_t>(size);
  }
  if (scale != std::trunc(scale) || !(scale >= 1 && scale < 1e6))
    c.unsupported("a dimension that depends on the shapes, with a scale that is not whole");
  return extent * Dim(static_cast<int64_t>(scale));
}

std::vector<double> scales_of(Call& c, size_t input) {
  const auto elements = c.elements(input);
  if (!elements) c.unsupported("scales that depend on data");
  std::vector<double> scales;
  for (const Scalar& e : *elements) scales.push_back(e.f);
  return scales;
}

void resize_along(Call& c, const Method& method, const std::vector<Axis>& axes) {
  Compose m(c.builder());
  const DataType type = c.element(0);
  const bool averages = method.mode != "nearest";
  Value x = averages ? m.widen(c.value(0)) : c.value(0);
  if (averages && !is_float(type)) x = c.builder().cast(x, DataType::float32);
  for (const Axis& a : axes)
    if (a.from != a.to || a.scale != 1) x = resampled(c, x, method, a);
  if (averages && !is_float(type)) x = m.map(ScalarOp::round, x);
  c.set(c.builder().cast(x, type));
}

Method method_of(Call& c) {
  Method method;
  method.mode = c.string("mode", "nearest");
  if (method.mode == "bilinear") method.mode = "linear";
  if (method.mode != "nearest" && method.mode != "linear" && method.mode != "cubic")
    c.fail(fmt::format("mode '{}' is unknown", method.mode));
  method.coordinates =
      c.string("coordinate_transformation_mode", c.version() >= 11 ? "half_pixel" : "asymmetric");
  method.nearest = c.string("nearest_mode", c.version() >= 11 ? "round_prefer_floor" : "floor");
  method.cubic_a = c.number("cubic_coeff_a", -0.75f);
  method.exclude_outside = c.integer("exclude_outside", 0) != 0;
  if (c.integer("antialias", 0) != 0) c.unsupported("antialiasing");
  return method;
}

// The scale that a policy about the aspect ratio leaves.
void keep_aspect_ratio(Call& c, std::vector<Axis>& axes, std::string_view policy) {
  if (policy == "stretch") return;
  double scale = policy == "not_larger" ? INFINITY : 0;
  for (const Axis& a : axes)
    scale = policy == "not_larger" ? std::min(scale, a.scale) : std::max(scale, a.scale);
  if (policy != "not_larger" && policy != "not_smaller") c.fail("keep_aspect_ratio_policy is unknown");
  for (Axis& a : axes) {
    if (!a.from.is_constant()) c.unsupported("an aspect ratio that depends on the shapes");
    a.scale = scale;
    a.to = static_cast<int64_t>(std::floor(scale * static_cast<double>(a.from.value()) + 0.5));
  }
}

void resize(Call& c) {
  const Method method = method_of(c);
  const Shape shape = c.type(0).shape;
  const bool first_form = c.version() < 11;  // data and scales only
  const size_t scales_input = first_form ? 1 : 2;
  const auto given = c.axes(c.rank(0), SIZE_MAX);
  const std::vector<int> along = given ? *given : counting(0, c.rank(0));
  std::vector<Axis> axes;
  for (int axis : along)
    axes.push_back({axis, shape[static_cast<size_t>(axis)], shape[static_cast<size_t>(axis)], 1});
  if (!first_form && c.has(3) && !(c.known(3) && c.known(3)->values.empty())) {
    const std::vector<Dim> sizes = c.dims(3);
    if (sizes.size() != axes.size()) c.fail("there are not as many sizes as dimensions");
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i].to = sizes[i];
      if (axes[i].from == axes[i].to) continue;
      if (!axes[i].from.is_constant() || !sizes[i].is_constant()) {
        const Dim times = floor_div(sizes[i], axes[i].from);
        if (!times.is_constant() || times * axes[i].from != sizes[i])
          c.unsupported("a dimension that depends on the shapes");
        axes[i].scale = static_cast<double>(times.value());
      } else if (axes[i].from.value() > 0) {
        axes[i].scale = static_cast<double>(sizes[i].value()) / static_cast<double>(axes[i].from.value());
      }
    }
    keep_aspect_ratio(c, axes, c.string("keep_aspect_ratio_policy", "stretch"));
  } else {
    const std::vector<double> scales = scales_of(c, scales_input);
    if (scales.size() != axes.size()) c.fail("there are not as many scales as dimensions");
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!(scales[i] > 0)) c.fail("a scale is not positive");
      axes[i].scale = scales[i];
      axes[i].to = scales[i] == 1 ? axes[i].from : scaled_extent(c, axes[i].from, scales[i]);
    }
  }
  resize_along(c, method, axes);
}

// The predecessor: scales as operand or attribute, asymmetric coordinates.
void upsample(Call& c) {
  Method method;
  method.mode = c.string("mode", "nearest");
  if (method.mode == "bilinear") method.mode = "linear";
  method.coordinates = "asymmetric";
  method.nearest = "floor";
  std::vector<double> scales;
  if (const Attribute* a = c.attribute("scales"))
    scales.assign(a->floats.begin(), a->floats.end());
  else
    scales = scales_of(c, 1);
  const Shape shape = c.type(0).shape;
  if (scales.size() != shape.size()) c.fail("there are not as many scales as dimensions");
  std::vector<Axis> axes;
  for (int d = 0; d < c.rank(0); ++d) {
    const Dim& extent = shape[static_cast<size_t>(d)];
    const double scale = scales[static_cast<size_t>(d)];
    if (!(scale >= 1)) c.fail("a scale is less than 1");
    axes.push_back({d, extent, scaled_extent(c, extent, scale), scale});
  }
  resize_along(c, method, axes);
}

constexpr OpRow rows[] = {
    {"Resize", 10, newest, resize},
    {"Upsample", 7, 10, upsample},
};

}  // namespace

std::span<const OpRow> resize_ops() { return rows; }

}  // namespace fusewise::onnx
