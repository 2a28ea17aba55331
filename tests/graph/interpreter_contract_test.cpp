// Dot and convolution against loops over single elements.
#include "interpreter_testing.h"

#include <gmock/gmock.h>

namespace fusewise::graph::testing {
namespace {

// An accumulator that adds products one after the other, as strict order says.
class SlowAccumulator {
 public:
  explicit SlowAccumulator(DataType type) : type_(type) {}
  void add(const Scalar& a, const Scalar& b) {
    if (type_ == DataType::float64) {
      wide_ = std::fma(a.f, b.f, wide_);
    } else if (is_float(type_)) {
      single_ = std::fma(static_cast<float>(a.f), static_cast<float>(b.f), single_);
    } else {
      integer_ += static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i);
    }
  }
  Scalar result() const {
    if (type_ == DataType::float64) return {type_, wide_, 0};
    if (is_float(type_)) return convert({DataType::float32, double{single_}, 0}, type_);
    return convert({DataType::uint64, 0, static_cast<int64_t>(integer_)}, type_);
  }

 private:
  DataType type_;
  float single_ = 0;
  double wide_ = 0;
  uint64_t integer_ = 0;
};

Tensor slow_dot(const DotAttributes& a, const Tensor& x, const Tensor& y) {
  std::vector<int> x_role(x.shape.size(), -1), y_role(y.shape.size(), -1);  // position in the loop index
  std::vector<int64_t> parallel, contracted;
  for (size_t i = 0; i < a.lhs_batch.size(); ++i) {
    x_role[size_t(a.lhs_batch[i])] = y_role[size_t(a.rhs_batch[i])] = int(parallel.size());
    parallel.push_back(x.shape[size_t(a.lhs_batch[i])]);
  }
  constexpr int first_contracted = 100;
  for (size_t i = 0; i < a.lhs_contract.size(); ++i) {
    x_role[size_t(a.lhs_contract[i])] = y_role[size_t(a.rhs_contract[i])] = first_contracted + int(i);
    contracted.push_back(x.shape[size_t(a.lhs_contract[i])]);
  }
  for (size_t d = 0; d < x_role.size(); ++d)
    if (x_role[d] < 0) x_role[d] = int(parallel.size()), parallel.push_back(x.shape[d]);
  for (size_t d = 0; d < y_role.size(); ++d)
    if (y_role[d] < 0) y_role[d] = int(parallel.size()), parallel.push_back(y.shape[d]);
  Tensor result(x.element, parallel);
  for_each_index(parallel, [&](const std::vector<int64_t>& p, int64_t flat) {
    SlowAccumulator sum(x.element);
    for_each_index(contracted, [&](const std::vector<int64_t>& k, int64_t) {
      const auto pick = [&](const Tensor& t, const std::vector<int>& role) {
        std::vector<int64_t> index;
        for (const int r : role)
          index.push_back(r >= first_contracted ? k[size_t(r - first_contracted)] : p[size_t(r)]);
        return element_at(t, flat_index(t.shape, index));
      };
      sum.add(pick(x, x_role), pick(y, y_role));
    });
    set_element(result, flat, sum.result());
  });
  return result;
}

Tensor run_dot(const DotAttributes& a, const Tensor& x, const Tensor& y, int threads = 1) {
  return run_op(
      {x, y}, [&](GraphBuilder& b, const std::vector<Value>& v) { return b.dot(v[0], v[1], a); }, threads);
}

TEST(InterpreterDot, AgreesWithSlowLoopsForEveryTypeAndEdgeSize) {
  std::mt19937 random(1);
  const DotAttributes plain{{}, {}, {1}, {0}};
  for (const DataType type : all_types) {
    if (type == DataType::boolean) continue;
    for (const int64_t m : {0, 1, 5, 13}) {
      for (const int64_t k : {0, 1, 37}) {
        for (const int64_t n : {0, 1, 7, 17, 33}) {
          const Tensor x = random_tensor(random, type, {m, k}), y = random_tensor(random, type, {k, n});
          EXPECT_TRUE(same_tensors(run_dot(plain, x, y), slow_dot(plain, x, y))) << m << "x" << k << "x" << n;
        }
      }
    }
  }
}

TEST(InterpreterDot, BatchesPermutationsAndContractionOrder) {
  std::mt19937 random(2);
  const Tensor x = random_tensor(random, DataType::float32, {3, 5, 2, 7, 4});
  const Tensor y = random_tensor(random, DataType::float32, {7, 2, 3, 11, 4});
  for (const DotAttributes& a :
       {DotAttributes{{0, 2}, {2, 1}, {3, 4}, {0, 4}}, DotAttributes{{2, 0}, {1, 2}, {4, 3}, {4, 0}},
        DotAttributes{{}, {}, {4, 0, 3}, {4, 2, 0}}, DotAttributes{{0}, {2}, {}, {}}}) {
    EXPECT_TRUE(same_tensors(run_dot(a, x, y), slow_dot(a, x, y)));
  }
  // The order of the contracted dimensions is part of the meaning.
  EXPECT_FALSE(same_tensors(run_dot({{}, {}, {4, 0, 3}, {4, 2, 0}}, x, y),
                            run_dot({{}, {}, {0, 3, 4}, {2, 0, 4}}, x, y)));
}

TEST(InterpreterDot, SpecialValuesAndNoTermsGiveZero) {
  std::mt19937 random(3);
  const DotAttributes plain{{}, {}, {1}, {0}};
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64}) {
    const Tensor x = random_tensor(random, type, {9, 3}, true),
                 y = random_tensor(random, type, {3, 19}, true);
    EXPECT_TRUE(same_tensors(run_dot(plain, x, y), slow_dot(plain, x, y)));
  }
  const Tensor zero = run_dot(plain, Tensor(DataType::float32, {2, 0}), Tensor(DataType::float32, {0, 3}));
  EXPECT_THAT(zero.as<float>(), ::testing::Each(::testing::FloatEq(0)));
  // -0 is lost in the sum that starts at +0.
  const Tensor minus = Tensor::from<float>(DataType::float32, {1, 1}, {-0.0f});
  const Tensor one = Tensor::from<float>(DataType::float32, {1, 1}, {1.0f});
  EXPECT_FALSE(std::signbit(run_dot(plain, minus, one).as<float>()[0]));
}

TEST(InterpreterDot, HalfTypesRoundOnceAtTheEnd) {
  // 2048 + 1 is no float16; the float32 accumulator keeps every 1.
  std::vector<uint16_t> ones(4097, float_to_float16(1));
  const Tensor x = Tensor::from(DataType::float16, {1, 4097}, ones),
               y = Tensor::from(DataType::float16, {4097, 1}, ones);
  EXPECT_EQ(element_at(run_dot({{}, {}, {1}, {0}}, x, y), 0).f, 4096);
}

TEST(InterpreterDot, ThreadsDoNotMatter) {
  std::mt19937 random(4);
  const Tensor x = random_tensor(random, DataType::float32, {2, 67, 129}),
               y = random_tensor(random, DataType::float32, {2, 129, 71});
  const DotAttributes a{{0}, {0}, {2}, {1}};
  EXPECT_TRUE(same_tensors(run_dot(a, x, y, 1), run_dot(a, x, y, 3)));
}

Tensor slow_convolution(const ConvolutionAttributes& a, const Tensor& x, const Tensor& w,
                        const std::vector<int64_t>& shape) {
  Tensor result(x.element, shape);
  const std::vector<int64_t> kernel(w.shape.begin() + 2, w.shape.end());
  const int64_t channels = w.shape[1], per_group = std::max<int64_t>(1, w.shape[0] / a.groups);
  for_each_index(shape, [&](const std::vector<int64_t>& out, int64_t flat) {
    SlowAccumulator sum(x.element);
    for_each_index(kernel, [&](const std::vector<int64_t>& tap, int64_t) {
      for (int64_t c = 0; c < channels; ++c) {
        std::vector<int64_t> xi{out[0], out[1] / per_group * channels + c}, wi{out[1], c};
        bool present = true;
        for (size_t d = 0; d < kernel.size(); ++d) {
          const int64_t at = out[d + 2] * a.strides[d] - a.pad_low[d] + tap[d] * a.dilations[d];
          present = present && at >= 0 && at < x.shape[d + 2];
          xi.push_back(at);
          wi.push_back(tap[d]);
        }
        if (present) sum.add(element_at(x, flat_index(x.shape, xi)), element_at(w, flat_index(w.shape, wi)));
      }
    });
    set_element(result, flat, sum.result());
  });
  return result;
}

void check_convolution(const ConvolutionAttributes& a, const Tensor& x, const Tensor& w, int threads = 1) {
  const Tensor y = run_op(
      {x, w}, [&](GraphBuilder& b, const std::vector<Value>& v) { return b.convolution(v[0], v[1], a); },
      threads);
  EXPECT_TRUE(same_tensors(y, slow_convolution(a, x, w, y.shape)))
      << to_string(x.shape) << to_string(w.shape);
}

TEST(InterpreterConvolution, AgreesWithSlowLoops) {
  std::mt19937 random(5);
  const auto check_case = [&](DataType type, std::vector<int64_t> x, std::vector<int64_t> w,
                              const ConvolutionAttributes& a, bool special = false) {
    check_convolution(a, random_tensor(random, type, std::move(x), special),
                      random_tensor(random, type, std::move(w)), 2);
  };
  for (const DataType type : {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16,
                              DataType::int8, DataType::uint64}) {
    check_case(type, {2, 3, 7, 9}, {17, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1});
    check_case(type, {1, 6, 8, 5}, {4, 3, 3, 2}, {{2, 1}, {1, 2}, {2, 0}, {0, 3}, 2});
    check_case(type, {1, 5, 6, 7}, {5, 1, 3, 3}, {{1, 2}, {2, 1}, {1, 1}, {2, 1}, 5});  // depthwise
    check_case(type, {1, 3, 6, 7}, {6, 1, 3, 3},
               {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 3});  // two outputs a channel
    check_case(type, {2, 4, 11}, {3, 4, 5}, {{3}, {2}, {4}, {9}, 1});
    check_case(type, {1, 2, 4, 3, 5}, {3, 2, 2, 3, 2}, {{1, 2, 1}, {1, 1, 2}, {1, 1, 0}, {0, 1, 1}, 1});
  }
  check_case(DataType::float32, {2, 5}, {3, 5}, {{}, {}, {}, {}, 1});  // no spatial dimensions
  check_case(DataType::float32, {0, 3, 4, 4}, {2, 3, 1, 1}, {{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1});
  check_case(DataType::float32, {1, 0, 4, 4}, {2, 0, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1});
  check_case(DataType::float32, {1, 1, 1, 1}, {1, 1, 3, 3},
             {{1, 1}, {1, 1}, {3, 3}, {3, 3}, 1});  // all taps absent
  check_case(DataType::float32, {1, 3, 9, 9}, {3, 3, 2, 2}, {{1, 1}, {1, 1}, {-1, -2}, {-1, 0}, 1});
  check_case(DataType::float32, {1, 3, 5, 5}, {3, 3, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, true);
}

TEST(InterpreterConvolution, PaddingIsAbsentAndNotZero) {
  // Zero padding would give inf * 0 = NaN at the border.
  const Tensor x = Tensor::from<float>(DataType::float32, {1, 1, 2}, {1, 2});
  const Tensor w = Tensor::from<float>(DataType::float32, {1, 1, 3}, {INFINITY, 1, 1});
  const Tensor y = run_op({x, w}, [](GraphBuilder& b, const std::vector<Value>& v) {
    return b.convolution(v[0], v[1], {{1}, {1}, {1}, {1}, 1});
  });
  EXPECT_EQ(y.as<float>()[0], 3);
  EXPECT_EQ(y.as<float>()[1], INFINITY);
}

}  // namespace
}  // namespace fusewise::graph::testing
