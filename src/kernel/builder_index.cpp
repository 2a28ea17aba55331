// Index arithmetic of the builder: canonical sums, division, and what ranges decide.
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "kernel/evaluate.h"
#include "kernel/kernel.h"

namespace fusewise::kernel {

namespace {

constexpr int64_t lowest = std::numeric_limits<int64_t>::min();
constexpr int64_t highest = std::numeric_limits<int64_t>::max();
// How deep a tree of sums or products is taken apart; what lies deeper is an atom, so that a long chain of
// additions costs neither quadratic time nor deep recursion.
constexpr int deepest = 48;
// A product with a sum of more terms is not distributed.
constexpr size_t longest_distributed = 6;

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Arithmetic on bounds, where the limits stand for infinity.
bool infinite(int64_t a) { return a == lowest || a == highest; }
__extension__ using Wide = __int128;
int64_t clamp(Wide value) {
  if (value <= lowest) return lowest;
  if (value >= highest) return highest;
  return static_cast<int64_t>(value);
}
int64_t bound_add(int64_t a, int64_t b) {
  if (infinite(a)) return a;
  if (infinite(b)) return b;
  return clamp(static_cast<Wide>(a) + b);
}
int64_t bound_mul(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a < 0) == (b < 0) ? highest : lowest;
  return clamp(static_cast<Wide>(a) * b);
}

Range range_add(const Range& a, const Range& b) { return {bound_add(a.low, b.low), bound_add(a.high, b.high)}; }

Range range_mul(const Range& a, const Range& b) {
  const auto [low, high] = std::minmax({bound_mul(a.low, b.low), bound_mul(a.low, b.high),
                                        bound_mul(a.high, b.low), bound_mul(a.high, b.high)});
  return {low, high};
}

Range range_neg(const Range& a) { return range_mul(a, {-1, -1}); }

Range range_floor_div(const Range& a, const Range& b) {
  if (b.low == b.high && b.low > 0) {
    return {infinite(a.low) ? a.low : floor_divide(a.low, b.low),
            infinite(a.high) ? a.high : floor_divide(a.high, b.low)};
  }
  if (a.low >= 0 && b.low >= 0) return {0, a.high};
  return {};
}

Range range_floor_mod(const Range& a, const Range& b) {
  if (b.low < 0) return {};
  const int64_t below = infinite(b.high) ? highest : std::max<int64_t>(b.high - 1, 0);
  return {0, a.low >= 0 ? std::min(a.high, below) : below};
}

}  // namespace

bool Builder::is_index(ExprId a) const { return kernel_.exprs[a].type == Type{DataType::int64, 1}; }

Builder::Known& Builder::known(VariableId variable) {
  if (variable >= variables_.size())
    variables_.resize(std::max<size_t>(size_t{variable} + 1, kernel_.variables.size()));
  return variables_[variable];
}

void Builder::set_range(VariableId variable, int64_t low, int64_t high) {
  Known& entry = known(variable);
  entry.range = {low, high};
  // What was derived without this knowledge is derived again when next asked for.
  if (entry.read != none && facts_.size() > entry.read) facts_.resize(entry.read);
}

void Builder::set_bound(VariableId variable, ExprId bound) { known(variable).bound = bound; }

Range Builder::range_of_expr(const Expr& e, const std::function<Range(ExprId)>& operand) const {
  if (e.type != Type{DataType::int64, 1}) return {};
  switch (e.kind) {
    case ExprKind::constant:
      return {e.value, e.value};
    case ExprKind::parameter:
      return {0, highest};
    case ExprKind::read: {
      const size_t variable = static_cast<size_t>(e.value);
      return variable < variables_.size() ? variables_[variable].range : Range{};
    }
    case ExprKind::native:
      if (e.native == Native::floor_div) return range_floor_div(operand(e.a), operand(e.b));
      if (e.native == Native::floor_mod) return range_floor_mod(operand(e.a), operand(e.b));
      return {};
    case ExprKind::apply:
      break;
    default:
      return {};
  }
  switch (e.op) {
    case ScalarOp::add:
      return range_add(operand(e.a), operand(e.b));
    case ScalarOp::sub:
      return range_add(operand(e.a), range_neg(operand(e.b)));
    case ScalarOp::mul:
      return range_mul(operand(e.a), operand(e.b));
    case ScalarOp::min: {
      const Range a = operand(e.a), b = operand(e.b);
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    }
    case ScalarOp::max: {
      const Range a = operand(e.a), b = operand(e.b);
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    }
    case ScalarOp::select: {
      const Range a = operand(e.b), b = operand(e.c);
      return {std::min(a.low, b.low), std::max(a.high, b.high)};
    }
    default:
      return {};
  }
}

// Operands come before what uses them, so one pass over what is new suffices.
const Builder::Facts& Builder::facts(ExprId a) {
  while (facts_.size() <= a) {
    const ExprId id = static_cast<ExprId>(facts_.size());
    const Expr& e = kernel_.exprs[id];
    Facts entry;
    entry.range = range_of_expr(e, [&](ExprId operand) { return operand < id ? facts_[operand].range : Range{}; });
    if (e.kind == ExprKind::read) entry.rank = static_cast<uint32_t>(e.value) + 1;
    if (e.kind == ExprKind::load) entry.rank = none;
    for (const ExprId operand : {e.a, e.b, e.c})
      if (operand < id) entry.rank = std::max(entry.rank, facts_[operand].rank);
    facts_.push_back(entry);
  }
  return facts_[a];
}

bool Builder::is_bounded(ExprId a) { return facts(a).rank != none && facts(a).range != Range{}; }

Range Builder::range(ExprId a) { return facts(a).range; }

// What outer loops determine first: variables of outer loops are created first.
bool Builder::before(ExprId a, ExprId b) {
  const uint32_t rank_a = facts(a).rank;
  const uint32_t rank_b = facts(b).rank;
  return rank_a != rank_b ? rank_a < rank_b : a < b;
}

namespace {

// The range of a bound of a loop; bounds are small, and this asks for nothing else.
struct BoundRange {
  const Kernel& kernel;
  const std::function<Range(const Expr&, const std::function<Range(ExprId)>&)>& step;
  int budget = 200;
  Range operator()(ExprId id) {
    if (--budget < 0) return {};
    return step(kernel.exprs[id], [this](ExprId operand) { return (*this)(operand); });
  }
};

}  // namespace

// Learns ranges from a statement and all below it. A variable that two statements define is left alone.
void Builder::learn(StmtId root) {
  const std::function<Range(const Expr&, const std::function<Range(ExprId)>&)> step =
      [this](const Expr& e, const std::function<Range(ExprId)>& operand) { return range_of_expr(e, operand); };
  std::vector<bool> defined(kernel_.variables.size());
  std::vector<StmtId> work = {root};
  while (!work.empty()) {
    const Stmt& stmt = kernel_.stmts[work.back()];
    work.pop_back();
    work.insert(work.end(), stmt.children.rbegin(), stmt.children.rend());
    const bool is_loop = stmt.kind == StmtKind::loop;
    if (!is_loop && stmt.kind != StmtKind::let) continue;
    if (kernel_.variables[stmt.target].type != Type{DataType::int64, 1}) continue;
    Known& entry = known(stmt.target);
    if (defined[stmt.target]) {
      entry = {};
      continue;
    }
    defined[stmt.target] = true;
    const Range first = BoundRange{kernel_, step}(stmt.a);
    entry.range = first;
    if (!is_loop) continue;
    const Range end = BoundRange{kernel_, step}(stmt.b);
    entry.range.high = infinite(end.high) ? end.high : end.high - 1;
    entry.bound = stmt.b;
  }
  facts_.clear();
}

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
    std::sort(sum.terms.begin(), sum.terms.end(), [this](const Term& a, const Term& b) {
      return before(a.product, b.product);
    });
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
      const Expr& divisor = kernel_.exprs[rest.b];
      const bool is_number = divisor.kind == ExprKind::constant;
      std::vector<ExprId> others;
      bool removed = false;
      for (const ExprId other : factors) {
        if (other == factor && !removed) removed = true;
        else others.push_back(other);
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
    if (result == none) result = scaled(term.product, c);
    else if (c < 0 && c != lowest) result = raw(ScalarOp::sub, result, scaled(term.product, -c));
    else result = raw(ScalarOp::add, result, scaled(term.product, c));
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
    if (factors.empty()) result.constant = wrapping_add(result.constant, coefficient);
    else result.terms.push_back({build_product(std::move(factors)), coefficient});
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
  if (!infinite(r.low) && !infinite(r.high) && floor_divide(r.low, divisor) == floor_divide(r.high, divisor)) {
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
    if (factors.empty()) multiples.constant = wrapping_add(multiples.constant, term.coefficient);
    else multiples.terms.push_back({build_product(std::move(factors)), term.coefficient});
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
  if (const auto dividend = constant_value(a); dividend && divisor) return integer(floor_divide(*dividend, *divisor));
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
  if (const auto dividend = constant_value(a); dividend && divisor) return integer(floor_modulo(*dividend, *divisor));
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
    if (inner.kind == ExprKind::apply && inner.op == ScalarOp::min && constant_value(b) && constant_value(inner.b))
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
    if (inner.kind == ExprKind::apply && inner.op == ScalarOp::max && constant_value(b) && constant_value(inner.b))
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
