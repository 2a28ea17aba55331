// What is known about a dimension for all values of its symbols: bounds by interval arithmetic, divisors.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "numerics/dim_internal.h"

namespace fusewise {
namespace {

constexpr int64_t plus_infinity = std::numeric_limits<int64_t>::max();
constexpr int64_t minus_infinity = std::numeric_limits<int64_t>::min();

bool finite(int64_t x) { return x != plus_infinity && x != minus_infinity; }

// Bounds, each possibly infinite. A bound that leaves 64 bits counts as infinite: evaluation refuses there.
struct Interval {
  int64_t low = minus_infinity;
  int64_t high = plus_infinity;
};

int64_t add_bounds(int64_t a, int64_t b, int64_t unknown) {
  if (!finite(a) || !finite(b)) {
    if (finite(a)) return b;
    if (finite(b) || a == b) return a;
    return unknown;
  }
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return a > 0 ? plus_infinity : minus_infinity;
  return sum;
}

int64_t multiply_bounds(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t by_sign = (a < 0) == (b < 0) ? plus_infinity : minus_infinity;
  int64_t product;
  if (!finite(a) || !finite(b) || __builtin_mul_overflow(a, b, &product)) return by_sign;
  return product;
}

Interval operator+(Interval a, Interval b) {
  return {add_bounds(a.low, b.low, minus_infinity), add_bounds(a.high, b.high, plus_infinity)};
}

Interval operator*(Interval a, Interval b) {
  auto [low, high] = std::minmax({multiply_bounds(a.low, b.low), multiply_bounds(a.low, b.high),
                                  multiply_bounds(a.high, b.low), multiply_bounds(a.high, b.high)});
  return {low, high};
}

// floor(a / b) or ceil(a / b) for b > 0, possibly infinite.
int64_t divide_bounds(int64_t a, int64_t b, bool up) {
  if (!finite(a)) return a;
  if (!finite(b)) return up ? (a > 0 ? 1 : 0) : (a < 0 ? -1 : 0);
  return up ? dim_internal::ceil_divide(a, b) : dim_internal::floor_divide(a, b);
}

Interval interval_of(const Dim& dim, int64_t least);

Interval divide(Interval a, Interval b, bool up) {
  if (b.low < 0) return {};
  b.low = std::max<int64_t>(b.low, 1);  // a divisor is never 0
  b.high = std::max(b.low, b.high);
  auto [low, high] = std::minmax({divide_bounds(a.low, b.low, up), divide_bounds(a.low, b.high, up),
                                  divide_bounds(a.high, b.low, up), divide_bounds(a.high, b.high, up)});
  return {low, high};
}

Interval interval_of(const Dim::Atom& atom, int64_t least) {
  using Kind = Dim::Atom::Kind;
  if (atom.kind == Kind::symbol) return {least, plus_infinity};
  Interval a = interval_of(atom.a, least);
  Interval b = interval_of(atom.b, least);
  switch (atom.kind) {
    case Kind::floor_div:
      return divide(a, b, false);
    case Kind::ceil_div:
      return divide(a, b, true);
    case Kind::modulo:
      if (b.low < 0) return {};
      b.high = finite(b.high) ? std::max<int64_t>(b.high - 1, 0) : plus_infinity;
      if (a.low >= 0) b.high = std::min(a.high, b.high);
      return {0, b.high};
    case Kind::min:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Kind::max:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Kind::symbol:
      break;
  }
  throw InternalError("unknown kind of dimension atom");
}

Interval interval_of(const Dim& dim, int64_t least) {
  Interval sum{dim.constant_part(), dim.constant_part()};
  for (const Dim::Term& term : dim.terms()) {
    Interval product{term.coefficient, term.coefficient};
    for (const Dim::AtomPtr& factor : term.factors) product = product * interval_of(*factor, least);
    sum = sum + product;
  }
  return sum;
}

// A number that divides the dimension for all symbol values; 0 for the constant 0.
int64_t known_divisor(const Dim& dim);

int64_t known_divisor(const Dim::Atom& atom) {
  using Kind = Dim::Atom::Kind;
  if (atom.kind != Kind::min && atom.kind != Kind::max && atom.kind != Kind::modulo) return 1;
  return dim_internal::common_divisor(known_divisor(atom.a), known_divisor(atom.b));
}

int64_t known_divisor(const Dim& dim) {
  int64_t divisor = dim.constant_part();
  for (const Dim::Term& term : dim.terms()) {
    int64_t product = term.coefficient;
    for (const Dim::AtomPtr& factor : term.factors) {
      int64_t grown;
      if (!__builtin_mul_overflow(product, known_divisor(*factor), &grown)) product = grown;
    }
    divisor = dim_internal::common_divisor(divisor, product);
  }
  return divisor;
}

}  // namespace

std::optional<int64_t> Dim::lower_bound(int64_t least) const {
  if (!expression_) return constant_;
  int64_t low = interval_of(*this, least).low;
  if (!finite(low)) return std::nullopt;
  return low;
}

std::optional<int64_t> Dim::upper_bound() const {
  if (!expression_) return constant_;
  int64_t high = interval_of(*this, 0).high;
  if (!finite(high)) return std::nullopt;
  return high;
}

bool Dim::is_multiple_of(int64_t divisor) const {
  if (divisor == 0) return is(0);
  if (divisor == -1 || divisor == 1) return true;
  return known_divisor(*this) % divisor == 0;
}

}  // namespace fusewise
