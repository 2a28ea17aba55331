// Divisions, minimum and maximum of dimensions. Each folds what it can prove and keeps an atom otherwise.
#include <algorithm>

#include "base/error.h"
#include "numerics/dim_internal.h"

namespace fusewise {

using dim_internal::checked_mul;
using dim_internal::compare;
using dim_internal::make_atom;
using Kind = Dim::Atom::Kind;

namespace {

using Factors = std::vector<Dim::AtomPtr>;

bool at_least(const Dim& a, int64_t least) {
  std::optional<int64_t> bound = a.lower_bound();
  return bound && *bound >= least;
}

bool at_most(const Dim& a, int64_t most) {
  std::optional<int64_t> bound = a.upper_bound();
  return bound && *bound <= most;
}

bool atom_before(const Dim::AtomPtr& a, const Dim::AtomPtr& b) { return compare(*a, *b) < 0; }

// `a` without the factors of `b`, if it has them all. Both are sorted.
std::optional<Factors> without_factors(const Factors& a, const Factors& b) {
  Factors rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest), atom_before);
  if (rest.size() + b.size() != a.size()) return std::nullopt;
  return rest;
}

// The leading term, which for a constant has no factors.
Dim::Term leading_term(const Dim& dim) {
  return dim.is_constant() ? Dim::Term{dim.value(), {}} : dim.terms().front();
}

// The quotient if `a` is a polynomial multiple of `b` with integer coefficients: long division.
std::optional<Dim> exact_quotient(Dim a, const Dim& b) {
  constexpr int most_steps = 64;
  Dim::Term divisor = leading_term(b);
  Dim quotient;
  for (int step = 0; step < most_steps; ++step) {
    if (a.is(0)) return quotient;
    Dim::Term lead = leading_term(a);
    if (dim_internal::floor_modulo(lead.coefficient, divisor.coefficient) != 0) return std::nullopt;
    std::optional<Factors> rest = without_factors(lead.factors, divisor.factors);
    if (!rest) return std::nullopt;
    Dim part = Dim::from_terms(
        0, {{dim_internal::floor_divide(lead.coefficient, divisor.coefficient), std::move(*rest)}});
    quotient = quotient + part;
    a = a - part * b;
  }
  return std::nullopt;
}

// a = quotient * divisor + rest, with every term that divides evenly in the quotient. `divisor` is one term.
struct Split {
  Dim quotient;
  Dim rest;
};

Split split_by_term(const Dim& a, const Dim::Term& divisor) {
  std::vector<Dim::Term> quotient, rest;
  for (const Dim::Term& term : a.terms()) {
    std::optional<Factors> factors;
    if (dim_internal::floor_modulo(term.coefficient, divisor.coefficient) == 0)
      factors = without_factors(term.factors, divisor.factors);
    if (factors)
      quotient.push_back(
          {dim_internal::floor_divide(term.coefficient, divisor.coefficient), std::move(*factors)});
    else
      rest.push_back(term);
  }
  return {Dim::from_terms(0, std::move(quotient)), Dim::from_terms(a.constant_part(), std::move(rest))};
}

// a = quotient * divisor + rest, coefficients of the rest smaller than the divisor and of the sign they had,
// its constant in [0, divisor). For modulo all coefficients are made non-negative.
Split split_by_constant(const Dim& a, int64_t divisor, bool non_negative) {
  std::vector<Dim::Term> quotient, rest;
  for (const Dim::Term& term : a.terms()) {
    int64_t q =
        non_negative ? dim_internal::floor_divide(term.coefficient, divisor) : term.coefficient / divisor;
    int64_t r = term.coefficient - q * divisor;
    if (q != 0) quotient.push_back({q, term.factors});
    if (r != 0) rest.push_back({r, term.factors});
  }
  int64_t q = dim_internal::floor_divide(a.constant_part(), divisor);
  int64_t r = a.constant_part() - q * divisor;
  return {Dim::from_terms(q, std::move(quotient)), Dim::from_terms(r, std::move(rest))};
}

int64_t coefficient_gcd(const Dim& a, int64_t start) {
  int64_t g = start;
  for (const Dim::Term& term : a.terms()) g = dim_internal::common_divisor(g, term.coefficient);
  return g;
}

// The atoms that divide every term of `a` and of `b`; none when either has a constant part.
Factors common_factors(const Dim& a, const Dim& b) {
  if (a.constant_part() != 0 || b.constant_part() != 0 || a.is_constant() || b.is_constant()) return {};
  Factors common = a.terms().front().factors;
  auto keep = [&common](const Dim& dim) {
    for (const Dim::Term& term : dim.terms()) {
      Factors both;
      std::set_intersection(common.begin(), common.end(), term.factors.begin(), term.factors.end(),
                            std::back_inserter(both), atom_before);
      common = std::move(both);
    }
  };
  keep(a);
  keep(b);
  return common;
}

// The term by which both sides may be divided; coefficient 1 and no factors if nothing is common.
Dim::Term common_term(const Dim& a, const Dim& b) {
  int64_t g = dim_internal::common_divisor(a.constant_part(), b.constant_part());
  g = coefficient_gcd(b, coefficient_gcd(a, g));
  return {g == 0 ? 1 : g, common_factors(a, b)};
}

bool is_trivial(const Dim::Term& term) { return term.coefficient == 1 && term.factors.empty(); }

// (a - a mod g) / g for coefficients that are all multiples of g.
Dim scaled_down(const Dim& a, int64_t g) { return split_by_constant(a, g, false).quotient; }

// The atom if `a` is exactly one atom plus a constant.
const Dim::Atom* single_atom(const Dim& a) {
  if (a.terms().size() != 1) return nullptr;
  const Dim::Term& term = a.terms().front();
  return term.coefficient == 1 && term.factors.size() == 1 ? term.factors[0].get() : nullptr;
}

// floor(rest / b) where `rest` came from split_by_constant and b > 1.
Dim floor_div_rest(Dim rest, int64_t b) {
  if (rest.is_constant()) return 0;
  // The sign of the leading term is made positive: floor(-y / b) = -floor((y + b - 1) / b).
  if (rest.terms().front().coefficient < 0) return Dim(0) - floor_div(Dim(b - 1) - rest, b);
  int64_t g = coefficient_gcd(rest, b);
  if (g > 1)
    return floor_div(scaled_down(rest, g), b / g);  // floor((g*y + c) / (g*d)) = floor((y + floor(c/g)) / d)
  std::optional<int64_t> low = rest.lower_bound(), high = rest.upper_bound();
  if (low && high && dim_internal::floor_divide(*low, b) == dim_internal::floor_divide(*high, b))
    return dim_internal::floor_divide(*low, b);
  // floor((floor(x / c) + k) / b) = floor((x + c*k) / (c*b)) for c > 0.
  const Dim::Atom* inner = single_atom(rest);
  if (inner && inner->kind == Kind::floor_div && inner->b.is_constant()) {
    int64_t c = inner->b.value(), divisor, shift;
    if (c > 0 && !__builtin_mul_overflow(c, b, &divisor) &&
        !__builtin_mul_overflow(c, rest.constant_part(), &shift))
      return floor_div(inner->a + shift, divisor);
  }
  return make_atom(Kind::floor_div, rest, b);
}

Dim floor_div_by_constant(const Dim& a, int64_t b) {
  if (a.is_constant()) return dim_internal::floor_divide(a.value(), b);
  if (b == 0) throw UserError("a dimension is divided by zero");
  if (b < 0) return floor_div(Dim(0) - a, checked_mul(b, -1));
  if (b == 1) return a;
  Split split = split_by_constant(a, b, false);
  return split.quotient + floor_div_rest(std::move(split.rest), b);
}

// What floor and ceiling division by a symbolic divisor share: the part of `a` that divides evenly, and both
// sides of the rest without their common factor.
struct Reduced {
  Dim quotient;
  Dim a, b;
};

Reduced reduce_division(const Dim& a, const Dim& b) {
  if (std::optional<Dim> quotient = exact_quotient(a, b)) return {std::move(*quotient), 0, 1};
  Reduced reduced{0, a, b};
  if (b.terms().size() == 1 && b.constant_part() == 0) {
    Split split = split_by_term(a, b.terms().front());
    reduced.quotient = std::move(split.quotient);
    reduced.a = std::move(split.rest);
  }
  Dim::Term common = common_term(reduced.a, b);
  if (!is_trivial(common)) {
    Dim divisor = Dim::from_terms(0, {common});
    reduced.a = exact_quotient(reduced.a, divisor).value_or(0);
    reduced.b = exact_quotient(b, divisor).value_or(1);
    check(reduced.a * divisor + reduced.quotient * b == a,
          "dividing by the common factor changed a dimension");
  }
  return reduced;
}

Dim pick(Kind kind, const Dim& a, const Dim& b) {
  bool smaller = kind == Kind::min;
  if (a.is_constant() && b.is_constant())
    return smaller ? std::min(a.value(), b.value()) : std::max(a.value(), b.value());
  if (a == b) return a;
  Dim difference = a - b;
  if (at_least(difference, 0)) return smaller ? b : a;
  if (at_most(difference, 0)) return smaller ? a : b;
  // min(a, min(a, c)) = min(a, c) and max(a, min(a, c)) = a.
  auto contains = [](const Dim& outer, Kind outer_kind, const Dim& inner) {
    const Dim::Atom* atom = outer.constant_part() == 0 ? single_atom(outer) : nullptr;
    return atom && atom->kind == outer_kind && (atom->a == inner || atom->b == inner);
  };
  const Kind other = smaller ? Kind::max : Kind::min;
  if (contains(a, kind, b) || contains(b, other, a)) return a;
  if (contains(b, kind, a) || contains(a, other, b)) return b;
  return a < b ? make_atom(kind, a, b) : make_atom(kind, b, a);
}

}  // namespace

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.is_constant()) return floor_div_by_constant(a, b.value());
  if (a.is(0)) return 0;
  Reduced reduced = reduce_division(a, b);
  if (reduced.a.is(0)) return reduced.quotient;
  if (reduced.b.is_constant()) return reduced.quotient + floor_div(reduced.a, reduced.b);
  if (at_least(reduced.a, 0) && at_least(reduced.b - reduced.a, 1)) return reduced.quotient;
  return reduced.quotient + make_atom(Kind::floor_div, reduced.a, reduced.b);
}

Dim ceil_div(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return dim_internal::ceil_divide(a.value(), b.value());
  if (b.is_constant()) {
    if (b.is(0)) throw UserError("a dimension is divided by zero");
    if (b.value() < 0) return ceil_div(Dim(0) - a, Dim(0) - b);
    return floor_div(a + Dim(b.value() - 1), b);  // one form for both roundings, so that they compare
  }
  if (a.is(0)) return 0;
  Reduced reduced = reduce_division(a, b);
  if (reduced.a.is(0)) return reduced.quotient;
  if (reduced.b.is_constant()) return reduced.quotient + ceil_div(reduced.a, reduced.b);
  if (at_least(reduced.a, 1) && at_least(reduced.b - reduced.a, 0)) return reduced.quotient + 1;
  return reduced.quotient + make_atom(Kind::ceil_div, reduced.a, reduced.b);
}

Dim modulo(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return dim_internal::floor_modulo(a.value(), b.value());
  if (b.is_constant()) {
    int64_t divisor = b.value();
    if (divisor == 0) throw UserError("a dimension is divided by zero");
    if (divisor < 0) return Dim(0) - modulo(Dim(0) - a, checked_mul(divisor, -1));
    Dim rest = split_by_constant(a, divisor, true).rest;
    if (rest.is_constant()) return rest;
    if (at_least(rest, 0) && at_most(rest, divisor - 1)) return rest;
    int64_t g =
        coefficient_gcd(rest, divisor);  // (g*y + c) mod (g*d) = g * ((y + floor(c/g)) mod d) + c mod g
    if (g > 1) return modulo(scaled_down(rest, g), divisor / g) * g + rest.constant_part() % g;
    return make_atom(Kind::modulo, rest, b);
  }
  if (a.is(0)) return 0;
  Reduced reduced = reduce_division(a, b);
  if (reduced.a.is(0)) return 0;
  if (at_least(reduced.a, 0) && at_least(reduced.b - reduced.a, 1)) return a - reduced.quotient * b;
  std::optional<Dim> common = exact_quotient(b, reduced.b);
  check(common.has_value(), "the common factor of a modulo was lost");
  if (reduced.b.is_constant()) return modulo(reduced.a, reduced.b) * *common;
  return make_atom(Kind::modulo, reduced.a, reduced.b) * *common;
}

Dim min(const Dim& a, const Dim& b) { return pick(Kind::min, a, b); }
Dim max(const Dim& a, const Dim& b) { return pick(Kind::max, a, b); }

}  // namespace fusewise
