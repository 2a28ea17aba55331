#include "graph/interpreter/bounded.h"

#include <algorithm>
#include <cmath>

#include "graph/interpreter/arithmetic.h"

namespace fusewise::graph {

double accumulated(int64_t roundings, DataType type, ErrorModel model) {
  if (!is_float(type)) return 0;
  constexpr double confidence = 4;
  const double n = static_cast<double>(roundings);
  const double count = model == ErrorModel::probable ? std::min(n, confidence * std::sqrt(n)) : n;
  const double total = count * (unit_roundoff(type) + 0x1p-53);
  return total < 0.5 ? total / (1 - total) : unknown;
}

BoundedReduction::BoundedReduction(Combine combine, DataType type, ErrorModel model)
    : combine_(combine), type_(type), model_(model), sum_(type) {
  clear();
}

void BoundedReduction::clear() {
  sum_ = BoundedSum(type_);
  count_ = 0;
  not_finite_ = unknown_ = false;
  exact_ = true;
  magnitude_ = most_ = above_one_ = below_one_ = 1;
  squares_ = sum_of_magnitudes_ = 0;
  value_ = 1;
  if (combine_ == Combine::max || combine_ == Combine::min) {
    // Integers start from their extreme value.
    const Scalar extreme{DataType::float64, combine_ == Combine::max ? -unknown : unknown, 0};
    value_ = low_ = high_ = convert(convert(extreme, type_), DataType::float64).f;
    if (type_ == DataType::boolean) value_ = low_ = high_ = combine_ == Combine::max ? 0 : 1;
  }
}

void BoundedReduction::add(const Bounded& x) {
  ++count_;
  not_finite_ = not_finite_ || !std::isfinite(x.value);
  exact_ = exact_ && x.error == 0;
  unknown_ = unknown_ || !(x.error < unknown);
  switch (combine_) {
    case Combine::sum:
      squares_ += x.error * x.error;
      sum_of_magnitudes_ += std::abs(x.value) + x.error;
      return sum_.add(x);
    case Combine::product:
      value_ *= x.value;
      magnitude_ *= std::abs(x.value);
      most_ *= std::abs(x.value) + x.error;
      above_one_ *= std::max(1.0, std::abs(x.value) + x.error);
      below_one_ *= std::min(1.0, std::max(0.0, std::abs(x.value) - x.error));
      return;
    case Combine::max:
      value_ = greater_of(value_, x.value);
      low_ = greater_of(low_, x.value - x.error);
      high_ = greater_of(high_, x.value + x.error);
      return;
    case Combine::min:
      value_ = lesser_of(value_, x.value);
      low_ = lesser_of(low_, x.value - x.error);
      high_ = lesser_of(high_, x.value + x.error);
      return;
  }
}

Bounded BoundedReduction::sum() const {
  Bounded x = sum_.result();
  if (model_ == ErrorModel::worst_case || !std::isfinite(x.value) || !(x.error < unknown)) return x;
  const double gamma = accumulated(count_ + 1, accumulator_of(type_), model_);
  x.error = std::min(x.error, std::sqrt(squares_) + gamma * sum_of_magnitudes_);
  return x;
}

Bounded BoundedReduction::product() const {
  const DataType accumulator = accumulator_of(type_);
  // In another order the finite factors may underflow to 0 before they meet an infinity.
  if (not_finite_)
    return {value_,
            exact_ && (std::isnan(value_) || below_one_ > 4 * least_positive(accumulator)) ? 0 : unknown};
  if (!is_float(type_) && above_one_ > greatest_exact(type_)) return {value_, unknown};  // it may wrap around
  const double gamma = accumulated(count_ + 1, accumulator, model_);
  if (!(above_one_ * (1 + gamma) <= greatest_finite(accumulator))) return {value_, unknown};
  // Partial products among the denormals lose up to half of the least one each, which later factors enlarge.
  const double denormals = static_cast<double>(count_) * least_positive(accumulator) * above_one_;
  return {value_, most_ - magnitude_ + gamma * most_ + denormals};
}

Bounded BoundedReduction::extreme() const {
  if (std::isnan(value_)) return {value_, 0};
  const double above = high_ == value_ ? 0 : high_ - value_, below = low_ == value_ ? 0 : value_ - low_;
  return {value_, std::max(above, below)};
}

Bounded BoundedReduction::result() const {
  const bool picks = combine_ == Combine::max || combine_ == Combine::min;
  const Bounded x = picks ? extreme() : combine_ == Combine::sum ? sum() : product();
  if (unknown_) return {x.value, unknown};
  return picks || accumulator_of(type_) == type_ ? x : round_bounded(x, type_);
}

}  // namespace fusewise::graph
