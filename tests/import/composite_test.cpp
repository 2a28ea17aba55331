// Resizes, scatters, quantisation, Einstein sums and recurrent layers against known results and plain loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "import/run_model.h"

namespace fusewise {
namespace {

using namespace import_test;  // NOLINT
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;
using Ints = std::vector<int64_t>;

Tensor resized(const Tensor& x, Ints sizes, OnnxAttributes attributes) {
  return run_node(13, "Resize", {x}, std::move(attributes), DataType::float32, {{3, std::move(sizes)}})[0];
}

TEST(Resize, NearestAndLinear) {
  const Tensor x = floats({1, 1, 4}, {1, 2, 3, 4});
  EXPECT_THAT(values(resized(x, {1, 1, 8},
                             {{"mode", "nearest"},
                              {"coordinate_transformation_mode", "asymmetric"},
                              {"nearest_mode", "floor"}})),
              ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(values(resized(x, {1, 1, 8}, {{"mode", "linear"}})),
              ElementsAre(1, 1.25f, 1.75f, 2.25f, 2.75f, 3.25f, 3.75f, 4));
  EXPECT_THAT(values(resized(x, {1, 1, 7},
                             {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}})),
              ElementsAre(1, 1.5f, 2, 2.5f, 3, 3.5f, 4));
  EXPECT_THAT(values(resized(x, {1, 1, 2}, {{"mode", "nearest"}})), ElementsAre(1, 3));
}

TEST(Resize, WholeScalesWorkOnSymbols) {
  OnnxBuilder model(13);
  model.input("x", DataType::float32, {int64_t{1}, int64_t{1}, std::string("h")});
  model.floats("scales", {3}, {1, 1, 3});
  model.node("Resize", {"x", "", "scales"}, {{"mode", "nearest"}}, "y");
  model.output_without_shape("y", DataType::float32);
  EXPECT_THAT(values(run(model, {floats({1, 1, 2}, {5, 6})})[0]), ElementsAre(5, 5, 5, 6, 6, 6));
}

TEST(ScatterElements, ConstantIndicesAndIndicesOfDataAgree) {
  const Tensor data = ramp({2, 3}), updates = floats({2, 2}, {10, 20, 30, 40});
  const Ints indices{2, 0, -1, 2};
  const auto dynamic = run_node(13, "ScatterElements", {data, ints({2, 2}, indices), updates}, {{"axis", 1}});
  EXPECT_THAT(values(dynamic[0]), ElementsAre(20, 1, 10, 3, 4, 40));
  OnnxBuilder model(13);
  model.input("data", DataType::float32, {int64_t{2}, int64_t{3}});
  model.input("updates", DataType::float32, {int64_t{2}, int64_t{2}});
  model.ints("indices", {2, 2}, indices);
  model.node("ScatterElements", {"data", "indices", "updates"}, {{"axis", 1}}, "y");
  model.output_without_shape("y", DataType::float32);
  EXPECT_EQ(values(run(model, {data, updates})[0]), values(dynamic[0]));
}

TEST(ScatterElements, CombinesRepeatedIndices) {
  const auto scatter = [](const char* how) {
    return values(run_node(18, "ScatterElements",
                           {floats({3}, {1, 2, 3}), ints({3}, {1, 1, 0}), floats({3}, {5, 7, -9})},
                           {{"reduction", how}})[0]);
  };
  EXPECT_THAT(scatter("add"), ElementsAre(-8, 14, 3));
  EXPECT_THAT(scatter("mul"), ElementsAre(-9, 70, 3));
  EXPECT_THAT(scatter("max"), ElementsAre(1, 7, 3));
  EXPECT_THAT(scatter("min"), ElementsAre(-9, 2, 3));
}

TEST(ScatterND, ReplacesRows) {
  const auto y =
      run_node(13, "ScatterND", {ramp({3, 2}), ints({2, 1}, {2, 0}), floats({2, 2}, {10, 11, 20, 21})});
  EXPECT_THAT(values(y[0]), ElementsAre(20, 21, 2, 3, 10, 11));
}

TEST(Quantize, RoundsHalfToEvenAndSaturates) {
  const Tensor zero = Tensor::from(DataType::uint8, {}, std::vector<uint8_t>{10});
  const auto y =
      run_node(13, "QuantizeLinear", {floats({5}, {0.25f, 0.75f, -100, 1000, -3}), floats({}, {0.5f}), zero},
               {}, DataType::uint8);
  EXPECT_THAT(values<uint8_t>(y[0]), ElementsAre(10, 12, 0, 255, 4));
}

TEST(Quantize, AReluBeforeItStays) {
  OnnxBuilder model(13);
  model.input("x", DataType::float32, {int64_t{2}});
  model.floats("scale", {}, {0.1f});
  model.initializer(onnx_tensor("zero", DataType::int8, {}, {std::byte{0}}));
  const std::string q = model.node("QuantizeLinear", {model.node("Relu", {"x"}), "scale", "zero"});
  model.node("DequantizeLinear", {q, "scale", "zero"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  EXPECT_THAT(values(run(model, {floats({2}, {-3, 1})})[0]), ElementsAre(0, FloatNear(1, 1e-6f)));
}

TEST(Dequantize, ByChannel) {
  const Tensor x = Tensor::from(DataType::int8, {2, 2}, std::vector<int8_t>{-128, 127, 1, 2});
  const auto y = run_node(13, "DequantizeLinear", {x, floats({2}, {1, 0.5f})}, {{"axis", 0}});
  EXPECT_THAT(values(y[0]), ElementsAre(-128, 127, 0.5f, 1));
}

TEST(Einsum, ContractsTransposesTracesAndBroadcasts) {
  const auto einsum = [](const char* equation, const std::vector<Tensor>& x) {
    return run_node(13, "Einsum", x, {{"equation", equation}})[0];
  };
  EXPECT_THAT(values(einsum("ij,jk->ki", {ramp({2, 2}), ramp({2, 1})})), ElementsAre(1, 3));
  EXPECT_THAT(values(einsum("ij->", {ramp({2, 3})})), ElementsAre(15));
  EXPECT_THAT(values(einsum("ii->i", {ramp({2, 2})})), ElementsAre(0, 3));
  EXPECT_THAT(values(einsum("ba", {ramp({2, 2})})), ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(einsum("...ij,...jk->...ik", {ramp({3, 1, 2, 4}), ramp({5, 4, 1})}).shape, (Ints{3, 5, 2, 1}));
  EXPECT_THAT(values(einsum("i,i,i->i", {ramp({3}), ramp({3}), ramp({3})})), ElementsAre(0, 1, 8));
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One hidden unit and one input: the gates are plain numbers.
TEST(Lstm, AgreesWithPlainLoops) {
  const std::vector<float> x{0.5f, -1, 2}, w{0.1f, 0.2f, 0.3f, 0.4f}, r{0.5f, -0.5f, 0.25f, 1},
      b{0.1f, 0, -0.2f, 0.3f, 0, 0.1f, 0, 0};
  for (const bool backwards : {false, true}) {
    OnnxBuilder model(14);
    model.input("x", DataType::float32, {int64_t{3}, int64_t{1}, int64_t{1}});
    model.floats("w", {1, 4, 1}, w);
    model.floats("r", {1, 4, 1}, r);
    model.floats("b", {1, 8}, b);
    model.nodes.push_back({"lstm",
                           "LSTM",
                           "",
                           {"x", "w", "r", "b"},
                           {"y", "y_h", "y_c"},
                           {{"hidden_size", 1}, {"direction", backwards ? "reverse" : "forward"}}});
    for (const char* name : {"y", "y_h", "y_c"}) model.output_without_shape(name, DataType::float32);
    const auto out = run(model, {floats({3, 1, 1}, x)});
    double h = 0, cell = 0;
    std::vector<float> expected(3);
    for (size_t i = 0; i < 3; ++i) {
      const size_t t = backwards ? 2 - i : i;
      const auto gate = [&](size_t g) { return x[t] * w[g] + h * r[g] + b[g] + b[g + 4]; };
      const double in = sigmoid(gate(0)), o = sigmoid(gate(1)), f = sigmoid(gate(2)),
                   fresh = std::tanh(gate(3));
      cell = f * cell + in * fresh;
      h = o * std::tanh(cell);
      expected[t] = static_cast<float>(h);
    }
    EXPECT_EQ(out[0].shape, (Ints{3, 1, 1, 1}));
    EXPECT_THAT(values(out[0]), Pointwise(FloatNear(1e-6f), expected));
    EXPECT_NEAR(values(out[1])[0], h, 1e-6);
    EXPECT_NEAR(values(out[2])[0], cell, 1e-6);
  }
}

// The product of one row with a matrix of 8-bit weights, as a layer quantises it: by hand, in double.
std::vector<double> quantised_product(const std::vector<double>& row, double low, double high,
                                      const std::vector<int>& weights, size_t columns,
                                      const std::vector<float>& scales, int zero) {
  const auto scale = static_cast<float>((high - low) / 255);
  const double zero_of_row = std::nearbyint(-low / scale);
  std::vector<double> sums(columns, 0);
  for (size_t c = 0; c < columns; ++c) {
    for (size_t k = 0; k < row.size(); ++k) {
      const double q = std::clamp(std::nearbyint(row[k] / scale) + zero_of_row, 0.0, 255.0);
      sums[c] += (q - zero_of_row) * (weights[k * columns + c] - zero);
    }
    sums[c] *= scale * scales[scales.size() == 1 ? 0 : c];
  }
  return sums;
}

// Two hidden units, two inputs; scales of the matrix with signed weights, and of each column with unsigned ones.
TEST(QuantizedLstm, AgreesWithPlainLoops) {
  const std::vector<double> x{0.52, -1, 2, 0.25, -0.75, 1.4};
  const std::vector<float> bias{0.1f, 0, -0.2f, 0.3f, 0, 0.1f, 0, 0.4f, 0.2f, 0, 0, 0, -0.1f, 0, 0.3f, 0};
  for (const bool by_column : {false, true}) {
    const int zero = by_column ? 7 : 0;
    const size_t columns = 8;
    std::vector<int> w, r;
    for (int i = 0; i < 16; ++i) {
      w.push_back(by_column ? i * 16 + 1 : i * 13 - 100);
      r.push_back(by_column ? 255 - i * 15 : 90 - i * 11);
    }
    std::vector<float> w_scale(by_column ? columns : 1), r_scale(w_scale.size());
    for (size_t i = 0; i < w_scale.size(); ++i) {
      w_scale[i] = 0.01f + 0.001f * static_cast<float>(i);
      r_scale[i] = 0.02f - 0.001f * static_cast<float>(i);
    }
    const auto bytes_of_numbers = [](const std::vector<int>& numbers) {
      std::vector<std::byte> bytes;
      for (const int n : numbers) bytes.push_back(static_cast<std::byte>(n));
      return bytes;
    };
    OnnxBuilder model(14);
    const DataType type = by_column ? DataType::uint8 : DataType::int8;
    const Ints each = by_column ? Ints{1, 8} : Ints{1};
    model.input("x", DataType::float32, {int64_t{3}, int64_t{1}, int64_t{2}});
    model.initializer(onnx_tensor("w", type, {1, 2, 8}, bytes_of_numbers(w)));
    model.initializer(onnx_tensor("r", type, {1, 2, 8}, bytes_of_numbers(r)));
    model.floats("b", {1, 16}, bias);
    model.floats("w_scale", each, w_scale);
    model.floats("r_scale", each, r_scale);
    model.initializer(
        onnx_tensor("zero", type, each, bytes_of_numbers(std::vector<int>(w_scale.size(), zero))));
    model.nodes.push_back({"lstm",
                           "DynamicQuantizeLSTM",
                           "com.microsoft",
                           {"x", "w", "r", "b", "", "", "", "", "w_scale", "zero", "r_scale", "zero"},
                           {"y", "y_h", "y_c"},
                           {{"hidden_size", 2}}});
    for (const char* name : {"y", "y_h", "y_c"}) model.output_without_shape(name, DataType::float32);
    const auto out = run(model, {floats({3, 1, 2}, {x.begin(), x.end()})});
    std::vector<double> h(2, 0), cell(2, 0);
    std::vector<float> expected;
    for (size_t t = 0; t < 3; ++t) {
      // The range of the inputs is that of all steps, with 0; a state of zeros has none.
      const auto from_input = quantised_product({x[2 * t], x[2 * t + 1]}, -1, 2, w, columns, w_scale, zero);
      const double low = std::min({h[0], h[1], 0.0}), high = std::max({h[0], h[1], 0.0});
      const auto from_state = t == 0 ? std::vector<double>(columns, 0)
                                     : quantised_product(h, low, high, r, columns, r_scale, zero);
      for (size_t k = 0; k < 2; ++k) {
        const auto gate = [&](size_t g) {
          const size_t at = 2 * g + k;
          return from_input[at] + from_state[at] + bias[at] + bias[at + columns];
        };
        cell[k] = sigmoid(gate(2)) * cell[k] + sigmoid(gate(0)) * std::tanh(gate(3));
        h[k] = sigmoid(gate(1)) * std::tanh(cell[k]);
        expected.push_back(static_cast<float>(h[k]));
      }
    }
    EXPECT_THAT(values(out[0]), Pointwise(FloatNear(1e-5f), expected));
    EXPECT_NEAR(values(out[1])[1], h[1], 1e-5);
    EXPECT_NEAR(values(out[2])[0], cell[0], 1e-5);
  }
}

TEST(Gru, BothPlacesOfTheReset) {
  const std::vector<float> x{0.5f, -1}, w{0.1f, 0.2f, 0.3f}, r{0.5f, -0.5f, 0.75f},
      b{0.1f, 0, -0.2f, 0.3f, 0, 0.4f};
  for (const bool late : {false, true}) {
    const auto y = run_node(
        14, "GRU", {floats({2, 1, 1}, x), floats({1, 3, 1}, w), floats({1, 3, 1}, r), floats({1, 6}, b)},
        {{"hidden_size", 1}, {"linear_before_reset", late ? 1 : 0}});
    double h = 0;
    for (float v : x) {
      const double z = sigmoid(v * w[0] + h * r[0] + b[0] + b[3]),
                   s = sigmoid(v * w[1] + h * r[1] + b[1] + b[4]);
      const double from_state = late ? s * (h * r[2] + b[5]) : s * h * r[2] + b[5];
      h = (1 - z) * std::tanh(v * w[2] + b[2] + from_state) + z * h;
    }
    EXPECT_NEAR(values(y[0])[1], h, 1e-6) << late;
  }
}

TEST(BoundInputs, MakeShapesOfDataStatic) {
  OnnxBuilder model(13);
  model.input("x", DataType::float32, {std::string("n")});
  model.input("shape", DataType::int64, {int64_t{2}});
  model.node("Reshape", {"x", "shape"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  EXPECT_EQ(imported(model).inputs.size(), 2u);  // read when the model runs
  const Ints target{3, 2};
  auto owner = std::make_shared<const Ints>(target);
  ImportOptions options;
  options.bound_inputs["shape"] = {
      {DataType::int64, {Dim(2)}}, std::as_bytes(std::span(*owner)), owner, "shape"};
  options.symbol_values["n"] = 6;
  const graph::Graph graph = imported(model.serialize(), options);
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(to_string(graph.type(graph.outputs[0].value)), "float32[3, 2]");
}

TEST(Folding, SizesThatAreComputedFromConstantsAreKnown) {
  OnnxBuilder model(13);
  model.input("x", DataType::float32, {int64_t{6}});
  model.floats("size", {2}, {1.5f, 4.0f});  // not whole, so only evaluation can tell
  const std::string doubled = model.node("Mul", {"size", model.floats("two", {}, {2})});
  const std::string halved = model.node("Div", {doubled, model.floats("factors", {2}, {1, 4})});
  model.node("Reshape", {"x", model.node("Cast", {halved}, {{"to", 7}})}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  EXPECT_EQ(to_string(imported(model).type({1, 0})), "float32[3, 2]");
}

}  // namespace
}  // namespace fusewise
