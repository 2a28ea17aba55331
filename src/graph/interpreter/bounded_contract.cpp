// Contractions with a bound. With A = |a| + error of a, and B alike, the operands' errors move a sum of
// products by at most sum(A * error of b + error of a * |b|), and n roundings in any order by gamma * sum(A *
// B). Both are again contractions of prepared planes:
//
//   bound = sum(A * (error of b + gamma * B)) + sum(error of a * |b|)
//
// or, where b is exact, the single sum((gamma * A + error of a) * |b|).
#include <algorithm>
#include <cmath>

#include "graph/interpreter/bounded.h"
#include "graph/interpreter/bounded_evaluate.h"
#include "graph/interpreter/contract.h"

namespace fusewise::graph {

namespace {

struct PlanePair {
  Tensor lhs, rhs;
};

template <class F>
Tensor plane(const BoundedTensor& x, F f) {
  Tensor result(DataType::float64, x.value.shape);
  const std::span<const double> value = x.value.as<double>(), bound = x.bound.as<double>();
  const std::span<double> to = result.mutable_as<double>();
  for (size_t i = 0; i < to.size(); ++i) to[i] = f(std::abs(value[i]), bound[i]);
  return result;
}

bool all_exact(const BoundedTensor& x) {
  const std::span<const double> bound = x.bound.as<double>();
  return std::all_of(bound.begin(), bound.end(), [](double b) { return b == 0; });
}

std::vector<PlanePair> bound_terms(const BoundedTensor& a, const BoundedTensor& b, double gamma) {
  const auto magnitude = [](double value, double) { return value; };
  const auto scaled = [gamma](double value, double bound) { return bound + gamma * (value + bound); };
  if (all_exact(b)) return {{plane(a, scaled), plane(b, magnitude)}};
  if (all_exact(a)) return {{plane(a, magnitude), plane(b, scaled)}};
  return {{plane(a, [](double value, double bound) { return value + bound; }), plane(b, scaled)},
          {a.bound, plane(b, magnitude)}};
}

// How the sum of `terms` products rounds.
struct Accumulator {
  Accumulator(DataType element, int64_t count)
      : type(accumulator_of(element)), terms(count), gamma(accumulated(count + 1, type)) {}
  DataType type;
  int64_t terms;
  double gamma;
};

BoundedTensor settled(const Evaluation& e, const Accumulator& accumulator, const Tensor& value,
                      const Tensor& bound) {
  BoundedTensor result{e.element, value, bound};
  const std::span<double> values = result.value.mutable_as<double>(),
                          bounds = result.bound.mutable_as<double>();
  const double denormals = static_cast<double>(accumulator.terms) * least_positive(accumulator.type);
  // Integers wrap, and are exact in double only below.
  const double greatest =
      is_float(e.element) ? greatest_finite(accumulator.type) : std::exp2(bits_of(e.element) - 1) - 1;
  for (size_t i = 0; i < values.size(); ++i) {
    // The sum of magnitudes is at most this, and no partial sum is greater.
    const double magnitude =
        accumulator.gamma > 0 ? bounds[i] / accumulator.gamma : std::abs(values[i]) + bounds[i];
    Bounded y{values[i], bounds[i] * (1 + 1e-6) + denormals};
    if (!(magnitude <= greatest) || !std::isfinite(values[i])) {
      y.error = unknown;
    } else if (accumulator.type != e.element) {
      y = round_bounded(y, e.element);
    }
    values[i] = y.value;
    bounds[i] = y.error;
  }
  return result;
}

}  // namespace

BoundedTensor dot_bounded(const Evaluation& e, const BoundedTensor& lhs, const BoundedTensor& rhs) {
  const auto& a = attributes<DotAttributes>(e.node);
  DotOperands value = arrange_dot(a, lhs.value, rhs.value);
  const Accumulator accumulator(e.element, value.k);
  std::vector<DotOperands> terms;
  for (const PlanePair& pair : bound_terms(lhs, rhs, accumulator.gamma))
    terms.push_back(arrange_dot(a, pair.lhs, pair.rhs));
  return settled(e, accumulator, contract(std::span(&value, 1), e.pool).reshaped(e.shape),
                 contract(terms, e.pool).reshaped(e.shape));
}

BoundedTensor convolution_bounded(const Evaluation& e, const BoundedTensor& x, const BoundedTensor& weights) {
  const auto& a = attributes<ConvolutionAttributes>(e.node);
  const std::vector<int64_t>& shape = weights.value.shape;
  const Accumulator accumulator(e.element, shape[0] == 0 ? 0 : weights.value.count() / shape[0]);
  const ConvolutionTerm value{x.value, weights.value};
  std::vector<ConvolutionTerm> terms;
  for (const PlanePair& pair : bound_terms(x, weights, accumulator.gamma))
    terms.push_back({pair.lhs, pair.rhs});
  return settled(e, accumulator, convolve(a, std::span(&value, 1), e.shape, e.pool),
                 convolve(a, terms, e.shape, e.pool));
}

}  // namespace fusewise::graph
