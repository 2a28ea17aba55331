#include "session/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "numerics/scalar_op.h"

namespace fusewise::session {
namespace {

using graph::Tensor;

// An element as a number and as its bits.
struct Element {
  double value = 0;
  uint64_t bits = 0;
};

class Elements {
 public:
  explicit Elements(const Tensor& tensor)
      : type_(tensor.element), size_(static_cast<size_t>(bytes_of(type_))), data_(tensor.bytes().data()) {}

  Element operator[](int64_t index) const {
    const std::byte* at = data_ + static_cast<size_t>(index) * size_;
    Element element;
    std::memcpy(&element.bits, at, size_);
    const Scalar scalar = load_scalar(at, type_);
    const bool large = type_ == DataType::uint64;
    element.value = is_float(type_) ? scalar.f
                    : large         ? static_cast<double>(static_cast<uint64_t>(scalar.i))
                                    : static_cast<double>(scalar.i);
    return element;
  }

 private:
  DataType type_;
  size_t size_;
  const std::byte* data_;
};

bool agree(const Element& a, const Element& b) {
  return a.bits == b.bits || (std::isnan(a.value) && std::isnan(b.value));
}

// Infinite where no finite error says it.
double error_of(double expected, double actual) {
  if (expected == actual || (std::isnan(expected) && std::isnan(actual))) return 0;
  const double error = std::abs(actual - expected);
  return std::isfinite(error) ? error : INFINITY;
}

class Comparison {
 public:
  Comparison(const std::string& name, const Tensor& actual) {
    verdict_.name = name;
    verdict_.type = actual.element;
    verdict_.shape = actual.shape;
    verdict_.elements = actual.count();
  }

  // An element with its tolerance; `differs` when it is outside.
  void add(int64_t index, double expected, double actual, double tolerance, bool differs) {
    const double error = error_of(expected, actual);
    verdict_.max_absolute = std::max(verdict_.max_absolute, error);
    if (expected != 0) verdict_.max_relative = std::max(verdict_.max_relative, error / std::abs(expected));
    if (differs) ++verdict_.differing;
    double share = error == 0 ? 0 : tolerance > 0 ? error / tolerance : INFINITY;
    if (differs) share = std::max(share, std::nextafter(1.0, 2.0));  // -0 for 0 has no error, and yet differs
    if (share > 0 && std::isfinite(share)) shares_.push_back(share);
    if (verdict_.worst_index >= 0 && share <= worst_) return;
    worst_ = share;
    verdict_.worst_index = index;
    verdict_.expected = expected;
    verdict_.actual = actual;
    verdict_.tolerance = tolerance;
  }
  void note_unbounded() { ++verdict_.unbounded; }

  OutputVerdict finish() {
    verdict_.passed = verdict_.differing == 0;
    verdict_.max_share = std::max(0.0, worst_);
    if (!shares_.empty()) {
      const auto middle = shares_.begin() + static_cast<int64_t>(shares_.size() / 2);
      std::nth_element(shares_.begin(), middle, shares_.end());
      verdict_.median_share = *middle;
    }
    return verdict_;
  }

 private:
  OutputVerdict verdict_;
  double worst_ = 0;
  std::vector<double> shares_;
};

// A verdict at once when the tensors are not of one type and shape.
bool same_type(const std::string& name, DataType type, const std::vector<int64_t>& shape,
               const Tensor& actual, OutputVerdict& verdict) {
  if (type == actual.element && shape == actual.shape) return true;
  verdict.name = name;
  verdict.type = actual.element;
  verdict.shape = actual.shape;
  verdict.elements = actual.count();
  verdict.note = fmt::format("it is {}{} and should be {}{}", name_of(actual.element),
                             graph::to_string(actual.shape), name_of(type), graph::to_string(shape));
  return false;
}

double largest_magnitude(const Elements& elements, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i)
    if (const double magnitude = std::abs(elements[i].value); std::isfinite(magnitude))
      largest = std::max(largest, magnitude);
  return largest;
}

// Not finite: the same infinity, or NaN on both sides. Nothing to compare otherwise.
bool outside(double expected, double actual, double tolerance) {
  if (std::isfinite(expected) && std::isfinite(actual)) return error_of(expected, actual) > tolerance;
  return error_of(expected, actual) > 0;
}

}  // namespace

OutputVerdict compare_exactly(const std::string& name, const Tensor& expected, const Tensor& actual) {
  OutputVerdict early;
  if (!same_type(name, expected.element, expected.shape, actual, early)) return early;
  Comparison comparison(name, actual);
  const Elements wanted(expected), given(actual);
  for (int64_t i = 0, n = actual.count(); i < n; ++i) {
    const Element a = wanted[i], b = given[i];
    comparison.add(i, a.value, b.value, 0, !agree(a, b));
  }
  return comparison.finish();
}

OutputVerdict compare_bounded(const std::string& name, const graph::BoundedTensor& expected,
                              const Tensor& reference, const Tensor& actual, double fallback) {
  OutputVerdict early;
  if (!same_type(name, expected.element, expected.value.shape, actual, early)) return early;
  Comparison comparison(name, actual);
  const Elements given(actual), strict(reference);
  const std::span<const double> values = expected.value.as<double>(), bounds = expected.bound.as<double>();
  const double scale = largest_magnitude(strict, actual.count());
  for (int64_t i = 0, n = actual.count(); i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    const double number = given[i].value;
    if (std::isfinite(bounds[at])) {
      comparison.add(i, values[at], number, bounds[at], outside(values[at], number, bounds[at]));
      continue;
    }
    comparison.note_unbounded();
    const double wanted = strict[i].value, tolerance = fallback * scale;
    // Where even the reference is not finite, an overflow may come earlier or later.
    const bool differs = std::isfinite(wanted) && outside(wanted, number, tolerance);
    comparison.add(i, wanted, number, tolerance, differs);
  }
  return comparison.finish();
}

OutputVerdict compare_within(const std::string& name, const Tensor& expected, const Tensor& actual,
                             double relative) {
  OutputVerdict early;
  if (!same_type(name, expected.element, expected.shape, actual, early)) return early;
  Comparison comparison(name, actual);
  const Elements wanted(expected), given(actual);
  const double tolerance =
      is_float(actual.element) ? relative * largest_magnitude(wanted, actual.count()) : 0;
  for (int64_t i = 0, n = actual.count(); i < n; ++i) {
    const double a = wanted[i].value, b = given[i].value;
    comparison.add(i, a, b, tolerance, outside(a, b, tolerance));
  }
  return comparison.finish();
}

}  // namespace fusewise::session
