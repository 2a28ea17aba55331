// Faults of numbers: roundings, NaN and infinities, integers that wrap, sums that cancel.
#include <gtest/gtest.h>

#include <cmath>

#include "faults/fault_testing.h"

namespace fusewise::test {
namespace {

using graph::Tensor;

// 05. The value that is subtracted is the one that went into the maximum.
TEST(Faults05, SoftmaxOfAProduct) {
  for (const char* op : {"Mul", "Div"})
    for (const char* function : {"Softmax", "LogSoftmax"})
      for (const double c : {1.0 / 3, 0.7, 0.5, 1e-3})
        for (const double big : {9.05824358e9, 7.7e12, -9.05824358e9}) {
          OnnxBuilder m;
          const auto x = m.input("x", DataType::float32, {1, 3});
          const auto y = m.node(op, {x, m.floats("c", {}, {static_cast<float>(c)})});
          m.output_without_shape(m.node(function, {y}), DataType::float32);
          const bool log = std::string(function) == "LogSoftmax";
          GraphCase what = imported(m, {floats({1, 3}, {big, 0, 0})});
          for (const auto fusion : {fusion::FusionMode::on, fusion::FusionMode::off})
            for (const uint64_t plan : {0, 1, 2}) {
              const GraphSettings settings{
                  compiler::Numerics::default_, fusion, "x86-64-v3", 1, Execution::passed, plan};
              const std::vector<double> out = numbers(outputs_of(what, settings)[0]);
              for (const double v : out)
                EXPECT_FALSE(std::isnan(v)) << to_text(settings) << " " << c << " " << big;
              const double first = big > 0 ? (log ? 0 : 1) : (log ? -infinite : 0);
              if (big > 0 || !log) {
                EXPECT_EQ(out[0], first) << to_text(settings) << " " << c << " " << big;
              }
            }
        }
}

TEST(Faults05, ProductOfMatricesScaled) {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {2, 3});
  const auto y = m.node("MatMul", {x, m.initializer(initializer_of("w", ramp({3, 5}, -2e9, 3.1e8)))});
  m.output_without_shape(m.node("Softmax", {m.node("Mul", {y, m.floats("c", {}, {1.0f / 3})})}),
                         DataType::float32);
  const GraphCase what = imported(m, {ramp({2, 3}, 1, 0.7)});
  expect_right(what, {{0, 0, 0, 0, 1, 0, 0, 0, 0, 1}}, 1e-6);
}

// 06. Variances of numbers far from zero.
// Where the mean itself is rounded to a tenth of the spread, so is the result; one pass would leave nothing of it.
TEST(Faults06, NormsOfALargeMean) {
  const std::vector<double> wanted = {-1.3416, -1.3415, -1.3415, -1.3313};
  size_t k = 0;
  for (const double mean : {0.0, 100.0, 1e3, 1e4}) {
    const Tensor x = ramp({1, 16}, mean, 1e-3);
    for (const bool primitives : {false, true}) {
      OnnxBuilder m;
      const auto in = m.input("x", DataType::float32, {1, 16});
      std::string y;
      if (primitives) {
        const auto mean_of = [&](const std::string& v) {
          return m.node("ReduceMean", {v}, {{"axes", std::vector<int64_t>{-1}}});
        };
        const auto d = m.node("Sub", {in, mean_of(in)});
        const auto v = m.node("Add", {mean_of(m.node("Mul", {d, d})), m.floats("e", {}, {1e-5f})});
        y = m.node("Div", {d, m.node("Sqrt", {v})});
      } else {
        y = m.node("LayerNormalization",
                   {in, m.initializer(initializer_of("g", floats({16}, std::vector<double>(16, 1))))});
      }
      m.output_without_shape(y, DataType::float32);
      const GraphCase what = imported(m, {x});
      expect_right(what);
      for (const auto numerics : {compiler::Numerics::strict, compiler::Numerics::default_})
        EXPECT_NEAR(numbers(outputs_of(what, {numerics, fusion::FusionMode::on, "x86-64-v3", 1,
                                              Execution::passed, 0})[0])[0],
                    wanted[k], mean > 5e3 ? 0.1 : 1.5e-2);
    }
    ++k;
  }
}

TEST(Faults06, NormsOfOtherAxes) {
  OnnxBuilder m;
  const auto x = m.input("x", DataType::float32, {2, 2, 9});
  const auto one = m.floats("one", {2}, {1, 1}), zero = m.floats("zero", {2}, {0, 0});
  m.output_without_shape(m.node("InstanceNormalization", {x, one, zero}), DataType::float32);
  for (const double mean : {0.0, 1e3, 1e4}) expect_right(m, {ramp({2, 2, 9}, mean, 1e-2)});
}

// 07. NaN goes through every comparison, wherever it stands.
TEST(Faults07, NaNThroughMapsInEveryLane) {
  for (const int64_t n : {1, 4, 13, 33}) {
    std::vector<double> x;
    for (int64_t i = 0; i < n; ++i) x.push_back(i % 3 == 0 ? not_a_number : i % 2 ? 1.5 : -2);
    const auto mapped = [&](auto f) {
      std::vector<double> result;
      for (double v : x) result.push_back(std::isnan(v) ? v : f(v));
      return result;
    };
    const Tensor in = floats({n}, x), zero = floats({}, {0}), six = floats({}, {6});
    expect_node(17, "Relu", {in}, {}, DataType::float32, mapped([](double v) { return std::max(v, 0.0); }));
    expect_node(17, "Sign", {in}, {}, DataType::float32, mapped([](double v) { return v > 0 ? 1.0 : -1.0; }));
    expect_node(17, "LeakyRelu", {in}, {{"alpha", OnnxAttributeValue(0.5f)}}, DataType::float32,
                mapped([](double v) { return v < 0 ? v / 2 : v; }));
    expect_node(17, "Clip", {in, zero, six}, {}, DataType::float32,
                mapped([](double v) { return std::max(v, 0.0); }));
    expect_node(17, "Max", {in, zero}, {}, DataType::float32,
                mapped([](double v) { return std::max(v, 0.0); }));
    expect_node(17, "Max", {zero, in}, {}, DataType::float32,
                mapped([](double v) { return std::max(v, 0.0); }));
    expect_node(17, "Min", {in, zero}, {}, DataType::float32,
                mapped([](double v) { return std::min(v, 0.0); }));
    expect_node(17, "Min", {zero, in}, {}, DataType::float32,
                mapped([](double v) { return std::min(v, 0.0); }));
  }
}

// 09. A cast to a narrower type rounds, also when it comes back at once.
TEST(Faults09, RoundTripsRound) {
  for (const DataType narrow : {DataType::float16, DataType::bfloat16}) {
    OnnxBuilder m;
    const auto x = m.input("x", DataType::float32, {21});
    const auto y = m.node("Cast", {x}, cast_to(narrow));
    m.output_without_shape(m.node("Cast", {y}, cast_to(DataType::float32)), DataType::float32);
    std::vector<double> in, out;
    for (int k = 0; k < 20; ++k) in.push_back(static_cast<float>(k) / 7.0f);
    in.push_back(70000);
    for (double v : in) out.push_back(convert({DataType::float32, static_cast<float>(v), 0}, narrow).f);
    EXPECT_EQ(std::isinf(out.back()), narrow == DataType::float16);
    expect_right(m, {floats({21}, in)}, {out});
  }
}

TEST(Faults09, TheMaximumOfRoundedNumbersIsOneOfThem) {
  for (const DataType type : {DataType::bfloat16, DataType::float16}) {
    OnnxBuilder m(17);
    const auto x = m.input("x", type, {"n", 37});
    const auto s = m.node("Div", {x, m.initializer(initializer_of("c", tensor(type, {}, {3})))});
    const auto greatest = m.node("ReduceMax", {s}, {{"axes", std::vector<int64_t>{1}}});
    const auto equal = m.node("Cast", {m.node("Equal", {s, greatest})}, cast_to(DataType::float32));
    const auto ties = m.node("ReduceSum", {equal, m.ints("axes", {1}, {1})}, {{"keepdims", 0}});
    m.output_without_shape(m.node("Div", {m.floats("one", {}, {1}), ties}), DataType::float32);
    m.output_without_shape(ties, DataType::float32);
    const GraphCase what = imported(m, {ramp({11, 37}, 0.1, 0.0137, type)});
    expect_right(what);
    for (const auto fusion : {fusion::FusionMode::on, fusion::FusionMode::operators, fusion::FusionMode::off})
      for (uint64_t plan = 0; plan < 6; ++plan)
        for (const double t : numbers(outputs_of(
                 what, {compiler::Numerics::default_, fusion, "x86-64-v3", 1, Execution::passed, plan})[1]))
          EXPECT_GE(t, 1);
  }
}

// 10. Casts in a row are not one cast when the type between them loses something.
TEST(Faults10, CastsInARow) {
  const auto chain = [](DataType from, const std::vector<double>& in, const std::vector<DataType>& types,
                        const std::vector<double>& out) {
    OnnxBuilder m;
    std::string y = m.input("x", from, {static_cast<int64_t>(in.size())});
    for (DataType t : types) y = m.node("Cast", {y}, cast_to(t));
    m.output_without_shape(y, types.back());
    expect_right(m, {tensor(from, {static_cast<int64_t>(in.size())}, in)}, {out});
  };
  chain(DataType::float32, {-.2, -.1, 0, .1, .2}, {DataType::int32, DataType::boolean}, {0, 0, 0, 0, 0});
  chain(DataType::float64, {.98858}, {DataType::int32, DataType::boolean}, {0});
  chain(DataType::float32, {1.7, -1.7}, {DataType::int64, DataType::float32}, {1, -1});
  chain(DataType::int32, {-2, 0}, {DataType::boolean, DataType::int16}, {1, 0});
  chain(DataType::int32, {-1, 256}, {DataType::uint8, DataType::int32}, {255, 0});
  chain(DataType::float64, {0.1, 1e300}, {DataType::float32, DataType::float64}, {0.1f, infinite});
  chain(DataType::float32, {2049, 1e-8}, {DataType::float16, DataType::float32}, {2048, 0});
  chain(DataType::int64, {16777217}, {DataType::float32, DataType::int64}, {16777216});
}

// 11. Small integers wrap at every step, and what follows sees that.
TEST(Faults11, SmallIntegersWrap) {
  const auto chain = [](DataType type, const char* op, double a, double b, double wrapped) {
    OnnxBuilder m;
    const auto x = m.input("x", type, {9}), y = m.input("y", type, {9});
    const auto z = op == std::string("Neg") ? m.node(op, {x}) : m.node(op, {x, y});
    m.output_without_shape(m.node("Cast", {z}, cast_to(DataType::int32)), DataType::int32);
    m.output_without_shape(m.node("Less", {z, x}), DataType::boolean);
    m.output_without_shape(m.node("Max", {z, y}), type);
    m.output_without_shape(m.node("Cast", {z}, cast_to(DataType::float32)), DataType::float32);
    const std::vector<double> nine(9, wrapped);
    expect_right(m,
                 {tensor(type, {9}, std::vector<double>(9, a)), tensor(type, {9}, std::vector<double>(9, b))},
                 {nine, std::vector<double>(9, wrapped < a ? 1 : 0),
                  std::vector<double>(9, std::max(wrapped, b)), nine});
  };
  chain(DataType::uint8, "Add", 128, 128, 0);
  chain(DataType::int8, "Mul", 100, 2, -56);
  chain(DataType::uint8, "Sub", 0, 1, 255);
  chain(DataType::int8, "Neg", -128, 1, -128);
  chain(DataType::int16, "Add", 32767, 1, -32768);
  chain(DataType::uint16, "Mul", 256, 256, 0);
  chain(DataType::int32, "Add", 2147483647, 1, -2147483648.0);
}

// 20. A NaN anywhere makes a maximum NaN.
TEST(Faults20, NaNAnywhereInAMaximum) {
  for (const int64_t n : {1, 2, 7, 8, 9, 16, 17, 33, 40}) {
    std::vector<double> x;
    std::vector<double> reduced, rows;
    for (int64_t row = 0; row <= n; ++row) {  // the last row has none
      for (int64_t i = 0; i < n; ++i) x.push_back(i == row ? not_a_number : static_cast<double>(i % 5));
      reduced.push_back(row < n ? not_a_number : static_cast<double>(std::min<int64_t>(n - 1, 4)));
    }
    const Tensor in = floats({n + 1, n}, x);
    const OnnxAttributes last = {{"axes", std::vector<int64_t>{1}}, {"keepdims", 0}};
    expect_node(17, "ReduceMax", {in}, last, DataType::float32, reduced);
    reduced.back() = 0;
    expect_node(17, "ReduceMin", {in}, last, DataType::float32, reduced);
    OnnxBuilder m;
    const auto v = m.input("x", DataType::float32, {n + 1, 1, n});
    m.output_without_shape(m.node("MaxPool", {v}, {{"kernel_shape", std::vector<int64_t>{n}}}),
                           DataType::float32);
    reduced.back() = static_cast<double>(std::min<int64_t>(n - 1, 4));
    expect_right(m, {in.reshaped({n + 1, 1, n})}, {reduced});
  }
}

// 23. Rows shorter than a vector, and rows with infinities.
TEST(Faults23, SoftmaxOfOddRows) {
  for (const int64_t n : {1, 2, 3, 31, 33, 64}) {
    const auto row = [n](double first, double rest) {
      std::vector<double> r(static_cast<size_t>(n), rest);
      r[0] = first;
      return r;
    };
    std::vector<double> x, y;
    const auto add = [&](const std::vector<double>& in, const std::vector<double>& out) {
      x.insert(x.end(), in.begin(), in.end());
      y.insert(y.end(), out.begin(), out.end());
    };
    const std::vector<double> all_nan(static_cast<size_t>(n), not_a_number);
    add(row(-infinite, -infinite), all_nan);
    add(row(not_a_number, 0), all_nan);
    // inf - inf is NaN there, exp(-inf) is 0 elsewhere, and the sum is NaN.
    add(row(infinite, 0), all_nan);
    add(row(1, 1), std::vector<double>(static_cast<size_t>(n), 1 / static_cast<double>(n)));
    if (n > 1) add(row(-infinite, 0), row(0, 1 / static_cast<double>(n - 1)));
    const int64_t rows = static_cast<int64_t>(x.size()) / n;
    expect_node(17, "Softmax", {floats({rows, n}, x)}, {}, DataType::float32, y, 1e-6);
  }
}

// 28. Integer division truncates, and no divisor ends the process.
TEST(Faults28, IntegerDivision) {
  const auto int_node = [](const char* op, DataType type, const std::vector<double>& a,
                           const std::vector<double>& b, const std::vector<double>& expected,
                           OnnxAttributes attributes = {}) {
    const auto n = static_cast<int64_t>(a.size());
    expect_node(17, op, {tensor(type, {n}, a), tensor(type, {n}, b)}, std::move(attributes), type, expected);
  };
  for (const DataType type : {DataType::int64, DataType::int32, DataType::int8, DataType::int16}) {
    int_node("Div", type, {8, -8, 7, -7}, {-3, 3, -2, 2}, {-2, -2, -3, -3});
    int_node("Mod", type, {-5, 5, -6}, {3, -3, 3}, {1, -1, 0});
    int_node("Mod", type, {-5, 5, -6}, {3, -3, 3}, {-2, 2, 0}, {{"fmod", 1}});
    int_node("Div", type, {1, -7, 0, 5, 5}, {0, 0, 0, 1, 0}, {0, 0, 0, 5, 0});
    int_node("Mod", type, {1, -7, 0, 5, 5}, {0, 0, 0, 2, 0}, {0, 0, 0, 1, 0});
  }
  const double least = -2147483648.0;
  int_node("Div", DataType::int32, {least, least, 4}, {-1, 1, -1}, {least, least, -4});
  int_node("Mod", DataType::int32, {least, 4, 4}, {-1, -1, 3}, {0, 0, 1});
  int_node("Mod", DataType::uint8, {200, 7}, {7, 0}, {4, 0});
  int_node("Div", DataType::uint8, {200, 7}, {7, 0}, {28, 0});
  expect_node(17, "Mod", {floats({3}, {-5, 5, 5.5}), floats({3}, {3, -3, 2})}, {{"fmod", 1}},
              DataType::float32, {-2, 2, 1.5});
}

// 38. NaN and infinities, and the sign of zero, survive simplification.
TEST(Faults38, FloatsDoNotCancel) {
  const std::vector<double> x = {infinite, -infinite, not_a_number, 1, 0, -1};
  const double nan = not_a_number;
  OnnxBuilder m;
  const auto v = m.input("x", DataType::float32, {6});
  const auto zero = m.floats("zero", {}, {0}), minus_zero = m.floats("minus_zero", {}, {-0.0f});
  const auto inf = m.floats("inf", {}, {INFINITY});
  Expected expected;
  const auto add = [&](const std::string& y, const std::vector<double>& numbers_of_y) {
    m.output_without_shape(y, DataType::float32);
    expected.push_back(numbers_of_y);
  };
  add(m.node("Mul", {v, zero}), {nan, nan, nan, 0, 0, -0.0});
  add(m.node("Sub", {v, v}), {nan, nan, nan, 0, 0, 0});
  add(m.node("Div", {v, v}), {nan, nan, nan, 1, nan, 1});
  const auto t = m.node("Mul", {v, inf});
  add(m.node("Sub", {t, t}), {nan, nan, nan, nan, nan, nan});
  add(m.node("Add", {v, minus_zero}), {infinite, -infinite, nan, 1, 0, -1});
  add(m.node("Neg", {v}), {-infinite, infinite, nan, -1, -0.0, 1});
  add(m.node("Sub", {zero, v}), {-infinite, infinite, nan, -1, 0, 1});
  add(m.node("Where", {m.node("Less", {v, zero}), m.node("Mul", {v, zero}), v}),
      {infinite, nan, nan, 1, 0, -0.0});
  expect_right(m, {floats({6}, x)}, expected);
}

// 39. A cast that does not fit saturates, the same everywhere.
TEST(Faults39, CastsThatDoNotFit) {
  std::vector<double> x = {300, not_a_number, infinite, -infinite, 50, -50, 1e30, -1e30, 127.9, -0.9};
  const auto cast = [&](DataType to, const std::vector<double>& expected) {
    for (const DataType from : {DataType::float32, DataType::float64})
      expect_node(17, "Cast", {tensor(from, {10}, x)}, cast_to(to), to, expected);
  };
  cast(DataType::int8, {127, 0, 127, -128, 50, -50, 127, -128, 127, 0});
  cast(DataType::uint8, {255, 0, 255, 0, 50, 0, 255, 0, 127, 0});
  cast(DataType::int16, {300, 0, 32767, -32768, 50, -50, 32767, -32768, 127, 0});
  cast(DataType::int32, {300, 0, 2147483647, -2147483648.0, 50, -50, 2147483647, -2147483648.0, 127, 0});
  cast(DataType::int64, {300, 0, 0x1p63, -0x1p63, 50, -50, 0x1p63, -0x1p63, 127, 0});
  cast(DataType::uint64, {300, 0, 0x1p64, 0, 50, 0, 0x1p64, 0, 127, 0});
}

// 48. Sums over half precision are kept in single.
TEST(Faults48, HalfPrecisionSumsDoNotOverflow) {
  OnnxBuilder m(17);
  const auto x = m.input("x", DataType::float16, {1, 4});
  const auto one = m.initializer(initializer_of("g", tensor(DataType::float16, {4}, {1, 1, 1, 1})));
  m.output_without_shape(m.node("LayerNormalization", {x, one}), DataType::float16);
  expect_right(m, {tensor(DataType::float16, {1, 4}, {300, -300, 300, -300})}, {{1, -1, 1, -1}}, 1e-3);

  OnnxBuilder sum(17);
  const auto ones = sum.input("x", DataType::float16, {1, 7000});
  const auto total = sum.node("ReduceSum", {ones, sum.ints("axes", {1}, {1})}, {{"keepdims", 0}});
  sum.output_without_shape(
      sum.node("Div", {total, sum.initializer(initializer_of("c", tensor(DataType::float16, {}, {7000})))}),
      DataType::float16);
  expect_right(sum, {tensor(DataType::float16, {1, 7000}, std::vector<double>(7000, 1))}, {{1}}, 1e-3);
}

// 50. Folded or not, an operation gives the same bits.
TEST(Faults50, FoldedAndComputedAreTheSame) {
  const double nan = not_a_number;
  const std::vector<double> odd = {0,  -0.0,  infinite, -infinite, nan,  1,   -1,
                                   89, 1e-40, 3.4e38,   0.3,       -2.5, 1e10};
  for (const DataType type : {DataType::float32, DataType::float16}) {
    const Tensor x = tensor(type, {13}, odd);
    for (const char* op : {"Log", "Sqrt", "Exp", "Tanh", "Erf", "Sin", "Cos", "Tan", "Atan", "Sigmoid",
                           "Round", "Reciprocal", "Floor"}) {
      OnnxBuilder m;
      const auto a = m.input("x", type, {13}), b = m.initializer(initializer_of("c", x));
      m.output_without_shape(m.node(op, {a}), type);
      m.output_without_shape(m.node(op, {b}), type);
      const GraphCase what = imported(m, {x});
      for (const auto numerics : {compiler::Numerics::strict, compiler::Numerics::default_}) {
        const auto out =
            outputs_of(what, {numerics, fusion::FusionMode::on, "native", 1,
                              type == DataType::float32 ? Execution::compiled : Execution::passed, 0});
        const std::vector<double> first = numbers(out[0]), second = numbers(out[1]);
        for (size_t i = 0; i < first.size(); ++i)
          EXPECT_TRUE((first[i] == second[i] && std::signbit(first[i]) == std::signbit(second[i])) ||
                      (std::isnan(first[i]) && std::isnan(second[i])))
              << op << " of " << odd[i] << ": " << first[i] << " and folded " << second[i];
      }
    }
  }
  expect_node(17, "Pow", {floats({4}, {0, -0.0, infinite, nan}), floats({4}, {0, 0, 0, 0})}, {},
              DataType::float32, {1, 1, 1, 1});
  expect_node(17, "Sqrt", {floats({2}, {-0.0, -1})}, {}, DataType::float32, {-0.0, nan});
  expect_node(17, "Div", {floats({3}, {0, 1, -1}), floats({3}, {0, 0, 0})}, {}, DataType::float32,
              {nan, infinite, -infinite});
}

// 61. The maximum wins, whatever is merged.
TEST(Faults61, ClipsWithCrossedBounds) {
  const Tensor x = floats({3}, {-2, 0, 6});
  expect_node(17, "Clip", {x, floats({}, {2}), floats({}, {1})}, {}, DataType::float32, {1, 1, 1});
  OnnxBuilder m;
  const auto v = m.input("x", DataType::float32, {3});
  const auto clip = [&](const std::string& a, const char* name, float low, float high) {
    return m.node("Clip", {a, m.floats(std::string(name) + "l", {}, {low}),
                           m.floats(std::string(name) + "h", {}, {high})});
  };
  m.output_without_shape(clip(clip(v, "a", 0, 6), "b", 7, 8), DataType::float32);
  m.output_without_shape(clip(clip(v, "c", 7, 8), "d", 0, 6), DataType::float32);
  m.output_without_shape(clip(m.node("Relu", {v}), "e", -5, -1), DataType::float32);
  expect_right(m, {x}, {{7, 7, 7}, {6, 6, 6}, {-1, -1, -1}});
}

// 83. Half precision rounds after every operation, fused or not.
TEST(Faults83, HalfPrecisionRoundsEachStep) {
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    OnnxBuilder m;
    const auto x = m.input("x", type, {"n", 3, 3}), y = m.input("y", type, {3, 3, 3, 3});
    m.output_without_shape(m.node("Mul", {y, m.node("Sqrt", {x})}), type);
    m.output_without_shape(m.node("Mul", {x, m.node("Cos", {x})}), type);
    m.output_without_shape(
        m.node("Equal", {m.node("Add", {x, x}),
                         m.node("Mul", {x, m.initializer(initializer_of("two", tensor(type, {}, {2})))})}),
        DataType::boolean);
    expect_right(m, {ramp({3, 3, 3}, 0.1, 0.37, type), ramp({3, 3, 3, 3}, -3, 0.11, type)});
  }
}

}  // namespace
}  // namespace fusewise::test
