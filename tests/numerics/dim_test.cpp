#include "numerics/dim.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace fusewise {
namespace {

Dim sym(const char* name) { return Dim::symbol(name); }

constexpr int64_t least = std::numeric_limits<int64_t>::min();
constexpr int64_t greatest = std::numeric_limits<int64_t>::max();

TEST(Dim, constants) {
  EXPECT_TRUE(Dim().is(0));
  EXPECT_EQ((Dim(3) + 4).value(), 7);
  EXPECT_EQ((Dim(3) * 4 - 20).value(), -8);
  EXPECT_EQ(floor_div(Dim(-7), 2).value(), -4);
  EXPECT_EQ(ceil_div(Dim(-7), 2).value(), -3);
  EXPECT_EQ(ceil_div(Dim(7), 2).value(), 4);
  EXPECT_EQ(floor_div(Dim(7), -2).value(), -4);
  EXPECT_EQ(modulo(Dim(-7), 3).value(), 2);
  EXPECT_EQ(modulo(Dim(7), -3).value(), -2);
  EXPECT_EQ(min(Dim(2), Dim(5)).value(), 2);
  EXPECT_EQ(max(Dim(2), Dim(5)).value(), 5);
  EXPECT_EQ(Dim(least).value(), least);
  EXPECT_FALSE(sym("n").constant().has_value());
  EXPECT_THROW(sym("n").value(), InternalError);
}

TEST(Dim, overflow_and_zero_divisors_are_refused) {
  EXPECT_THROW(Dim(greatest) + 1, UserError);
  EXPECT_THROW(Dim(least) - 1, UserError);
  EXPECT_THROW(Dim(greatest) * 2, UserError);
  EXPECT_THROW(floor_div(Dim(least), -1), UserError);
  EXPECT_THROW(floor_div(sym("n") * greatest, -1) * 2, UserError);
  EXPECT_THROW(floor_div(Dim(1), 0), UserError);
  EXPECT_THROW(ceil_div(sym("n"), 0), UserError);
  EXPECT_THROW(modulo(sym("n"), 0), UserError);
  EXPECT_THROW(floor_div(sym("a") + 1, sym("n")).evaluate({{"a", 3}, {"n", 0}}), UserError);
  EXPECT_THROW((sym("n") * sym("n")).evaluate({{"n", greatest}}), UserError);
}

TEST(Dim, sums_of_products_compare_equal) {
  Dim a = sym("a"), b = sym("b");
  EXPECT_EQ((a + b) * (a - b), a * a - b * b);
  EXPECT_EQ(a + b, b + a);
  EXPECT_EQ((a + 1) * (b + 2), a * b + b + 2 * a + 2);
  EXPECT_TRUE((a - a).is_constant());
  EXPECT_TRUE((a * 0).is(0));
  EXPECT_NE(a, b);
  EXPECT_NE(a + 1, a);
  EXPECT_EQ(((a + b) * 3).hash(), (3 * b + 3 * a).hash());
  EXPECT_NE(a.hash(), b.hash());
}

TEST(Dim, divisions_fold_when_provable) {
  Dim a = sym("a"), n = sym("n"), s = sym("s");
  EXPECT_EQ(floor_div(a * n, n), a);
  EXPECT_EQ(floor_div(n, n), Dim(1));
  EXPECT_EQ(floor_div(4 * s + 2, 4), s);
  EXPECT_EQ(ceil_div(4 * s + 2, 4), s + 1);
  EXPECT_EQ(modulo(4 * s + 2, 4), Dim(2));
  EXPECT_EQ(modulo(a * n, n), Dim(0));
  EXPECT_EQ(modulo(a * n + 3 * n, n), Dim(0));
  EXPECT_EQ(floor_div(a * n + 3 * n, n), a + 3);
  EXPECT_EQ(floor_div(a * n + a, n + 1), a);
  EXPECT_EQ(floor_div((a + 2) * (n + 3), n + 3), a + 2);
  EXPECT_EQ(floor_div((a + 2) * (n + 3) * (s + a), (n + 3) * (a + s)), a + 2);
  EXPECT_EQ(floor_div(2 * a, 2 * n), floor_div(a, n));
  EXPECT_EQ(floor_div(a * s, n * s), floor_div(a, n));
  EXPECT_EQ(modulo(a * s, n * s), s * modulo(a, n));
  EXPECT_EQ(floor_div(2 * s + 1, 4), floor_div(s, 2));
  EXPECT_EQ(modulo(2 * s + 1, 4), 2 * modulo(s, 2) + 1);
  EXPECT_EQ(floor_div(5 * s + 9, 4), s + 2 + floor_div(s + 1, 4));
  EXPECT_EQ(floor_div(floor_div(s, 2), 3), floor_div(s, 6));
  EXPECT_EQ(floor_div(floor_div(s + 1, 2) + 1, 2), floor_div(s + 3, 4));
  EXPECT_EQ(floor_div(modulo(s, 4), 4), Dim(0));
  EXPECT_EQ(modulo(modulo(s, 4), 8), modulo(s, 4));
  EXPECT_EQ(ceil_div(s, 4), floor_div(s - 1, 4) + 1);
  EXPECT_EQ(Dim(0) - floor_div(Dim(0) - s, 4), ceil_div(s, 4));
  EXPECT_EQ(floor_div(s, 1), s);
  EXPECT_EQ(floor_div(s, -1), Dim(0) - s);
}

TEST(Dim, minimum_and_maximum_fold_by_bounds) {
  Dim n = sym("n"), m = sym("m");
  EXPECT_EQ(min(n, n), n);
  EXPECT_EQ(min(n, m), min(m, n));
  EXPECT_EQ(max(n, Dim(0)), n);
  EXPECT_EQ(min(n, Dim(0)), Dim(0));
  EXPECT_EQ(max(n + 1, n), n + 1);
  EXPECT_EQ(min(n + m, n), n);
  EXPECT_EQ(max(n, min(n, m)), n);
  EXPECT_EQ(min(max(m, n), n), n);
  EXPECT_EQ(min(m, min(n, m)), min(n, m));
  EXPECT_EQ(min(min(n, m), m), min(n, m));
  EXPECT_FALSE(max(n, Dim(1)).as_symbol().has_value());
}

TEST(Dim, bounds) {
  Dim n = sym("n"), m = sym("m");
  EXPECT_EQ(n.lower_bound(), 0);
  EXPECT_EQ(n.lower_bound(1), 1);
  EXPECT_FALSE(n.upper_bound().has_value());
  EXPECT_EQ((n * m + 3).lower_bound(2), 7);
  EXPECT_FALSE((n - m).lower_bound().has_value());
  EXPECT_EQ((Dim(5) - n).upper_bound(), 5);
  EXPECT_EQ(modulo(n, 7).upper_bound(), 6);
  EXPECT_EQ(min(n, Dim(9)).upper_bound(), 9);
  EXPECT_EQ(max(n, Dim(9)).lower_bound(), 9);
  EXPECT_EQ(floor_div(n + 5, 3).lower_bound(), 1);
  EXPECT_EQ(floor_div(min(n, Dim(10)), m).upper_bound(), 10);
}

TEST(Dim, multiples) {
  Dim n = sym("n"), m = sym("m");
  EXPECT_TRUE((8 * n + 16).is_multiple_of(8));
  EXPECT_TRUE((8 * n + 16).is_multiple_of(-4));
  EXPECT_FALSE((8 * n + 4).is_multiple_of(8));
  EXPECT_TRUE((4 * min(2 * n, 6 * m)).is_multiple_of(8));
  EXPECT_TRUE(Dim(0).is_multiple_of(5));
  EXPECT_TRUE(n.is_multiple_of(1));
  EXPECT_FALSE(n.is_multiple_of(2));
}

TEST(Dim, text) {
  Dim batch = sym("batch"), seq = sym("seq");
  EXPECT_EQ((batch * seq + 3).to_string(), "batch*seq + 3");
  EXPECT_EQ((Dim(3) - 2 * batch * batch - seq).to_string(), "-2*batch*batch - seq + 3");
  EXPECT_EQ(floor_div(sym("n"), 2).to_string(), "floordiv(n, 2)");
  EXPECT_EQ(Dim(0).to_string(), "0");
  EXPECT_EQ(Dim(least).to_string(), "-9223372036854775808");
  EXPECT_EQ(sym("a b\"\\c").to_string(), R"("a b\"\\c")");
  EXPECT_EQ(sym("3n").to_string(), "\"3n\"");
  EXPECT_EQ(to_string(Shape{batch, 3, 224}), "[batch, 3, 224]");
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(product(Shape{}), Dim(1));
  EXPECT_EQ(product(Shape{batch, 3, seq}), 3 * batch * seq);
}

TEST(Dim, parses) {
  Dim n = sym("n");
  EXPECT_EQ(Dim::parse("  ( n + 1 ) * 2 + 3 "), 2 * n + 5);
  EXPECT_EQ(Dim::parse("-9223372036854775808"), Dim(least));
  EXPECT_EQ(Dim::parse("mod(n, max(3, m))"), modulo(n, max(sym("m"), Dim(3))));
  EXPECT_EQ(Dim::parse("min"), sym("min"));
  EXPECT_EQ(Dim::parse(R"("a b\"\\c")"), sym("a b\"\\c"));
  for (const char* bad : {"", "n +", "n n", "2n", "floordiv(n)", "foo(n, 2)", "\"n", "\"\"", "(n", "1e3",
                          "n)", "99999999999999999999", "floordiv(n, 0)", "*n", "n**2"})
    EXPECT_THROW(Dim::parse(bad), UserError) << bad;
  EXPECT_THROW(Dim::parse(std::string(100000, '(')), UserError);
}

TEST(Dim, symbols_and_substitution) {
  Dim n = sym("n"), m = sym("m");
  Dim d = floor_div(n * m + 1, 2) + max(n, sym("k"));
  EXPECT_EQ(d.symbols(), (std::set<std::string>{"k", "m", "n"}));
  EXPECT_EQ(d.substitute({{"n", 3}, {"m", 5}, {"k", 2}}), Dim(11));
  EXPECT_EQ(d.substitute({{"n", m}, {"m", n}}).substitute({{"n", m}, {"m", n}}), d);
  EXPECT_EQ(floor_div(n, 4).substitute({{"n", 4 * m}}), m);
  EXPECT_EQ(*n.as_symbol(), "n");
  EXPECT_FALSE((n + 1).as_symbol());
  EXPECT_FALSE((2 * n).as_symbol());
  try {
    d.evaluate({{"n", 1}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("'m'"), std::string::npos);
  }
}

TEST(Dim, deep_nesting_is_refused_not_overflowed) {
  Dim d = sym("n");
  EXPECT_THROW(for (int i = 0; i < 200000; ++i) d = max(d * 2 - sym("m"), sym("k") * i), UnsupportedError);
  Dim power = sym("n");
  EXPECT_THROW(for (int i = 0; i < 200000; ++i) power = power * sym("n"), UnsupportedError);
  Dim halved = sym("n");
  for (int i = 0; i < 40; ++i) halved = floor_div(halved + 1, 2);
  EXPECT_EQ(halved.evaluate({{"n", int64_t{1} << 40}}), 1);
}

// A random expression together with its value at several points, computed without Dim.
constexpr int point_count = 6;

struct Sample {
  Dim dim;
  std::array<int64_t, point_count> values{};
};

class RandomExpressions {
 public:
  explicit RandomExpressions(uint32_t seed) : random_(seed) {
    for (auto& point : points_)
      for (const char* name : names) point[name] = static_cast<int64_t>(random_() % 12);
  }

  const SymbolValues& point(int i) const { return points_[static_cast<size_t>(i)]; }

  Sample make(int depth) {
    if (depth == 0 || random_() % 8 == 0) return leaf();
    Sample a = make(depth - 1), b = make(depth - 1);
    if (random_() % 3 == 0) b = leaf();
    switch (random_() % 8) {
      case 0:
        return combine(a.dim + b.dim, a, b, [](int64_t x, int64_t y) { return x + y; });
      case 1:
        return combine(a.dim - b.dim, a, b, [](int64_t x, int64_t y) { return x - y; });
      case 2:
        return combine(a.dim * b.dim, a, b, [](int64_t x, int64_t y) { return x * y; });
      case 3:
        return combine(min(a.dim, b.dim), a, b, [](int64_t x, int64_t y) { return std::min(x, y); });
      case 4:
        return combine(max(a.dim, b.dim), a, b, [](int64_t x, int64_t y) { return std::max(x, y); });
      default:
        return divide(a, b);
    }
  }

 private:
  static constexpr const char* names[] = {"a", "b", "n", "two words"};

  Sample leaf() {
    Sample sample;
    if (random_() % 3 == 0) {
      int64_t value = static_cast<int64_t>(random_() % 21) - 8;
      sample.dim = value;
      sample.values.fill(value);
      return sample;
    }
    const char* name = names[random_() % 4];
    sample.dim = Dim::symbol(name);
    for (size_t i = 0; i < point_count; ++i) sample.values[i] = points_[i][name];
    return sample;
  }

  template <class F>
  Sample combine(Dim dim, const Sample& a, const Sample& b, F f) {
    Sample sample;
    sample.dim = std::move(dim);
    for (size_t i = 0; i < point_count; ++i) sample.values[i] = f(a.values[i], b.values[i]);
    return sample;
  }

  static int64_t floored(int64_t x, int64_t y) {
    return static_cast<int64_t>(std::floor(static_cast<long double>(x) / static_cast<long double>(y)));
  }

  Sample divide(const Sample& a, const Sample& b) {
    for (int64_t value : b.values)
      if (value == 0) return a;
    switch (random_() % 3) {
      case 0:
        return combine(floor_div(a.dim, b.dim), a, b, floored);
      case 1:
        return combine(ceil_div(a.dim, b.dim), a, b, [](int64_t x, int64_t y) { return -floored(-x, y); });
      default:
        return combine(modulo(a.dim, b.dim), a, b,
                       [](int64_t x, int64_t y) { return x - y * floored(x, y); });
    }
  }

  std::mt19937 random_;
  std::array<SymbolValues, point_count> points_;
};

TEST(Dim, random_expressions_keep_their_value) {
  int compared = 0;
  for (uint32_t seed = 0; seed < 6000; ++seed) {
    RandomExpressions source(seed);
    Sample sample = source.make(1 + static_cast<int>(seed % 4));
    Dim parsed = Dim::parse(sample.dim.to_string());
    EXPECT_EQ(parsed, sample.dim) << sample.dim.to_string();
    EXPECT_EQ(parsed.hash(), sample.dim.hash());
    EXPECT_EQ(parsed.to_string(), sample.dim.to_string());
    std::optional<int64_t> low = sample.dim.lower_bound(), high = sample.dim.upper_bound();
    for (int i = 0; i < point_count; ++i) {
      int64_t value;
      try {
        value = sample.dim.evaluate(source.point(i));
      } catch (const UserError&) {
        continue;  // an inner divisor that was folded differently is zero here
      }
      ++compared;
      ASSERT_EQ(value, sample.values[static_cast<size_t>(i)]) << sample.dim.to_string() << " seed " << seed;
      ASSERT_LE(low.value_or(least), value) << sample.dim.to_string();
      ASSERT_GE(high.value_or(greatest), value) << sample.dim.to_string();
      for (int64_t divisor : {2, 3, 4, 6})
        ASSERT_TRUE(!sample.dim.is_multiple_of(divisor) || value % divisor == 0) << sample.dim.to_string();
      std::map<std::string, Dim> all;
      for (const auto& [name, number] : source.point(i)) all[name] = number;
      ASSERT_EQ(sample.dim.substitute(all), Dim(value));
    }
  }
  EXPECT_GT(compared, 30000);
}

TEST(Dim, order_is_total) {
  std::vector<Dim> dims;
  for (uint32_t seed = 0; seed < 60; ++seed) dims.push_back(RandomExpressions(seed).make(3).dim);
  for (const Dim& a : dims)
    for (const Dim& b : dims) {
      EXPECT_EQ(a == b, !(a < b) && !(b < a));
      EXPECT_FALSE(a < b && b < a);
      for (const Dim& c : dims) EXPECT_TRUE(a < c || !(a < b && b < c));
    }
}

}  // namespace
}  // namespace fusewise
