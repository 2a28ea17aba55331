// The meaning of single operators against known results and plain loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "import/run_model.h"
#include "numerics/scalar_op.h"

namespace fusewise {
namespace {

using namespace import_test;  // NOLINT
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Ints = std::vector<int64_t>;

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan_value = std::numeric_limits<float>::quiet_NaN();

TEST(Softmax, FlattensBeforeVersion13) {
  const Tensor zeros = floats({2, 2, 2}, std::vector<float>(8, 0));
  EXPECT_THAT(values(run_node(11, "Softmax", {zeros}, {{"axis", 1}})[0]), Each(0.25f));
  EXPECT_THAT(values(run_node(13, "Softmax", {zeros}, {{"axis", 1}})[0]), Each(0.5f));
}

TEST(Softmax, DefaultAxis) {
  const Tensor zeros = floats({1, 10, 2, 2}, std::vector<float>(40, 0));
  EXPECT_THAT(values(run_node(11, "Softmax", {zeros})[0]), Each(1.0f / 40));
  EXPECT_THAT(values(run_node(13, "Softmax", {zeros})[0]), Each(0.5f));
  EXPECT_THAT(values(run_node(11, "LogSoftmax", {zeros})[0]), Each(FloatNear(-std::log(40.0f), 1e-6f)));
}

TEST(Softmax, InfinitiesAndNaN) {
  EXPECT_THAT(values(run_node(13, "Softmax", {floats({2}, {-inf, 0})})[0]), ElementsAre(0, 1));
  EXPECT_TRUE(std::isnan(values(run_node(13, "Softmax", {floats({2}, {-inf, -inf})})[0])[0]));
  EXPECT_TRUE(std::isnan(values(run_node(13, "Softmax", {floats({3}, {0, nan_value, 1})})[0])[2]));
}

TEST(Softmax, OfAScalarIsOne) {
  EXPECT_THAT(values(run_node(13, "Softmax", {floats({}, {5})})[0]), ElementsAre(1));
}

TEST(Relu, PropagatesNaN) {
  const auto y = values(run_node(17, "Relu", {floats({4}, {nan_value, 1, nan_value, -2})})[0]);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[2]));
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[3], 0);
}

TEST(Clip, MaximumWins) {
  const auto y = run_node(13, "Clip", {floats({3}, {-2, 0, 6}), floats({}, {2}), floats({}, {1})});
  EXPECT_THAT(values(y[0]), ElementsAre(1, 1, 1));
}

TEST(Clip, MissingBounds) {
  OnnxBuilder model(13);
  model.input("x", DataType::float32, {int64_t{3}});
  model.floats("most", {}, {1});
  model.node("Clip", {"x", "", "most"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  EXPECT_THAT(values(run(model, {floats({3}, {-5, 0, 5})})[0]), ElementsAre(-5, 0, 1));
  EXPECT_THAT(values(run_node(13, "Clip", {floats({2}, {-5, 5})})[0]), ElementsAre(-5, 5));
  EXPECT_THAT(values(run_node(6, "Clip", {floats({2}, {-5, 5})}, {{"max", OnnxAttributeValue(2.0f)}})[0]),
              ElementsAre(-5, 2));
}

TEST(Clip, ABoundOfOneElementButNotOfNone) {
  EXPECT_THAT(values(run_node(13, "Clip", {floats({2}, {-5, 5}), floats({1}, {0})})[0]), ElementsAre(0, 5));
  EXPECT_THROW(run_node(13, "Clip", {floats({2}, {-5, 5}), floats({0}, {})}), UserError);
}

TEST(Reduce, OverNothingGivesTheNeutralElement) {
  const Tensor empty = floats({2, 0, 3}, {});
  const OnnxAttributes attributes{{"axes", Ints{1}}, {"keepdims", 0}};
  const auto reduce = [&](const char* op) { return run_node(12, op, {empty}, attributes)[0]; };
  EXPECT_EQ(reduce("ReduceSum").shape, (Ints{2, 3}));
  EXPECT_THAT(values(reduce("ReduceSum")), Each(0));
  EXPECT_THAT(values(reduce("ReduceProd")), Each(1));
  EXPECT_THAT(values(reduce("ReduceMax")), Each(-inf));
  EXPECT_THAT(values(reduce("ReduceMin")), Each(inf));
  EXPECT_THAT(values(reduce("ReduceLogSum")), Each(-inf));
  EXPECT_THAT(values(reduce("ReduceLogSumExp")), Each(-inf));
}

TEST(Reduce, NoopWithEmptyAxes) {
  const Tensor x = ramp({3, 2, 2}, 5);
  const OnnxAttributes noop{{"noop_with_empty_axes", 1}};
  EXPECT_EQ(values(run_node(18, "ReduceSum", {x}, noop)[0]), values(x));
  EXPECT_EQ(values(run_node(18, "ReduceSum", {x}, noop, DataType::float32, {{1, {}}})[0]), values(x));
  // What is done element by element stays.
  EXPECT_THAT(values(run_node(18, "ReduceSumSquare", {floats({2}, {-3, 2})}, noop)[0]), ElementsAre(9, 4));
  EXPECT_THAT(values(run_node(18, "ReduceSum", {x})[0]), ElementsAre(66 - 60));
}

TEST(Reduce, OfAScalar) {
  EXPECT_THAT(values(run_node(13, "ReduceMin", {floats({}, {-7})})[0]), ElementsAre(-7));
}

TEST(Reduce, AxesAsOperand) {
  const auto y = run_node(13, "ReduceSum", {ramp({2, 3})}, {{"keepdims", 0}}, DataType::float32, {{1, {-1}}});
  EXPECT_THAT(values(y[0]), ElementsAre(3, 12));
}

TEST(ArgMax, FirstAndLastPosition) {
  const Tensor x = floats({1, 4}, {1, 5, 5, 0});
  EXPECT_THAT(values<int64_t>(run_node(13, "ArgMax", {x}, {{"axis", 1}}, DataType::int64)[0]),
              ElementsAre(1));
  EXPECT_THAT(values<int64_t>(
                  run_node(13, "ArgMax", {x}, {{"axis", 1}, {"select_last_index", 1}}, DataType::int64)[0]),
              ElementsAre(2));
}

TEST(Gemm, TransposesScalesAndBroadcastsTheBias) {
  // A' is [2, 3], B' is [3, 2].
  const auto y = run_node(13, "Gemm", {ramp({3, 2}), ramp({2, 3}), floats({2, 1}, {10, 20})},
                          {{"transA", 1},
                           {"transB", 1},
                           {"alpha", OnnxAttributeValue(2.0f)},
                           {"beta", OnnxAttributeValue(0.5f)}});
  EXPECT_THAT(values(y[0]), ElementsAre(2 * 10 + 5, 2 * 28 + 5, 2 * 13 + 10, 2 * 40 + 10));
}

TEST(Gemm, OfNoInnerDimensionIsTheBias) {
  const auto y = run_node(13, "Gemm", {floats({2, 0}, {}), floats({0, 3}, {}), floats({3}, {1, 2, 3})});
  EXPECT_THAT(values(y[0]), ElementsAre(1, 2, 3, 1, 2, 3));
}

TEST(MatMul, BroadcastsBatches) {
  const auto y = run_node(13, "MatMul", {ramp({2, 1, 1, 2}), ramp({3, 2, 1})});
  EXPECT_EQ(y[0].shape, (Ints{2, 3, 1, 1}));
  EXPECT_THAT(values(y[0]), ElementsAre(1, 3, 5, 3, 13, 23));
}

struct ConvCase {
  int64_t stride, dilation, pad_low, pad_high, groups;
};

TEST(Conv, AgreesWithPlainLoops) {
  const ConvCase cases[] = {
      {1, 1, 0, 0, 1}, {2, 1, 1, 1, 1}, {1, 2, 2, 1, 1}, {2, 1, 0, 3, 2}, {3, 1, 1, 0, 2}};
  const int64_t n = 2, in = 4, out = 6, length = 11, kernel = 3;
  for (const ConvCase& c : cases) {
    const Tensor x = ramp({n, in, length}, 40, 0.125f), w = ramp({out, in / c.groups, kernel}, 13, 0.25f);
    const Tensor bias = ramp({out}, 2);
    const auto y = run_node(13, "Conv", {x, w, bias},
                            {{"strides", Ints{c.stride}},
                             {"dilations", Ints{c.dilation}},
                             {"pads", Ints{c.pad_low, c.pad_high}},
                             {"group", OnnxAttributeValue(c.groups)}});
    const int64_t positions =
        (length + c.pad_low + c.pad_high - (kernel - 1) * c.dilation - 1) / c.stride + 1;
    ASSERT_EQ(y[0].shape, (Ints{n, out, positions}));
    std::vector<float> expected;
    for (int64_t b = 0; b < n; ++b)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t p = 0; p < positions; ++p) {
          float sum = bias.as<float>()[static_cast<size_t>(o)];
          for (int64_t i = 0; i < in / c.groups; ++i)
            for (int64_t k = 0; k < kernel; ++k) {
              const int64_t at = p * c.stride + k * c.dilation - c.pad_low;
              if (at < 0 || at >= length) continue;
              const int64_t channel = o / (out / c.groups) * (in / c.groups) + i;
              sum += x.as<float>()[static_cast<size_t>((b * in + channel) * length + at)] *
                     w.as<float>()[static_cast<size_t>((o * (in / c.groups) + i) * kernel + k)];
            }
          expected.push_back(sum);
        }
    EXPECT_THAT(values(y[0]), Pointwise(FloatNear(1e-3f), expected));
  }
}

TEST(Conv, SamePaddingPutsTheOddElementWhereItSays) {
  const Tensor x = floats({1, 1, 4}, {1, 2, 3, 4}), w = floats({1, 1, 2}, {1, 10});
  EXPECT_THAT(values(run_node(13, "Conv", {x, w}, {{"auto_pad", "SAME_UPPER"}})[0]),
              ElementsAre(21, 32, 43, 4));
  EXPECT_THAT(values(run_node(13, "Conv", {x, w}, {{"auto_pad", "SAME_LOWER"}})[0]),
              ElementsAre(10, 21, 32, 43));
}

struct TransposeCase {
  int64_t stride, dilation, pad_low, pad_high, output_padding, kernel, groups;
};

TEST(ConvTranspose, AgreesWithPlainLoops) {
  const TransposeCase cases[] = {{1, 1, 0, 0, 0, 3, 1}, {2, 1, 0, 0, 0, 2, 1}, {2, 1, 1, 1, 1, 3, 1},
                                 {3, 1, 0, 0, 0, 2, 1}, {3, 1, 1, 0, 2, 5, 2}, {1, 2, 1, 2, 0, 3, 2},
                                 {2, 1, 0, 0, 0, 1, 1}, {2, 1, 0, 1, 0, 4, 2}};
  const int64_t in = 4, per_group = 3, length = 5;
  for (const TransposeCase& c : cases) {
    const Tensor x = ramp({1, in, length}, 9, 0.5f), w = ramp({in, per_group, c.kernel}, 11, 0.25f);
    const auto y = run_node(13, "ConvTranspose", {x, w},
                            {{"strides", Ints{c.stride}},
                             {"dilations", Ints{c.dilation}},
                             {"pads", Ints{c.pad_low, c.pad_high}},
                             {"group", OnnxAttributeValue(c.groups)},
                             {"output_padding", Ints{c.output_padding}}});
    const int64_t out = per_group * c.groups;
    const int64_t full = (length - 1) * c.stride + (c.kernel - 1) * c.dilation + 1;
    const int64_t size = full + c.output_padding - c.pad_low - c.pad_high;
    ASSERT_EQ(y[0].shape, (Ints{1, out, size}));
    std::vector<float> expected(static_cast<size_t>(out * size));
    for (int64_t i = 0; i < in; ++i)
      for (int64_t o = 0; o < per_group; ++o)
        for (int64_t p = 0; p < length; ++p)
          for (int64_t k = 0; k < c.kernel; ++k) {
            const int64_t at = p * c.stride + k * c.dilation - c.pad_low;
            if (at < 0 || at >= size) continue;
            const int64_t channel = i / (in / c.groups) * per_group + o;
            expected[static_cast<size_t>(channel * size + at)] +=
                x.as<float>()[static_cast<size_t>(i * length + p)] *
                w.as<float>()[static_cast<size_t>((i * per_group + o) * c.kernel + k)];
          }
    EXPECT_THAT(values(y[0]), Pointwise(FloatNear(1e-3f), expected)) << "stride " << c.stride;
  }
}

TEST(AveragePool, CountsPaddingOnlyWhenAsked) {
  const Tensor x = floats({1, 1, 3}, {2, 4, 6});
  const OnnxAttributes window{{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}};
  EXPECT_THAT(values(run_node(11, "AveragePool", {x}, window)[0]), ElementsAre(2, 3, 5, 6));
  OnnxAttributes counted = window;
  counted.emplace_back("count_include_pad", 1);
  EXPECT_THAT(values(run_node(11, "AveragePool", {x}, counted)[0]), ElementsAre(1, 3, 5, 3));
}

TEST(AveragePool, CeilModeNeverCountsWhatItAdds) {
  const Tensor x = floats({1, 1, 4}, {1, 2, 3, 4});
  const auto y =
      run_node(11, "AveragePool", {x},
               {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", 1}, {"count_include_pad", 1}});
  EXPECT_THAT(values(y[0]), ElementsAre(2, 3.5f));
}

TEST(MaxPool, NaNAndNegativeValuesBesidePadding) {
  const auto y = run_node(12, "MaxPool", {floats({1, 1, 3}, {-5, -4, nan_value})},
                          {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 0}}});
  EXPECT_EQ(values(y[0])[0], -5);
  EXPECT_EQ(values(y[0])[1], -4);
  EXPECT_TRUE(std::isnan(values(y[0])[2]));
}

TEST(Slice, ClampsAndGoesBackwards) {
  const auto slice = [](Ints start, Ints end, Ints step) {
    return values(run_node(13, "Slice", {ramp({5})}, {}, DataType::float32,
                           {{1, std::move(start)}, {2, std::move(end)}, {3, {0}}, {4, std::move(step)}})[0]);
  };
  EXPECT_THAT(slice({1}, {INT64_MAX}, {1}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(slice({-2}, {100}, {1}), ElementsAre(3, 4));
  EXPECT_THAT(slice({-1}, {INT64_MIN}, {-1}), ElementsAre(4, 3, 2, 1, 0));
  EXPECT_THAT(slice({4}, {0}, {-2}), ElementsAre(4, 2));
  EXPECT_THAT(slice({100}, {-100}, {-3}), ElementsAre(4, 1));
  EXPECT_THAT(slice({3}, {1}, {1}), ElementsAre());
  EXPECT_THAT(slice({1}, {5}, {INT64_MAX}), ElementsAre(1));
}

TEST(Reshape, ZeroCopiesUnlessAllowed) {
  EXPECT_EQ(run_node(14, "Reshape", {ramp({2, 3, 4})}, {}, DataType::float32, {{1, {0, -1}}})[0].shape,
            (Ints{2, 12}));
  EXPECT_EQ(
      run_node(14, "Reshape", {floats({0, 3}, {})}, {{"allowzero", 1}}, DataType::float32, {{1, {3, 0}}})[0]
          .shape,
      (Ints{3, 0}));
  EXPECT_THROW(run_node(14, "Reshape", {ramp({2, 3})}, {}, DataType::float32, {{1, {4, -1}}}), UserError);
  EXPECT_THROW(run_node(14, "Reshape", {ramp({2, 3})}, {}, DataType::float32, {{1, {-1, -1}}}), UserError);
}

TEST(Pad, Modes) {
  const auto pad = [](const char* mode, Ints pads) {
    return values(run_node(13, "Pad", {floats({3}, {1, 2, 3})}, {{"mode", mode}}, DataType::float32,
                           {{1, std::move(pads)}})[0]);
  };
  EXPECT_THAT(pad("constant", {1, 2}), ElementsAre(0, 1, 2, 3, 0, 0));
  EXPECT_THAT(pad("constant", {-1, 1}), ElementsAre(2, 3, 0));
  EXPECT_THAT(pad("edge", {2, 1}), ElementsAre(1, 1, 1, 2, 3, 3));
  EXPECT_THAT(pad("reflect", {2, 2}), ElementsAre(3, 2, 1, 2, 3, 2, 1));
}

TEST(Gather, NegativeAndWrongIndices) {
  EXPECT_THAT(values(run_node(13, "Gather", {ramp({3, 2}), ints({}, {-1})})[0]), ElementsAre(4, 5));
  EXPECT_THROW(run_node(13, "Gather", {ramp({3, 2})}, {}, DataType::float32, {{1, {3}}}), UserError);
}

TEST(GatherElements, NegativeIndex) {
  const auto y = run_node(13, "GatherElements", {ramp({2, 3}), ints({2, 2}, {-1, 0, 1, 1})}, {{"axis", 1}});
  EXPECT_THAT(values(y[0]), ElementsAre(2, 0, 4, 4));
}

TEST(GatherND, WithBatchDimensions) {
  const auto y = run_node(13, "GatherND", {ramp({2, 2, 2}), ints({2, 1}, {1, 0})}, {{"batch_dims", 1}});
  EXPECT_THAT(values(y[0]), ElementsAre(2, 3, 4, 5));
}

TEST(Mod, SignFollowsTheSpecification) {
  EXPECT_THAT(
      values<int64_t>(run_node(13, "Mod", {ints({2}, {-5, 5}), ints({2}, {3, -3})}, {}, DataType::int64)[0]),
      ElementsAre(1, -1));
  EXPECT_THAT(values(run_node(13, "Mod", {floats({1}, {-5}), floats({1}, {3})}, {{"fmod", 1}})[0]),
              ElementsAre(-2));
}

TEST(LayerNormalization, SurvivesALargeMean) {
  for (float mean : {0.0f, 100.0f, 1e3f, 1e4f}) {
    std::vector<float> x(16);
    for (size_t i = 0; i < x.size(); ++i) x[i] = mean + static_cast<float>(i) * 1e-3f;
    const auto y =
        run_node(17, "LayerNormalization", {floats({1, 16}, x), floats({16}, std::vector<float>(16, 1))});
    // At 1e4 the mean itself is rounded to a thousandth.
    EXPECT_NEAR(values(y[0])[0], -1.34, mean < 1e4f ? 0.02 : 0.1) << mean;
  }
}

TEST(LayerNormalization, HalfPrecisionDoesNotOverflow) {
  std::vector<uint16_t> x, ones(4, float_to_float16(1));
  for (float v : {300.f, -300.f, 300.f, -300.f}) x.push_back(float_to_float16(v));
  const auto y =
      run_node(17, "LayerNormalization",
               {Tensor::from(DataType::float16, {1, 4}, x), Tensor::from(DataType::float16, {4}, ones)}, {},
               DataType::float16);
  EXPECT_THAT(values<uint16_t>(y[0]), ElementsAre(0x3c00, 0xbc00, 0x3c00, 0xbc00));
}

TEST(BatchNormalization, ScalesByChannel) {
  const auto y = run_node(
      15, "BatchNormalization",
      {ramp({1, 2, 2}), floats({2}, {2, 4}), floats({2}, {1, -1}), floats({2}, {0, 2}), floats({2}, {4, 16})},
      {{"epsilon", OnnxAttributeValue(0.0f)}});
  EXPECT_THAT(values(y[0]), ElementsAre(1, 2, -1, 0));
}

TEST(BatchNormalization, TrainingIsRefused) {
  EXPECT_THROW(
      run_node(15, "BatchNormalization",
               {ramp({1, 1, 2}), floats({1}, {1}), floats({1}, {1}), floats({1}, {1}), floats({1}, {1})},
               {{"training_mode", 1}}),
      UnsupportedError);
}

TEST(Gelu, BothForms) {
  EXPECT_NEAR(values(run_node(20, "Gelu", {floats({1}, {1})})[0])[0], 0.841344746f, 1e-6);
  EXPECT_NEAR(values(run_node(20, "Gelu", {floats({1}, {1})}, {{"approximate", "tanh"}})[0])[0], 0.841191990f,
              1e-6);
}

TEST(Softplus, NeitherOverflowsNorUnderflows) {
  EXPECT_THAT(values(run_node(13, "Softplus", {floats({3}, {1000, -1000, 0})})[0]),
              ElementsAre(1000, 0, FloatNear(std::log(2.0f), 1e-6f)));
}

TEST(CumSum, AllFourWays) {
  const auto sums = [](int64_t exclusive, int64_t reverse) {
    return values(
        run_node(14, "CumSum", {floats({3}, {1, 2, 4})},
                 {{"exclusive", OnnxAttributeValue(exclusive)}, {"reverse", OnnxAttributeValue(reverse)}},
                 DataType::float32, {{1, {0}}})[0]);
  };
  EXPECT_THAT(sums(0, 0), ElementsAre(1, 3, 7));
  EXPECT_THAT(sums(1, 0), ElementsAre(0, 1, 3));
  EXPECT_THAT(sums(0, 1), ElementsAre(7, 6, 4));
  EXPECT_THAT(sums(1, 1), ElementsAre(6, 4, 0));
}

TEST(Cast, SaturatesAndTakesNaNToZero) {
  const auto y = run_node(13, "Cast", {floats({4}, {300, nan_value, -inf, 50})}, {{"to", 3}}, DataType::int8);
  EXPECT_THAT(values<int8_t>(y[0]), ElementsAre(127, 0, -128, 50));
}

TEST(Operators, DifferentTypesAreRefusedByName) {
  try {
    run_node(13, "Add", {floats({1}, {1}), ints({1}, {1})});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("node_y"));
    EXPECT_THAT(e.what(), HasSubstr("different types"));
    EXPECT_EQ(e.context.op, "Add");
  }
}

}  // namespace
}  // namespace fusewise
