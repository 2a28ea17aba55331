// The laws of running states: an identity, commutativity, associativity within rounding, and that a state of blocks
// is the state of the whole, with NaN and infinities where the plain formula has them.
#include "numerics/cascade.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "numerics/reduction.h"

namespace fusewise {
namespace {

struct Plain {
  using Value = double;
  double constant(double v) { return v; }
  double add(double a, double b) { return a + b; }
  double sub(double a, double b) { return a - b; }
  double mul(double a, double b) { return a * b; }
  double div(double a, double b) { return a / b; }
  double exp(double a) { return std::exp(a); }
  bool equal(double a, double b) { return a == b; }
  double select(bool c, double a, double b) { return c ? a : b; }
};

struct Seen {
  double raw = 0, accumulator = 0, count = 0;
};

// The weights u of sum u exp(c (x - m)), or nothing for a centred square.
struct Elements {
  std::vector<double> x, u;
};

class Laws : public testing::TestWithParam<CascadeIdentity> {
 protected:
  static constexpr double scale = 0.5;
  Plain arithmetic_;
  CascadeState<Plain> state_{arithmetic_, GetParam(), scale};
  Combine combine_ = reference_combine(GetParam());

  Seen nothing() const { return {identity_of<double>(combine_), 0, 0}; }

  Seen combined(const Seen& a, const Seen& b) {
    const double raw = combine_values(combine_, a.raw, b.raw), count = a.count + b.count;
    const double to = state_.reference(raw, count);
    return {raw,
            state_.moved(a.accumulator, state_.step(a.raw, a.count, to)) +
                state_.moved(b.accumulator, state_.step(b.raw, b.count, to)),
            count};
  }

  Seen of(const Elements& e, size_t begin, size_t end) {
    Seen s = nothing();
    s.count = static_cast<double>(end - begin);
    for (size_t i = begin; i < end; ++i) s.raw = combine_values(combine_, s.raw, e.x[i]);
    const double m = state_.reference(s.raw, s.count);
    for (size_t i = begin; i < end; ++i) s.accumulator += summand(e, i, m);
    return s;
  }

  double summand(const Elements& e, size_t i, double m) const {
    if (GetParam() == CascadeIdentity::centred_square) return (e.x[i] - m) * (e.x[i] - m);
    return e.u[i] * std::exp(scale * (e.x[i] - m));
  }

  // As the chain of plain reductions has it.
  double unfused(const Elements& e) const {
    double raw = identity_of<double>(combine_);
    for (double x : e.x) raw = combine_values(combine_, raw, x);
    if (combine_ == Combine::sum) raw /= static_cast<double>(e.x.size());
    double sum = 0;
    for (size_t i = 0; i < e.x.size(); ++i) sum += summand(e, i, raw);
    return sum;
  }

  Elements random(std::mt19937& generator, size_t n) const {
    Elements e;
    std::normal_distribution<double> normal(0, 10);
    const unsigned special = generator() % 6;
    for (size_t i = 0; i < n; ++i) {
      double x = normal(generator);
      const unsigned draw = generator() % 8;
      if (special == 1 && draw < 5) x = -INFINITY;
      if (special == 2) x = -INFINITY;
      if (special == 3 && draw == 0) x = NAN;
      if (special == 4 && draw == 0) x = INFINITY;
      e.x.push_back(x);
      e.u.push_back(normal(generator));
    }
    return e;
  }

  static void expect_close(double a, double b, double size) {
    if (std::isnan(a) || std::isnan(b))
      EXPECT_EQ(std::isnan(a), std::isnan(b)) << a << " " << b;
    else if (std::isinf(a) || std::isinf(b))
      EXPECT_EQ(a, b);
    else
      EXPECT_NEAR(a, b, 1e-12 * (1 + size));
  }
  static double size_of(const Elements& e) {
    double size = 0;
    for (size_t i = 0; i < e.x.size(); ++i)
      size += std::abs(e.u[i]) + (std::isfinite(e.x[i]) ? e.x[i] * e.x[i] : 0);
    return size;
  }
};

TEST_P(Laws, NothingIsTheIdentity) {
  std::mt19937 generator(1);
  for (int round = 0; round < 200; ++round) {
    const Elements e = random(generator, 1 + generator() % 9);
    const Seen s = of(e, 0, e.x.size());
    for (const Seen& t : {combined(s, nothing()), combined(nothing(), s)}) {
      expect_close(t.raw, s.raw, 0);
      expect_close(t.accumulator, s.accumulator, 0);
    }
  }
  const Seen none = combined(nothing(), nothing());
  EXPECT_EQ(none.raw, nothing().raw);
  EXPECT_EQ(none.accumulator, 0);
}

TEST_P(Laws, OrderDoesNotMatter) {
  std::mt19937 generator(2);
  for (int round = 0; round < 200; ++round) {
    const Elements e = random(generator, 12);
    const Seen a = of(e, 0, 3), b = of(e, 3, 4), c = of(e, 4, 12);
    const Seen ab = combined(a, b), ba = combined(b, a);
    expect_close(ab.accumulator, ba.accumulator, 0);
    const Seen left = combined(combined(a, b), c), right = combined(a, combined(b, c));
    expect_close(left.accumulator, right.accumulator, size_of(e));
  }
}

TEST_P(Laws, BlocksGiveTheWhole) {
  std::mt19937 generator(3);
  for (int round = 0; round < 500; ++round) {
    const size_t n = 1 + generator() % 40, block = 1 + generator() % 7;
    const Elements e = random(generator, n);
    Seen s = nothing();
    for (size_t k = 0; k < n; k += block) s = combined(s, of(e, k, std::min(n, k + block)));
    expect_close(state_.settled(s.accumulator, s.raw), unfused(e), size_of(e));
  }
}

constexpr CascadeIdentity identities[] = {
#define CASCADE_IDENTITY(name, combine) CascadeIdentity::name,
#include "numerics/cascade_identities.def"
};

INSTANTIATE_TEST_SUITE_P(Identities, Laws, testing::ValuesIn(identities),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

TEST(KnownRange, WhatMayBePulledOut) {
  const KnownRange any, epsilon = range_of_literal(1e-5);
  const KnownRange square = range_after(CascadeRole::product, any, any, true);
  EXPECT_TRUE(square.not_negative);
  EXPECT_FALSE(square.apart);
  const KnownRange deviation =
      range_after(CascadeRole::root, range_after(CascadeRole::sum, square, epsilon, false), any, false);
  EXPECT_TRUE(deviation.apart);
  EXPECT_TRUE(range_after(CascadeRole::quotient, range_of_literal(1), deviation, false).bounded);
  EXPECT_FALSE(range_after(CascadeRole::quotient, range_of_literal(1), square, false).bounded);
  EXPECT_FALSE(range_after(CascadeRole::sum, any, epsilon, false).apart);
  EXPECT_FALSE(range_of_literal(INFINITY).bounded);
}

}  // namespace
}  // namespace fusewise
