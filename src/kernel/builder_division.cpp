// Quotients, remainders, minima and comparisons of indices: what ranges decide.
#include <algorithm>
#include <numeric>

#include "kernel/evaluate.h"
#include "kernel/index_math.h"
#include "kernel/kernel.h"

namespace fusewise::kernel {

Range Builder::range_of(const Sum& sum) {
  Range result = {sum.constant, sum.constant};
  for (const Term& term : sum.terms)
    result = range_add(result, range_mul(range(term.product), {term.coefficient, term.coefficient}));
  return result;
}

// Quotient or remainder by a constant of at least 2. Multiples of the divisor leave, then a common factor of
// coefficients and divisor, then what is left may be known to lie within one period.
ExprId Builder::divide_by_constant(const Sum& sum, int64_t divisor, bool quotient) {
  Sum multiples, rest;
  multiples.constant = floor_divide(sum.constant, divisor);
  rest.constant = floor_modulo(sum.constant, divisor);
  int64_t common = divisor;
  for (const Term& term : sum.terms) {
    const Expr& e = kernel_.exprs[term.product];
    if (term.coefficient % divisor == 0) {
      multiples.terms.push_back({term.product, term.coefficient / divisor});
    } else if (!quotient && e.kind == ExprKind::native && e.native == Native::floor_mod &&
               constant_value(e.b).value_or(1) % divisor == 0 && constant_value(e.b).value_or(0) > 0) {
      // x mod (k * divisor) is x, up to multiples of the divisor.
      Sum inner = sum;
      std::erase_if(inner.terms, [&](const Term& other) { return other.product == term.product; });
      collect(e.a, term.coefficient, inner);
      normalise(inner);
      return divide_by_constant(inner, divisor, quotient);
    } else {
      rest.terms.push_back(term);
      common = std::gcd(common, term.coefficient);
    }
  }
  const Range r = range_of(rest);
  if (r.low >= 0 && r.high < divisor) return build(quotient ? std::move(multiples) : std::move(rest));
  if (!infinite(r.low) && !infinite(r.high) &&
      floor_divide(r.low, divisor) == floor_divide(r.high, divisor)) {
    const int64_t period = floor_divide(r.low, divisor);
    Sum& result = quotient ? multiples : rest;
    result.constant = wrapping_add(result.constant, quotient ? period : wrapping_mul(period, -divisor));
    return build(std::move(result));
  }
  const int64_t left_over = rest.constant % common;
  rest.constant /= common;
  for (Term& term : rest.terms) term.coefficient /= common;
  divisor /= common;
  ExprId dividend = build(std::move(rest));
  Expr e;
  e.kind = ExprKind::native;
  e.native = quotient ? Native::floor_div : Native::floor_mod;
  if (quotient) {
    const Expr inner = kernel_.exprs[dividend];
    const bool nested = inner.kind == ExprKind::native && inner.native == Native::floor_div;
    const auto by = nested ? constant_value(inner.b) : std::nullopt;
    if (by && *by > 0 && *by <= highest / divisor) {
      Sum whole;
      collect(inner.a, 1, whole);
      multiples.terms.push_back({divide_by_constant(whole, *by * divisor, true), 1});
      Sum result;
      result.constant = multiples.constant;
      for (const Term& term : multiples.terms) collect(term.product, term.coefficient, result);
      return build(std::move(result));
    }
  }
  e.a = dividend;
  e.b = integer(divisor);
  const ExprId reduced = intern(e);
  if (quotient) {
    multiples.terms.push_back({reduced, 1});
    return build(std::move(multiples));
  }
  return build({left_over, {{reduced, common}}});
}

// By something that is no constant: multiples leave, and a variable bounded by the divisor is its own remainder.
ExprId Builder::divide_by_symbol(ExprId a, ExprId divisor, bool quotient) {
  Sum sum, multiples, rest;
  collect(a, 1, sum);
  normalise(sum);
  rest.constant = sum.constant;
  for (const Term& term : sum.terms) {
    std::vector<ExprId> factors;
    collect_factors(term.product, factors);
    const auto found = std::find(factors.begin(), factors.end(), divisor);
    if (found == factors.end()) {
      rest.terms.push_back(term);
      continue;
    }
    factors.erase(found);
    if (factors.empty())
      multiples.constant = wrapping_add(multiples.constant, term.coefficient);
    else
      multiples.terms.push_back({build_product(std::move(factors)), term.coefficient});
  }
  const ExprId left = build(rest);
  const Expr e = kernel_.exprs[left];
  const bool is_below = e.kind == ExprKind::read && range(left).low >= 0 &&
                        known(static_cast<VariableId>(e.value)).bound == divisor;
  if (is_below || (e.kind == ExprKind::constant && e.value == 0))
    return quotient ? build(std::move(multiples)) : left;
  Expr division;
  division.kind = ExprKind::native;
  division.native = quotient ? Native::floor_div : Native::floor_mod;
  division.a = left;
  division.b = divisor;
  const ExprId reduced = intern(division);
  if (!quotient) return reduced;
  multiples.terms.push_back({reduced, 1});
  return build(std::move(multiples));
}

ExprId Builder::floor_div(ExprId a, ExprId b) {
  if (!is_index(a) || !is_index(b)) return native(Native::floor_div, kernel_.exprs[a].type, a, b);
  const auto divisor = constant_value(b);
  if (const auto dividend = constant_value(a); dividend && divisor)
    return integer(floor_divide(*dividend, *divisor));
  if (!divisor) return divide_by_symbol(a, b, true);
  if (*divisor == 0) return integer(0);
  if (*divisor == 1) return a;
  if (*divisor < 0) return native(Native::floor_div, {}, a, b);
  Sum sum;
  collect(a, 1, sum);
  normalise(sum);
  return divide_by_constant(sum, *divisor, true);
}

ExprId Builder::floor_mod(ExprId a, ExprId b) {
  if (!is_index(a) || !is_index(b)) return native(Native::floor_mod, kernel_.exprs[a].type, a, b);
  const auto divisor = constant_value(b);
  if (const auto dividend = constant_value(a); dividend && divisor)
    return integer(floor_modulo(*dividend, *divisor));
  if (!divisor) return divide_by_symbol(a, b, false);
  if (*divisor == 0 || *divisor == 1) return integer(0);
  if (*divisor < 0) return native(Native::floor_mod, {}, a, b);
  Sum sum;
  collect(a, 1, sum);
  normalise(sum);
  return divide_by_constant(sum, *divisor, false);
}

namespace {

Expr binary(ScalarOp op, Type type, ExprId a, ExprId b) {
  Expr e;
  e.kind = ExprKind::apply;
  e.op = op;
  e.type = type;
  e.a = a;
  e.b = b;
  return e;
}

}  // namespace

ExprId Builder::min(ExprId a, ExprId b) {
  const Type type = kernel_.exprs[a].type;
  if (const ExprId folded = fold(ScalarOp::min, type, a, b, none); folded != none) return folded;
  if (a == b) return a;
  if (is_index(a) && is_index(b)) {
    Sum difference;
    collect(a, 1, difference);
    collect(b, -1, difference);
    normalise(difference);
    const Range r = range_of(difference);
    if (r.high <= 0) return a;
    if (r.low >= 0) return b;
    if (constant_value(a)) std::swap(a, b);
    const Expr inner = kernel_.exprs[a];
    if (inner.kind == ExprKind::apply && inner.op == ScalarOp::min && constant_value(b) &&
        constant_value(inner.b))
      return min(inner.a, integer(std::min(*constant_value(b), *constant_value(inner.b))));
  }
  if (!constant_value(b) && before(b, a)) std::swap(a, b);
  return intern(binary(ScalarOp::min, type, a, b));
}

ExprId Builder::max(ExprId a, ExprId b) {
  const Type type = kernel_.exprs[a].type;
  if (const ExprId folded = fold(ScalarOp::max, type, a, b, none); folded != none) return folded;
  if (a == b) return a;
  if (is_index(a) && is_index(b)) {
    Sum difference;
    collect(a, 1, difference);
    collect(b, -1, difference);
    normalise(difference);
    const Range r = range_of(difference);
    if (r.low >= 0) return a;
    if (r.high <= 0) return b;
    if (constant_value(a)) std::swap(a, b);
    const Expr inner = kernel_.exprs[a];
    if (inner.kind == ExprKind::apply && inner.op == ScalarOp::max && constant_value(b) &&
        constant_value(inner.b))
      return max(inner.a, integer(std::max(*constant_value(b), *constant_value(inner.b))));
  }
  if (!constant_value(b) && before(b, a)) std::swap(a, b);
  return intern(binary(ScalarOp::max, type, a, b));
}

ExprId Builder::less(ExprId a, ExprId b) {
  const Type type = {DataType::boolean, kernel_.exprs[a].type.lanes};
  if (const ExprId folded = fold(ScalarOp::less, type, a, b, none); folded != none) return folded;
  if (is_index(a) && is_index(b)) {
    Sum difference;
    collect(a, 1, difference);
    collect(b, -1, difference);
    normalise(difference);
    const Range r = range_of(difference);
    if (r.high < 0) return boolean(true);
    if (r.low >= 0) return boolean(false);
    const Expr e = kernel_.exprs[a];
    if (e.kind == ExprKind::read && known(static_cast<VariableId>(e.value)).bound == b) return boolean(true);
  }
  return intern(binary(ScalarOp::less, type, a, b));
}

ExprId Builder::logical_and(ExprId a, ExprId b) {
  if (a == b) return a;
  if (const auto value = constant_value(a)) return *value != 0 ? b : a;
  if (const auto value = constant_value(b)) return *value != 0 ? a : b;
  return intern(binary(ScalarOp::and_, kernel_.exprs[a].type, a, b));
}

}  // namespace fusewise::kernel
