#include "graph/form_index.h"

#include <algorithm>
#include <span>

namespace fusewise::graph {

namespace {

// a / b where normalisation shows that b divides a.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (b.is(1)) return a;
  Dim quotient = floor_div(a, b);
  if (quotient * b == a) return quotient;
  return std::nullopt;
}

bool provably_less(const Dim& a, const Dim& b) {
  const std::optional<int64_t> most = (a - b).upper_bound();
  return most && *most < 0;
}

bool is_nonnegative(const Dim& a) {
  const std::optional<int64_t> least = a.lower_bound();
  return least && *least >= 0;
}

// The greatest value of an index whose constant and coefficients are at least 0; nothing otherwise.
std::optional<Dim> greatest(const LinearIndex& index, const std::vector<Axis>& axes) {
  Dim sum = index.constant;
  if (!is_nonnegative(sum)) return std::nullopt;
  for (const AxisTerm& term : index.terms) {
    if (!is_nonnegative(term.coefficient)) return std::nullopt;
    sum = sum + term.coefficient * (axes[static_cast<size_t>(term.axis)].extent - 1);
  }
  return sum;
}

bool stays_below(const LinearIndex& index, const Dim& bound, const std::vector<Axis>& axes) {
  const std::optional<Dim> most = greatest(index, axes);
  return most && provably_less(*most, bound);
}

void add_scaled(LinearIndex& index, const LinearIndex& other, const Dim& factor) {
  index.constant = index.constant + other.constant * factor;
  for (const AxisTerm& term : other.terms) add_term(index, term.axis, term.coefficient * factor);
}

// Moves the multiples of `divisor` from `from` into the returned index, divided by it.
LinearIndex take_multiples(LinearIndex& from, const Dim& divisor) {
  LinearIndex taken;
  std::erase_if(from.terms, [&](const AxisTerm& term) {
    const std::optional<Dim> quotient = exact_quotient(term.coefficient, divisor);
    if (quotient) add_term(taken, term.axis, *quotient);
    return quotient.has_value();
  });
  if (const std::optional<Dim> quotient = exact_quotient(from.constant, divisor)) {
    taken.constant = *quotient;
    from.constant = 0;
  } else if (from.constant.is_constant() && divisor.is_constant() && !divisor.is(0)) {
    taken.constant = floor_div(from.constant, divisor);
    from.constant = modulo(from.constant, divisor);
  }
  return taken;
}

// Whether b's value differs from a's by a multiple of `period`, whatever the axes are.
bool equal_modulo(const LinearIndex& a, const LinearIndex& b, const Dim& period) {
  LinearIndex rest = a;
  add_scaled(rest, b, -1);
  take_multiples(rest, period);
  return rest.terms.empty() && rest.constant.is(0);
}

// floor(x / (d * m)) * m + floor(x / d) mod m = floor(x / d), and the same with a modulus n on the left, which is
// m * n on the right: `high` and `low` in one term.
std::optional<QuasiTerm> joined(const QuasiTerm& high, const QuasiTerm& low) {
  if (low.modulus.is(0) || high.divisor != low.divisor * low.modulus ||
      high.coefficient != low.coefficient * low.modulus || !equal_modulo(high.inner, low.inner, high.divisor))
    return std::nullopt;
  return QuasiTerm{high.inner, low.divisor, high.modulus * low.modulus, low.coefficient};
}

// Takes two terms that are one from the list.
std::optional<QuasiTerm> take_joined(std::vector<QuasiTerm>& terms) {
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t j = 0; j < terms.size(); ++j) {
      if (i == j) continue;
      std::optional<QuasiTerm> one = joined(terms[i], terms[j]);
      if (!one) continue;
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
      return one;
    }
  return std::nullopt;
}

// One group of matched dimensions: operand dimensions `dims` and result axes `group`, both without those of
// 1.
void index_group(std::vector<IndexExpr>& index, const Shape& operand, std::span<const int> dims,
                 std::span<const int> group, const std::vector<Axis>& axes) {
  LinearIndex flat;
  Dim stride = 1;
  for (size_t i = group.size(); i-- > 0;) {
    add_term(flat, group[i], stride);
    stride = stride * axes[static_cast<size_t>(group[i])].extent;
  }
  std::ranges::sort(flat.terms, {}, &AxisTerm::axis);
  Dim divisor = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const size_t d = static_cast<size_t>(dims[i]);
    add_quasi(index[d], {flat, divisor, i == 0 ? Dim(0) : operand[d], 1}, axes);
    divisor = divisor * operand[d];
  }
}

}  // namespace

void add_term(LinearIndex& index, int axis, const Dim& coefficient) {
  const auto place = std::ranges::lower_bound(index.terms, axis, {}, &AxisTerm::axis);
  if (place == index.terms.end() || place->axis != axis) {
    if (!coefficient.is(0)) index.terms.insert(place, {axis, coefficient});
    return;
  }
  place->coefficient = place->coefficient + coefficient;
  if (place->coefficient.is(0)) index.terms.erase(place);
}

void add_quasi(IndexExpr& index, QuasiTerm term, const std::vector<Axis>& axes) {
  if (!term.modulus.is(0)) {
    const Dim period = term.divisor * term.modulus;
    if (stays_below(term.inner, period, axes))
      term.modulus = 0;
    else
      take_multiples(term.inner, period);  // (x * period + rest) / divisor = x * modulus + rest / divisor
  }
  if (!term.modulus.is(0) && stays_below(term.inner, term.divisor * term.modulus, axes)) term.modulus = 0;
  if (term.modulus.is(0)) {
    add_scaled(index.linear, take_multiples(term.inner, term.divisor), term.coefficient);
    if (term.divisor.is(1) || stays_below(term.inner, term.divisor, axes)) return;
  }
  if (term.inner.terms.empty() && term.inner.constant.is(0)) return;
  index.quasi.push_back(std::move(term));
}

std::optional<IndexExpr> substitute(const IndexExpr& outer, const std::vector<IndexExpr>& inner,
                                    const std::vector<Axis>& axes) {
  if (outer.gathered) return std::nullopt;
  IndexExpr result;
  result.linear.constant = outer.linear.constant;
  for (const AxisTerm& term : outer.linear.terms) {
    const IndexExpr& index = inner[static_cast<size_t>(term.axis)];
    if (index.gathered) return std::nullopt;
    add_scaled(result.linear, index.linear, term.coefficient);
    for (QuasiTerm quasi : index.quasi) {
      quasi.coefficient = quasi.coefficient * term.coefficient;
      result.quasi.push_back(std::move(quasi));
    }
  }
  for (QuasiTerm quasi : outer.quasi) {
    LinearIndex replaced;
    replaced.constant = quasi.inner.constant;
    for (const AxisTerm& term : quasi.inner.terms) {
      const IndexExpr& index = inner[static_cast<size_t>(term.axis)];
      if (index.gathered || !index.quasi.empty()) return std::nullopt;
      add_scaled(replaced, index.linear, term.coefficient);
    }
    quasi.inner = std::move(replaced);
    result.quasi.push_back(std::move(quasi));
  }
  // Each in its simplest form first: what differs by a whole period is equal then.
  std::vector<QuasiTerm> terms = std::move(result.quasi);
  result.quasi.clear();
  for (QuasiTerm& term : terms) add_quasi(result, std::move(term), axes);
  while (std::optional<QuasiTerm> one = take_joined(result.quasi)) add_quasi(result, std::move(*one), axes);
  return result;
}

std::vector<IndexExpr> reshape_index(const Shape& operand, const std::vector<Axis>& axes) {
  std::vector<IndexExpr> index(operand.size());
  std::vector<int> dims, group;
  for (size_t d = 0; d < operand.size(); ++d)
    if (!operand[d].is(1)) dims.push_back(static_cast<int>(d));
  for (size_t a = 0; a < axes.size(); ++a)
    if (!axes[a].extent.is(1)) group.push_back(static_cast<int>(a));

  std::span<const int> left = dims, right = group;
  while (!left.empty() && !right.empty()) {
    // The products of the first i dimensions and of the first j axes; the smallest equal pair wins.
    std::vector<Dim> products{1};
    for (int a : right) products.push_back(products.back() * axes[static_cast<size_t>(a)].extent);
    size_t i = 0, j = 0;
    Dim product_left = 1;
    for (i = 1; i <= left.size() && j == 0; ++i) {
      product_left = product_left * operand[static_cast<size_t>(left[i - 1])];
      const auto match = std::find(products.begin() + 1, products.end(), product_left);
      if (match != products.end()) j = static_cast<size_t>(match - products.begin());
    }
    const size_t taken = j == 0 ? left.size() : i - 1;
    if (j == 0) j = right.size();
    // Last of a kind: axes or dimensions that remain alone have a product of 1 at run time, or nothing is
    // read.
    index_group(index, operand, left.first(taken), right.first(j), axes);
    left = left.subspan(taken);
    right = right.subspan(j);
  }
  return index;
}

}  // namespace fusewise::graph
