// Numbers with an error bound, for an interpreter in double precision that says how far a correct evaluation in
// the model's types may be from it.
//
// A Bounded (v, e) stands for all numbers within e of v: whatever a correct evaluation computes there. An exact
// infinity or NaN has error 0. An infinite error means that nothing is known (a divisor or a logarithm's operand
// that may be 0, a sum or product that may overflow). Booleans are 0 and 1, with error 1 when undecided.
//
// Each operation takes the error of its operands through, by the bounds below, and adds its own rounding:
//   add, sub     ea + eb                       mul    |a| eb + |b| ea + ea eb
//   div          (ea + |a/b| eb) / (|b| - eb)  sqrt   e / (sqrt(v) + sqrt(v - e))
//   exp          exp(v) (exp(e) - 1)           log    -log(1 - e/v)
//   tanh, erf, atan   e times the greatest slope between v - e and v + e; sin, cos: e; tan: e / (|cos v| - e)^2
//   pow          exp rule on y log x; an exact whole exponent n: |n| (|x| + e)^(n-1) e
//   abs, neg, max, min   no rounding           floor, ceil, round, trunc, sign, casts   the values at both ends
//   compare, select      decided when the intervals are apart, either outcome otherwise
// Rounding to a type is at most u |v| + s / 2, u its unit roundoff and s its least positive number; a function errs
// by ulp_bound times twice that. The half types round once in float32 and once when stored.
#pragma once

#include <span>

#include "numerics/scalar_op.h"

namespace fusewise {

struct Bounded {
  double value = 0;
  double error = 0;
};

int significand_bits(DataType type);   // with the hidden one; 0 for integers
double unit_roundoff(DataType type);   // half the relative spacing: 2^-24 for float32; 0 for integers
double least_positive(DataType type);  // the least denormal; 0 for integers
double least_normal(DataType type);    // the least number with all its digits; of float types
// Up to this magnitude doubles hold every integer of the type, and sums of the type do not wrap around.
double greatest_exact(DataType integer);
double greatest_finite(DataType type);

// `x` after rounding to a float type; an integer or boolean type changes nothing.
Bounded round_bounded(Bounded x, DataType type);

// The result of `op` on operands of type `type`; `result` is the type of a cast and otherwise not looked at.
Bounded evaluate_bounded(ScalarOp op, std::span<const Bounded> operands, DataType type, DataType result);

// A factor of a sum of products, which may be a weight. What scales such sums is rounded into their weights; where those
// are subnormal, the scaled ones are off by at most half the least positive number and, as none of them becomes 0, by less
// than they are. Types that are narrower than their sums have no scaled weights.
Bounded as_weight(Bounded x, DataType type);

// The sum of products or plain terms in any order, in the accumulator of `type`: adds the terms' errors and
// (n - 1) u / (1 - (n - 1) u) times the sum of magnitudes.
class BoundedSum {
 public:
  explicit BoundedSum(DataType type) : type_(type) {}
  void add(Bounded term);
  void add_product(Bounded a, Bounded b);  // rounded on its own, or fused with the addition
  Bounded result() const;                  // before the rounding to the storage type

 private:
  DataType type_;
  double sum_ = 0, magnitudes_ = 0, errors_ = 0;
  int64_t count_ = 0;
};

// Whether `actual` is a value that `expected` allows; NaN only where NaN is expected or nothing is known.
bool is_within(double actual, Bounded expected);

}  // namespace fusewise
