// Index arithmetic of the builder: canonical sums and products.
#include <algorithm>

#include "base/error.h"
#include "kernel/index_math.h"
#include "kernel/kernel.h"

namespace fusewise::kernel {

namespace {

// How deep a tree of sums or products is taken apart; what lies deeper is an atom, so that a long chain of
// additions costs neither quadratic time nor deep recursion.
constexpr int deepest = 48;
// A product with a sum of more terms is not distributed.
constexpr size_t longest_distributed = 6;

}  // namespace

// Adds factor * a to the sum.
void Builder::collect(ExprId a, int64_t factor, Sum& sum, int depth) {
  const Expr e = kernel_.exprs[a];
  if (e.kind == ExprKind::constant) {
    sum.constant = wrapping_add(sum.constant, wrapping_mul(factor, e.value));
    return;
  }
  if (e.kind == ExprKind::apply && depth < deepest) {
    if (e.op == ScalarOp::add || e.op == ScalarOp::sub) {
      collect(e.a, factor, sum, depth + 1);
      collect(e.b, e.op == ScalarOp::add ? factor : wrapping_mul(factor, -1), sum, depth + 1);
      return;
    }
    if (e.op == ScalarOp::mul && kernel_.exprs[e.b].kind == ExprKind::constant) {
      collect(e.a, wrapping_mul(factor, kernel_.exprs[e.b].value), sum, depth + 1);
      return;
    }
    if (e.op == ScalarOp::neg) {
      collect(e.a, wrapping_mul(factor, -1), sum, depth + 1);
      return;
    }
  }
  sum.terms.push_back({a, factor});
}

// Sorts and merges like terms, then joins quotients with remainders.
void Builder::normalise(Sum& sum) {
  for (;;) {
    std::sort(sum.terms.begin(), sum.terms.end(),
              [this](const Term& a, const Term& b) { return before(a.product, b.product); });
    size_t count = 0;
    for (const Term& term : sum.terms) {
      if (count > 0 && sum.terms[count - 1].product == term.product) {
        sum.terms[count - 1].coefficient = wrapping_add(sum.terms[count - 1].coefficient, term.coefficient);
      } else {
        if (count > 0 && sum.terms[count - 1].coefficient == 0) --count;
        sum.terms[count++] = term;
      }
    }
    if (count > 0 && sum.terms[count - 1].coefficient == 0) --count;
    sum.terms.resize(count);
    if (!join_division(sum)) return;
  }
}

// (x / w) * w * s + (x mod w) * s  ->  x * s, for one pair of terms. Quotients may be scaled by further factors.
bool Builder::join_division(Sum& sum) {
  for (size_t r = 0; r < sum.terms.size(); ++r) {
    std::vector<ExprId> factors;
    collect_factors(sum.terms[r].product, factors);
    for (const ExprId factor : factors) {
      const Expr rest = kernel_.exprs[factor];
      if (rest.kind != ExprKind::native || rest.native != Native::floor_mod || !is_index(factor)) continue;
      Expr quotient = rest;
      quotient.native = Native::floor_div;
      const auto found = known_.find(quotient);
      if (found == known_.end()) continue;
      const Expr divisor = kernel_.exprs[rest.b];  // a copy: what is built below moves the expressions
      const bool is_number = divisor.kind == ExprKind::constant;
      std::vector<ExprId> others;
      bool removed = false;
      for (const ExprId other : factors) {
        if (other == factor && !removed)
          removed = true;
        else
          others.push_back(other);
      }
      std::vector<ExprId> partner = others;
      partner.push_back(found->second);
      if (!is_number) collect_factors(rest.b, partner);
      const ExprId product = build_product(std::move(partner));
      const int64_t scale = sum.terms[r].coefficient;
      const int64_t wanted = is_number ? wrapping_mul(scale, divisor.value) : scale;
      for (size_t q = 0; q < sum.terms.size(); ++q) {
        if (sum.terms[q].product != product || sum.terms[q].coefficient != wanted) continue;
        sum.terms.erase(sum.terms.begin() + static_cast<std::ptrdiff_t>(std::max(q, r)));
        sum.terms.erase(sum.terms.begin() + static_cast<std::ptrdiff_t>(std::min(q, r)));
        collect(others.empty() ? rest.a : multiply(rest.a, build_product(std::move(others))), scale, sum);
        return true;
      }
    }
  }
  return false;
}

ExprId Builder::build(Sum sum) {
  normalise(sum);
  const auto raw = [this](ScalarOp op, ExprId a, ExprId b) {
    Expr e;
    e.kind = ExprKind::apply;
    e.op = op;
    e.a = a;
    e.b = b;
    return intern(e);
  };
  const auto scaled = [&](ExprId product, int64_t by) {
    return by == 1 ? product : raw(ScalarOp::mul, product, integer(by));
  };
  ExprId result = none;
  for (const Term& term : sum.terms) {
    const int64_t c = term.coefficient;
    if (result == none)
      result = scaled(term.product, c);
    else if (c < 0 && c != lowest)
      result = raw(ScalarOp::sub, result, scaled(term.product, -c));
    else
      result = raw(ScalarOp::add, result, scaled(term.product, c));
  }
  if (result == none) return integer(sum.constant);
  return sum.constant == 0 ? result : raw(ScalarOp::add, result, integer(sum.constant));
}

void Builder::collect_factors(ExprId a, std::vector<ExprId>& factors, int depth) const {
  const Expr& e = kernel_.exprs[a];
  if (e.kind == ExprKind::apply && e.op == ScalarOp::mul && depth < deepest) {
    collect_factors(e.a, factors, depth + 1);
    collect_factors(e.b, factors, depth + 1);
  } else {
    factors.push_back(a);
  }
}

ExprId Builder::build_product(std::vector<ExprId> factors) {
  std::sort(factors.begin(), factors.end(), [this](ExprId a, ExprId b) { return before(a, b); });
  ExprId result = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) {
    Expr e;
    e.kind = ExprKind::apply;
    e.op = ScalarOp::mul;
    e.a = result;
    e.b = factors[i];
    result = intern(e);
  }
  return result;
}

// The product of two scalars; constants are gathered, and a sum is distributed over a single product.
ExprId Builder::multiply(ExprId a, ExprId b) {
  Sum left, right;
  collect(a, 1, left);
  collect(b, 1, right);
  if (left.terms.empty() || right.terms.empty()) {
    const bool scale_right = left.terms.empty();
    Sum result;
    collect(scale_right ? b : a, scale_right ? left.constant : right.constant, result);
    return build(std::move(result));
  }
  normalise(left);
  normalise(right);
  const auto is_product = [](const Sum& sum) { return sum.constant == 0 && sum.terms.size() == 1; };
  if (!is_product(right)) std::swap(left, right);
  if (!is_product(right) || left.terms.size() > longest_distributed) {
    left = {0, {{build(std::move(left)), 1}}};
    right = {0, {{build(std::move(right)), 1}}};
    // A sum that is a number after all was joined from quotients and remainders.
    for (const Sum* side : {&left, &right})
      if (kernel_.exprs[side->terms[0].product].kind == ExprKind::constant)
        return multiply(left.terms[0].product, right.terms[0].product);
  }
  const Term by = right.terms[0];
  Sum result;
  if (left.constant != 0) result.terms.push_back({by.product, wrapping_mul(left.constant, by.coefficient)});
  for (const Term& term : left.terms) {
    std::vector<ExprId> factors;
    collect_factors(term.product, factors);
    collect_factors(by.product, factors);
    // Factors that are constants sit inside products that were not distributed.
    int64_t coefficient = wrapping_mul(term.coefficient, by.coefficient);
    std::erase_if(factors, [&](ExprId factor) {
      const Expr& e = kernel_.exprs[factor];
      if (e.kind != ExprKind::constant) return false;
      coefficient = wrapping_mul(coefficient, e.value);
      return true;
    });
    if (factors.empty())
      result.constant = wrapping_add(result.constant, coefficient);
    else
      result.terms.push_back({build_product(std::move(factors)), coefficient});
  }
  return build(std::move(result));
}

// A vector of indices as base and stride; a broadcast has the stride 0.
std::optional<std::pair<ExprId, int64_t>> Builder::as_ramp(ExprId a) {
  const Expr e = kernel_.exprs[a];
  if (e.type.element != DataType::int64) return std::nullopt;
  if (e.kind == ExprKind::ramp) return std::pair{e.a, e.value};
  if (e.kind == ExprKind::broadcast) return std::pair{e.a, int64_t{0}};
  if (e.kind == ExprKind::constant) return std::pair{integer(e.value), int64_t{0}};
  return std::nullopt;
}

// Sums and products of vectors, through ramps where both sides are ramps or broadcasts.
ExprId Builder::index_vector(ScalarOp op, ExprId a, ExprId b) {
  const Type type = kernel_.exprs[a].type;
  const auto left = as_ramp(a);
  const auto right = as_ramp(b);
  if (left && right) {
    if (op == ScalarOp::add)
      return ramp(add(left->first, right->first), wrapping_add(left->second, right->second), type.lanes);
    if (op == ScalarOp::sub)
      return ramp(sub(left->first, right->first), wrapping_add(left->second, wrapping_mul(right->second, -1)),
                  type.lanes);
    if (left->second == 0 && right->second == 0) return broadcast(mul(left->first, right->first), type.lanes);
    const auto scale = constant_value(right->second == 0 ? right->first : left->first);
    if (scale && (left->second == 0 || right->second == 0)) {
      const auto& scaled = right->second == 0 ? *left : *right;
      return ramp(mul(scaled.first, integer(*scale)), wrapping_mul(scaled.second, *scale), type.lanes);
    }
  }
  const auto left_value = constant_value(a);
  const auto right_value = constant_value(b);
  if (right_value && *right_value == (op == ScalarOp::mul ? 1 : 0)) return a;
  if (left_value && op != ScalarOp::sub && *left_value == (op == ScalarOp::mul ? 1 : 0)) return b;
  Expr e;
  e.kind = ExprKind::apply;
  e.op = op;
  e.type = type;
  e.a = a;
  e.b = b;
  return intern(e);
}

ExprId Builder::add(ExprId a, ExprId b) {
  if (!is_index(a) || !is_index(b)) return index_vector(ScalarOp::add, a, b);
  Sum sum;
  collect(a, 1, sum);
  collect(b, 1, sum);
  return build(std::move(sum));
}

ExprId Builder::sub(ExprId a, ExprId b) {
  if (!is_index(a) || !is_index(b)) return index_vector(ScalarOp::sub, a, b);
  Sum sum;
  collect(a, 1, sum);
  collect(b, -1, sum);
  return build(std::move(sum));
}

ExprId Builder::mul(ExprId a, ExprId b) {
  if (!is_index(a) || !is_index(b)) return index_vector(ScalarOp::mul, a, b);
  return multiply(a, b);
}

}  // namespace fusewise::kernel
