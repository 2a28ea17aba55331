// Small models of kinds on which compilers of this sort have failed: from file to compiled results, in every fusion mode
// bit for bit what the interpreter says, and that what the format asks for.
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "e2e/zoo_model.h"
#include "graph/interpreter/interpreter.h"
#include "session/reference.h"

namespace fusewise::test {
namespace {

using compiler::Numerics;
using fusion::FusionMode;
using graph::Tensor;
using session::Model;
using session::Session;
using session::SessionOptions;
using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using Shape64 = std::vector<int64_t>;

constexpr float infinity = std::numeric_limits<float>::infinity();
const OnnxDim n = std::string("n");

Tensor floats(Shape64 shape, const std::vector<float>& values) {
  return Tensor::from<float>(DataType::float32, std::move(shape), values);
}
Tensor ramp(Shape64 shape, float start = -2, float step = 0.25f) {
  std::vector<float> values(static_cast<size_t>(graph::element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = start + step * static_cast<float>(i % 29);
  return floats(std::move(shape), values);
}
template <class T = float>
std::vector<T> values(const Tensor& tensor) {
  return {tensor.as<T>().begin(), tensor.as<T>().end()};
}

class OddModels : public testing::Test {
 protected:
  Model load(const OnnxBuilder& builder, const std::string& name = "model.onnx") const {
    builder.write(folder_.path() / name);
    return Model::load((folder_.path() / name).string());
  }

  // The outputs; strict ones, in all fusion modes, are those of the interpreter.
  std::vector<Tensor> run(const OnnxBuilder& builder, const std::vector<Tensor>& inputs) const {
    const Model model = load(builder);
    const session::Reference reference(model.graph(), inputs, {});
    for (const FusionMode fusion : {FusionMode::off, FusionMode::operators, FusionMode::on}) {
      const Session strict(model, options_of(Numerics::strict, fusion, 2));
      EXPECT_TRUE(all_passed(reference.exact(strict.run(inputs)))) << static_cast<int>(fusion);
      const Session rounded(model, options_of(Numerics::default_, fusion, 2));
      EXPECT_TRUE(all_passed(reference.rounded_otherwise(rounded.run(inputs)))) << static_cast<int>(fusion);
    }
    return graph::interpret(model.graph(), inputs);
  }

  SessionOptions cached() const {
    SessionOptions options = options_of(Numerics::strict, FusionMode::on, 1);
    options.use_cache = true;
    options.cache_folder = (folder_.path() / "cache").string();
    return options;
  }

  TemporaryFolder folder_;
};

TEST_F(OddModels, InputsWeightsAndConstantsAsOutputs) {
  OnnxBuilder model;
  model.input("x", DataType::float32, {n});
  model.floats("weight", {1}, {7});
  model.node("Constant", {}, {{"value", onnx_tensor("", {}, std::vector<float>{0.5f})}}, "constant");
  model.node("Min", {"x", "weight"}, {}, "least");
  for (const char* name : {"weight", "x", "constant", "least", "x"})
    model.output_without_shape(name, DataType::float32);
  for (const int64_t size : {0, 1, 7}) {
    const Tensor x = ramp({size}, 5);
    const std::vector<Tensor> outputs = run(model, {x});
    EXPECT_THAT(values(outputs[0]), ElementsAre(7));
    EXPECT_EQ(values(outputs[1]), values(x));
    EXPECT_THAT(values(outputs[2]), ElementsAre(0.5f));
    EXPECT_EQ(values(outputs[4]), values(x));
  }
}

TEST_F(OddModels, AGraphWithoutNodes) {
  OnnxBuilder model;
  model.input("x", DataType::float32, {n, int64_t{3}});
  model.output("x", DataType::float32, {n, int64_t{3}});
  for (const int64_t size : {0, 1, 5}) {
    const Tensor x = ramp({size, 3});
    EXPECT_EQ(values(run(model, {x})[0]), values(x));
  }
}

TEST_F(OddModels, SoftmaxBeforeAndSinceVersion13) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"})
    for (const int64_t opset : {11, 13})
      for (const int axis : {0, 1, 2}) {
        OnnxBuilder model(opset);
        model.input("x", DataType::float32, {int64_t{2}, int64_t{3}, int64_t{4}});
        model.floats("bias", {4}, {1, 0, -1, 2});
        model.node(op, {model.node("Add", {"x", "bias"})}, {{"axis", axis}}, "y");
        model.output_without_shape("y", DataType::float32);
        run(model, {ramp({2, 3, 4})});
      }
  OnnxBuilder old(11);
  old.input("x", DataType::float32, {int64_t{2}, int64_t{2}, int64_t{2}});
  old.node("Softmax", {"x"}, {}, "y");
  old.output_without_shape("y", DataType::float32);
  EXPECT_THAT(values(run(old, {floats({2, 2, 2}, std::vector<float>(8, 0))})[0]), Each(0.25f));
}

TEST_F(OddModels, ReductionsOfScalarsAndOverNoAxes) {
  for (const char* op :
       {"ReduceSum", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL2", "ReduceLogSum"})
    for (const int noop : {0, 1})
      for (const bool empty : {false, true}) {
        if (std::string(op) == "ReduceMin" && empty) continue;
        OnnxBuilder model(18);
        model.input("x", DataType::float32, {int64_t{3}, int64_t{2}, int64_t{2}});
        std::vector<std::string> operands{"x"};
        if (empty) operands.push_back(model.ints("axes", {0}, {}));
        model.node(op, operands, {{"noop_with_empty_axes", noop}, {"keepdims", 1}}, "y");
        model.output_without_shape("y", DataType::float32);
        const Tensor x = ramp({3, 2, 2}, 0.5f);
        const std::vector<float> y = values(run(model, {x})[0]);
        EXPECT_EQ(y.size(), noop == 1 ? 12U : 1U) << op;
        if (noop == 1 && std::string(op) == "ReduceSum") {
          EXPECT_EQ(y, values(x));
        }
        if (noop == 1 && std::string(op) == "ReduceSumSquare") {
          EXPECT_FLOAT_EQ(y[1], 0.75f * 0.75f);
        }
      }
  for (const char* op :
       {"ReduceSum", "ReduceMin", "ReduceMean", "ReduceL2", "Softmax", "Transpose", "Relu", "Gelu"}) {
    OnnxBuilder model(20);
    model.input("x", DataType::float32, {});
    if (std::string(op) == "Softmax")
      model.node(op, {"x"}, {{"axis", -1}}, "y");
    else
      model.node(op, {"x"}, {}, "y");
    model.output_without_shape("y", DataType::float32);
    EXPECT_EQ(run(model, {floats({}, {3})})[0].shape, Shape64{}) << op;
  }
}

TEST_F(OddModels, ClipWithAnyOfItsBounds) {
  const std::vector<float> x = {-3, -1, 0, 1, 3, infinity, -infinity};
  for (const bool least : {false, true})
    for (const bool most : {false, true})
      for (const bool at_run_time : {false, true})
        for (const bool after_relu : {false, true}) {
          OnnxBuilder model;
          std::vector<Tensor> inputs = {floats({7}, x)};
          model.input("x", DataType::float32, {int64_t{7}});
          const auto bound = [&](const char* name, float value) {
            if (!at_run_time) return model.floats(name, {}, {value});
            inputs.push_back(floats({}, {value}));
            return model.input(name, DataType::float32, {});
          };
          std::vector<std::string> operands{after_relu ? model.node("Relu", {"x"}) : "x"};
          operands.push_back(least ? bound("least", -1) : "");
          if (most) operands.push_back(bound("most", 2));
          model.node("Clip", operands, {}, "y");
          model.output_without_shape("y", DataType::float32);
          std::vector<float> expected = x;
          for (float& value : expected) {
            if (after_relu) value = std::max(value, 0.0f);
            if (least) value = std::max(value, -1.0f);
            if (most) value = std::min(value, 2.0f);
          }
          EXPECT_EQ(values(run(model, inputs)[0]), expected) << least << most << at_run_time << after_relu;
        }
}

TEST_F(OddModels, ClipOfOtherTypes) {
  OnnxBuilder model;
  model.input("x", DataType::int8, {int64_t{4}});
  const auto bound = [](const char* name, int8_t value) {
    return onnx_tensor(name, DataType::int8, {}, {static_cast<std::byte>(value)});
  };
  model.initializer(bound("least", -5));
  model.initializer(bound("most", 100));
  model.node("Clip", {"x", "least", "most"}, {}, "y");
  model.node("Clip", {"y", "", "most"}, {}, "z");
  model.output_without_shape("z", DataType::int8);
  const std::vector<Tensor> inputs = {Tensor::from<int8_t>(DataType::int8, {4}, {-128, -5, 5, 127})};
  EXPECT_THAT(values<int8_t>(run(model, inputs)[0]), ElementsAre(-5, -5, 5, 100));
}

// Two models that differ in one thing only never share a program.
TEST_F(OddModels, TheCacheTellsModelsApart) {
  struct Variant {
    float most = 1, epsilon = 1e-5f, weight = 0;
    int64_t opset = 17;
    int64_t first = 0;
  };
  const auto build = [](const Variant& v) {
    OnnxBuilder model(v.opset);
    model.input("x", DataType::float32, {int64_t{2}, int64_t{3}});
    model.floats("weight", {3}, {v.weight, 1, 1});
    model.floats("zero", {3}, {0, 0, 0});
    const std::string normal = model.node("LayerNormalization", {"x", "weight", "zero"},
                                          {{"axis", -1}, {"epsilon", OnnxAttributeValue(v.epsilon)}});
    const std::string turned = model.node("Transpose", {normal}, {{"perm", Shape64{v.first, 1 - v.first}}});
    model.node("Clip", {turned, "", model.floats("most", {}, {v.most})}, {}, "y");
    model.output_without_shape("y", DataType::float32);
    return model;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Variant> variants = {{},
                                         {.most = 2},
                                         {.epsilon = 1e-12f},
                                         {.weight = -0.0f},
                                         {.weight = nan},
                                         {.weight = std::numeric_limits<float>::denorm_min()},
                                         {.opset = 18},
                                         {.first = 1}};
  for (const Variant& variant : variants) {
    const Model model = load(build(variant));
    EXPECT_FALSE(Session(model, cached()).info().cache_hit);
    EXPECT_TRUE(Session(load(build(variant)), cached()).info().cache_hit);
  }
  const Model model = load(build({}));
  for (const auto change :
       {+[](SessionOptions& o) { o.numerics = Numerics::fast; },
        +[](SessionOptions& o) { o.fusion = FusionMode::off; }, +[](SessionOptions& o) { o.threads = 2; },
        +[](SessionOptions& o) { o.machine = machine::host_machine("x86-64-v3"); },
        +[](SessionOptions& o) { o.disabled_passes = {"fold_constants"}; }}) {
    SessionOptions options = cached();
    change(options);
    EXPECT_FALSE(Session(model, options).info().cache_hit);
    EXPECT_TRUE(Session(model, options).info().cache_hit);
  }
}

// Weights in a file of their own belong to the model.
TEST_F(OddModels, TheCacheLooksAtExternalData) {
  OnnxBuilder model;
  model.input("x", DataType::float32, {int64_t{2}});
  model.initializer(
      {"w", DataType::float32, {2}, {}, {{"location", "w.bin"}, {"offset", "0"}, {"length", "8"}}});
  model.node("Mul", {"x", "w"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  const auto write = [&](float first) {
    const float numbers[] = {first, 2};
    FILE* file = std::fopen((folder_.path() / "w.bin").c_str(), "wb");
    ASSERT_EQ(std::fwrite(numbers, sizeof(float), 2, file), 2U);
    std::fclose(file);
  };
  for (const float first : {1.0f, 3.0f}) {
    write(first);
    const Session session(load(model), cached());
    EXPECT_FALSE(session.info().cache_hit);
    EXPECT_THAT(values(session.run(std::vector<Tensor>{floats({2}, {1, 1})})[0]), ElementsAre(first, 2));
  }
}

TEST_F(OddModels, ExternalDataFarBeyondFourGigabytes) {
  constexpr int64_t offset = 5000000000;
  const std::filesystem::path data = folder_.path() / "large.bin";
  const float numbers[] = {3, 4};
  FILE* file = std::fopen(data.c_str(), "wb");
  ASSERT_EQ(std::fseek(file, offset, SEEK_SET), 0);  // a hole
  const bool written = std::fwrite(numbers, sizeof(float), 2, file) == 2;
  if (std::fclose(file) != 0 || !written) GTEST_SKIP() << "this file system has no large files with holes";
  OnnxBuilder model;
  model.input("x", DataType::float32, {int64_t{2}});
  const auto external = [&](const char* name, int64_t at, const char* length) {
    return OnnxTensor{name,
                      DataType::float32,
                      {2},
                      {},
                      {{"location", "large.bin"}, {"offset", std::to_string(at)}, {"length", length}}};
  };
  model.initializer(external("w", offset, "8"));
  model.initializer(external("zero", 4096, "8"));
  model.node("Add", {model.node("Mul", {"x", "w"}), "zero"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  EXPECT_THAT(values(run(model, {floats({2}, {1, 2})})[0]), ElementsAre(3, 8));
  for (const int64_t wrong : {offset + 1, offset + 8, int64_t{-8}, std::numeric_limits<int64_t>::max()}) {
    model.initializers[0] = external("w", wrong, "8");
    EXPECT_THROW(load(model).graph(), UserError) << wrong;
  }
}

TEST_F(OddModels, OneExecutableForAThousandLengths) {
  OnnxBuilder model;
  model.input("x", DataType::float32, {n});
  const std::string length = model.node("Shape", {"x"});
  const std::string ones =
      model.node("ConstantOfShape", {length}, {{"value", onnx_tensor("", {1}, std::vector<float>{1})}});
  const std::string end = model.node("Squeeze", {length, model.ints("zeroth", {1}, {0})});
  const std::string range =
      model.node("Range", {model.ints("zero", {}, {0}), end, model.ints("one", {}, {1})});
  const std::string numbers = model.node("Cast", {range}, {{"to", 1}});
  model.node("Add", {model.node("Mul", {"x", numbers}), ones}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  const Session session(load(model), options_of(Numerics::strict, FusionMode::on, 1));
  const auto check = [&](int64_t size) {
    const Tensor x = ramp({size});
    const std::vector<Tensor> outputs = session.run(std::vector<Tensor>{x});
    ASSERT_EQ(outputs[0].shape, Shape64{size});
    for (size_t i = 0; i < static_cast<size_t>(size); ++i)
      ASSERT_EQ(values(outputs[0])[i], values(x)[i] * static_cast<float>(i) + 1);
  };
  for (int64_t size = 0; size < 100; ++size) check(size);
  for (int64_t size = 100; size < 1000; size += 97) check(size);
}

// Sessions of one process whose kernels have one name and another meaning.
TEST_F(OddModels, KernelsOfOneNameStayApart) {
  const auto build = [](float factor) {
    OnnxBuilder model;
    model.input("x", DataType::float32, {n});
    model.node("Mul", {model.node("Relu", {"x"}), model.floats("factor", {}, {factor})}, {}, "y");
    model.output_without_shape("y", DataType::float32);
    return model;
  };
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 6; ++i)
    sessions.push_back(std::make_unique<Session>(load(build(static_cast<float>(i + 2))),
                                                 options_of(Numerics::strict, FusionMode::on, 1)));
  EXPECT_EQ(sessions[0]->steps()[0].kernel, sessions[1]->steps()[0].kernel);
  std::vector<std::thread> threads;
  std::vector<int> wrong(sessions.size(), 0);
  for (size_t i = 0; i < sessions.size(); ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k) {
        const auto y = sessions[i]->run(std::vector<Tensor>{floats({2}, {-1, 2})});
        wrong[i] += values(y[0]) != std::vector<float>{0, 2 * static_cast<float>(i + 2)};
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, Each(0));
}

TEST_F(OddModels, AReluBeforeQuantizationStays) {
  for (const int zero_point : {0, 10, -128}) {
    for (const DataType type : {DataType::int8, DataType::uint8}) {
      if (type == DataType::uint8 && zero_point < 0) continue;
      OnnxBuilder model;
      model.input("x", DataType::float32, {int64_t{3}});
      model.floats("scale", {}, {0.1f});
      model.initializer(onnx_tensor("zero_point", type, {}, {static_cast<std::byte>(zero_point)}));
      const std::string q = model.node("QuantizeLinear", {model.node("Relu", {"x"}), "scale", "zero_point"});
      model.node("DequantizeLinear", {q, "scale", "zero_point"}, {}, "y");
      model.output_without_shape("y", DataType::float32);
      const std::vector<float> y = values(run(model, {floats({3}, {-3, -0.0f, 1})})[0]);
      EXPECT_EQ(y[0], 0) << zero_point;
      EXPECT_EQ(y[1], 0) << zero_point;
      EXPECT_THAT(y[2], FloatNear(1, 1e-6f)) << zero_point;
    }
  }
}

TEST_F(OddModels, ManyDimensions) {
  OnnxBuilder product;
  product.input(
      "a", DataType::float32,
      {int64_t{2}, int64_t{4}, int64_t{6}, int64_t{1}, int64_t{1}, int64_t{1}, int64_t{1}, int64_t{1}});
  product.input(
      "b", DataType::float32,
      {int64_t{2}, int64_t{4}, int64_t{6}, int64_t{3}, int64_t{2}, int64_t{3}, int64_t{2}, int64_t{3}});
  const std::string sum = product.node(
      "ReduceSum", {product.node("Mul", {"a", "b"}), product.ints("axis", {1}, {2})}, {{"keepdims", 0}});
  product.node("Log", {product.node("Max", {sum, product.floats("least", {}, {2e-16f})})}, {}, "y");
  product.output_without_shape("y", DataType::float32);
  const auto ones = [](Shape64 shape) {
    const auto count = static_cast<size_t>(graph::element_count(shape));
    return floats(std::move(shape), std::vector<float>(count, 1));
  };
  const std::vector<float> y =
      values(run(product, {ones({2, 4, 6, 1, 1, 1, 1, 1}), ones({2, 4, 6, 3, 2, 3, 2, 3})})[0]);
  EXPECT_THAT(y, Each(FloatNear(std::log(6.0f), 1e-6f)));

  for (const int64_t rank : {6, 9, 12}) {
    OnnxBuilder model;
    const Shape64 shape(static_cast<size_t>(rank), 2);
    Shape64 backwards(shape.size());
    std::iota(backwards.rbegin(), backwards.rend(), 0);
    model.input("x", DataType::float32, OnnxShape(shape.begin(), shape.end()));
    const std::string turned = model.node("Transpose", {"x"}, {{"perm", backwards}});
    model.node("Add", {model.node("Relu", {turned}), "x"}, {}, "y");
    model.output_without_shape("y", DataType::float32);
    run(model, {ramp(shape)});
  }
}

TEST_F(OddModels, EachShapeStaysThatOfItsTensor) {
  OnnxBuilder model;
  const OnnxDim m = std::string("m");
  model.input("x", DataType::float32, {n, m});
  model.input("s", DataType::float32, {n, std::string("k")});
  const auto width = [&](const std::string& tensor) {
    const std::string shape = model.node("Shape", {tensor});
    const std::string size =
        model.node("Gather", {shape, model.ints("one_of_" + tensor, {}, {1})}, {{"axis", 0}});
    return model.node("Cast", {size}, {{"to", 1}});
  };
  const std::string wide = model.node("Add", {"x", width("x")}), other = model.node("Add", {"s", width("s")});
  model.node("Concat", {other, wide}, {{"axis", 1}}, "y");
  model.output_without_shape("y", DataType::float32);
  const std::vector<Tensor> outputs = run(model, {floats({1, 2}, {0, 0}), floats({1, 3}, {0, 0, 0})});
  EXPECT_THAT(values(outputs[0]), ElementsAre(3, 3, 3, 2, 2));
}

TEST_F(OddModels, BranchesThatTakeFromAroundThem) {
  const auto branch = [](const std::string& output, const std::string& taken) {
    auto body = std::make_shared<OnnxGraphBuilder>();
    body->floats("shadow", {}, {10});
    if (taken.empty())
      body->node("Constant", {}, {{"value", onnx_tensor("", {2}, std::vector<float>{5, 6})}}, output);
    else
      body->node("Add", {taken, "shadow"}, {}, output);
    body->output(output, DataType::float32, {int64_t{2}});
    return body;
  };
  for (const bool taken : {false, true}) {
    OnnxBuilder model;
    model.input("x", DataType::float32, {int64_t{2}});
    model.input("c", DataType::boolean, {});
    model.floats("weight", {2}, {1, 2});
    // Used inside of a body only.
    model.node("Mul", {"x", "weight"}, {}, "inner");
    model.node("If", {"c"}, {{"then_branch", branch("t", "inner")}, {"else_branch", branch("e", "")}}, "y");
    model.output("y", DataType::float32, {int64_t{2}});
    const std::vector<Tensor> inputs = {floats({2}, {1, 1}),
                                        Tensor::from<uint8_t>(DataType::boolean, {}, {uint8_t{taken}})};
    if (taken)
      EXPECT_THAT(values(run(model, inputs)[0]), ElementsAre(11, 12));
    else
      EXPECT_THAT(values(run(model, inputs)[0]), ElementsAre(5, 6));
  }
}

// Any order of the nodes gives one model.
TEST_F(OddModels, NodesInAnyOrder) {
  const ZooModel right("bert_base_tiny"),
      backwards("bert_base_tiny", [](OnnxBuilder& model) { std::ranges::reverse(model.nodes); });
  const std::vector<Tensor> inputs = right.inputs({{"batch", 2}, {"seq", 5}});
  const SessionOptions options = options_of(Numerics::strict, FusionMode::on, 2);
  EXPECT_TRUE(same_bits(Session(right.model(), options).run(inputs),
                        Session(backwards.model(), options).run(inputs)));
}

}  // namespace
}  // namespace fusewise::test
