// Contractions with a bound. With A = |a| + error of a, and B alike, the operands' errors move a sum of
// products by at most sum(A * error of b + error of a * |b|), and n roundings in any order by gamma * sum(A *
// B). Both are again contractions of prepared planes:
//
//   bound = sum(A * (error of b + gamma * B)) + sum(error of a * |b|)
//
// or, where b is exact, the single sum((gamma * A + error of a) * |b|). The probable error adds the squares
// of the operands' part and takes the root.
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

// The squares of what the operands' errors do to one product, where errors of either sign add up.
std::vector<PlanePair> square_terms(const BoundedTensor& a, const BoundedTensor& b) {
  const auto square = [](double value, double) { return value * value; };
  const auto error = [](double, double bound) { return bound * bound; };
  std::vector<PlanePair> terms;
  if (!all_exact(b)) {
    const auto reach = [](double value, double bound) { return (value + bound) * (value + bound); };
    terms.push_back({plane(a, reach), plane(b, error)});
  }
  if (!all_exact(a)) terms.push_back({plane(a, error), plane(b, square)});
  return terms;
}

// What a contraction needs beside the operands. `multiply` contracts pairs of planes and adds them up.
struct Contraction {
  const Evaluation& evaluation;
  int64_t products;  // of one result element
  ErrorModel model;
  FunctionRef<Tensor(const std::vector<PlanePair>&)> multiply;
};

// The errors of the sums, and the sums of magnitudes, which no partial sum exceeds.
struct SumErrors {
  Tensor errors, magnitudes;
};

SumErrors sum_errors(const Contraction& c, const BoundedTensor& a, const BoundedTensor& b,
                     DataType accumulator) {
  const double gamma = accumulated(c.products + 1, accumulator, c.model);
  if (c.model == ErrorModel::worst_case && gamma > 0 && gamma < unknown) {
    Tensor errors = c.multiply(bound_terms(a, b, gamma)), magnitudes = errors;
    for (double& m : magnitudes.mutable_as<double>()) m /= gamma;  // at most that
    return {std::move(errors), std::move(magnitudes)};
  }
  const auto reach = [](double value, double bound) { return value + bound; };
  Tensor magnitudes = c.multiply({{plane(a, reach), plane(b, reach)}}),
         errors(DataType::float64, magnitudes.shape);
  const std::span<double> to = errors.mutable_as<double>();
  const std::span<const double> magnitude = magnitudes.as<double>();
  std::fill(to.begin(), to.end(), 0.0);
  if (c.model == ErrorModel::worst_case) {
    errors = c.multiply(bound_terms(a, b, 0));
  } else if (const std::vector<PlanePair> squares = square_terms(a, b); !squares.empty()) {
    errors = c.multiply(squares);
    for (double& error : errors.mutable_as<double>()) error = std::sqrt(error);
  }
  const std::span<double> sums = errors.mutable_as<double>();
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += gamma * magnitude[i];
  return {std::move(errors), std::move(magnitudes)};
}

// Changed only where there is something subnormal.
BoundedTensor as_weights(BoundedTensor x) {
  const std::span<const double> values = x.value.as<double>();
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0 && as_weight({values[i], 0}, x.element).error != 0) {
      double& bound = x.bound.mutable_as<double>()[i];
      bound = as_weight({values[i], bound}, x.element).error;
    }
  return x;
}

BoundedTensor contract_bounded(const Contraction& c, const BoundedTensor& lhs, const BoundedTensor& rhs) {
  const BoundedTensor a = as_weights(lhs), b = as_weights(rhs);
  const DataType element = c.evaluation.element, accumulator = accumulator_of(element);
  BoundedTensor result{element, c.multiply({{a.value, b.value}}), {}};
  SumErrors sums = sum_errors(c, a, b, accumulator);
  result.bound = std::move(sums.errors);
  const std::span<double> values = result.value.mutable_as<double>(),
                          bounds = result.bound.mutable_as<double>();
  const std::span<const double> magnitudes = sums.magnitudes.as<double>();
  const double denormals = static_cast<double>(c.products) * least_positive(accumulator);
  const double greatest = is_float(element) ? greatest_finite(accumulator) : greatest_exact(element);
  for (size_t i = 0; i < values.size(); ++i) {
    Bounded y{values[i], bounds[i] * (1 + 1e-6) + denormals};
    if (!(magnitudes[i] <= greatest) || !std::isfinite(values[i]) || std::isnan(bounds[i])) {
      y.error = unknown;
    } else if (accumulator != element) {
      y = round_bounded(y, element);
    }
    values[i] = y.value;
    bounds[i] = y.error;
  }
  return result;
}

}  // namespace

BoundedTensor dot_bounded(const Evaluation& e, const BoundedTensor& lhs, const BoundedTensor& rhs,
                          ErrorModel model) {
  const auto& a = attributes<DotAttributes>(e.node);
  int64_t products = 1;
  for (const int d : a.lhs_contract) products *= lhs.value.shape.at(static_cast<size_t>(d));
  const auto multiply = [&](const std::vector<PlanePair>& pairs) {
    std::vector<DotOperands> terms;
    for (const PlanePair& pair : pairs) terms.push_back(arrange_dot(a, pair.lhs, pair.rhs));
    return contract(terms, e.pool).reshaped(e.shape);
  };
  return contract_bounded({e, products, model, multiply}, lhs, rhs);
}

BoundedTensor convolution_bounded(const Evaluation& e, const BoundedTensor& x, const BoundedTensor& weights,
                                  ErrorModel model) {
  const auto& a = attributes<ConvolutionAttributes>(e.node);
  const int64_t channels = weights.value.shape[0];
  const auto multiply = [&](const std::vector<PlanePair>& pairs) {
    std::vector<ConvolutionTerm> terms;
    for (const PlanePair& pair : pairs) terms.push_back({pair.lhs, pair.rhs});
    return convolve(a, terms, e.shape, e.pool);
  };
  return contract_bounded({e, channels == 0 ? 0 : weights.value.count() / channels, model, multiply}, x,
                          weights);
}

}  // namespace fusewise::graph
