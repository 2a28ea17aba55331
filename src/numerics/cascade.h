// The algebra of cascaded reductions: which identities there are (cascade_identities.def), what part a scalar
// operation plays in a summand, and the running state, defined once over an abstract arithmetic.
//
// A state of a reduction R with a reference M holds the raw value of M over the elements seen (their maximum, or
// their sum) and the accumulator of R, reckoned against the reference that the raw value stands for. Two states are
// combined by combining the raw values, bringing both accumulators to the new reference, and adding them; the state
// of no elements (the identities of both) changes nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "numerics/reduction_order.h"
#include "numerics/scalar_op.h"

namespace fusewise {

enum class CascadeIdentity : uint8_t {
#define CASCADE_IDENTITY(name, combine) name,
#include "numerics/cascade_identities.def"
};
std::string_view name_of(CascadeIdentity identity);
// How the reference of the identity is combined.
Combine reference_combine(CascadeIdentity identity);

enum class CascadeRole : uint8_t {
  other,
  difference,
  exponential,
  greater,
  magnitude,
  negation,
  product,
  quotient,
  root,
  sum,
};
CascadeRole cascade_role(ScalarOp op);

// What is known of a value that is no NaN. A divisor that is apart from 0 and a factor that is bounded can be pulled
// out of a sum: neither turns a sum of zeros and of others into what the single quotients would not have been.
struct KnownRange {
  bool not_negative = false;
  bool apart = false;    // at least some positive constant
  bool bounded = false;  // its magnitude is at most some constant
};
KnownRange range_of_literal(double value);
// Of the result of an operation in that role; `same`: both operands are the same value.
KnownRange range_after(CascadeRole role, KnownRange a, KnownRange b, bool same);

// The state over an arithmetic A with a type Value and constant(double), add, sub, mul, div, exp, equal (giving a
// condition) and select(condition, a, b).
template <class A>
class CascadeState {
 public:
  using V = typename A::Value;
  CascadeState(A& arithmetic, CascadeIdentity identity, double scale)
      : a_(arithmetic), identity_(identity), scale_(scale) {}

  // What summands are reckoned against when the raw value over `count` elements is `raw`. A maximum of nothing but
  // -inf stands for 0, so that what is masked adds exp(-inf) = 0 and no NaN.
  V reference(V raw, V count) {
    if (identity_ == CascadeIdentity::centred_square) return mean(raw, count);
    return a_.select(a_.equal(raw, a_.constant(-infinity)), a_.constant(0), raw);
  }
  // What brings an accumulator of `count` elements with the raw value `raw` to another reference.
  V step(V raw, V count, V to) {
    if (identity_ == CascadeIdentity::centred_square) {
      const V distance = a_.sub(mean(raw, count), to);
      const V moved = a_.mul(count, a_.mul(distance, distance));
      return a_.select(a_.equal(count, a_.constant(0)), a_.constant(0), moved);
    }
    V distance = a_.sub(raw, to);
    if (scale_ != 1) distance = a_.mul(a_.constant(scale_), distance);
    return a_.exp(distance);
  }
  V moved(V accumulator, V by_step) {
    return identity_ == CascadeIdentity::centred_square ? a_.add(accumulator, by_step)
                                                        : a_.mul(accumulator, by_step);
  }
  // What the accumulator stands for once all elements have been seen, of which there is at least one: x - m is NaN
  // where nothing but -inf has been.
  V settled(V accumulator, V raw) {
    if (identity_ == CascadeIdentity::centred_square) return accumulator;
    return a_.select(a_.equal(raw, a_.constant(-infinity)), a_.constant(not_a_number), accumulator);
  }

 private:
  static constexpr double infinity = __builtin_huge_val();
  static constexpr double not_a_number = __builtin_nan("");
  A& a_;
  CascadeIdentity identity_;
  double scale_;

  V mean(V raw, V count) {
    return a_.select(a_.equal(count, a_.constant(0)), a_.constant(0), a_.div(raw, count));
  }
};

}  // namespace fusewise
