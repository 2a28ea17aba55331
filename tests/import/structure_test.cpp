// Graphs as files hold them: order, names, functions, nested graphs, symbols, outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "graph/graph.h"
#include "import/run_model.h"
#include "zoo/zoo.h"

namespace fusewise {
namespace {

using namespace import_test;  // NOLINT
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

template <class Error>
std::string message_of(const OnnxBuilder& model) {
  try {
    imported(model);
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

OnnxBuilder one_input(OnnxShape shape = {int64_t{2}}, int64_t opset = 17) {
  OnnxBuilder model(opset);
  model.input("x", DataType::float32, std::move(shape));
  return model;
}

TEST(Order, UnsortedNodesAreSorted) {
  OnnxBuilder model = one_input();
  model.node("Mul", {"a", "b"}, {}, "y");
  model.node("Neg", {"a"}, {}, "b");
  model.node("Add", {"x", "x"}, {}, "a");
  model.output_without_shape("y", DataType::float32);
  EXPECT_THAT(values(run(model, {floats({2}, {1, 2})})[0]), ElementsAre(-4, -16));
}

TEST(Order, ACycleNamesItsTensors) {
  OnnxBuilder model = one_input();
  model.node("Add", {"x", "b"}, {}, "a");
  model.node("Neg", {"a"}, {}, "b");
  model.node("Relu", {"b"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  const std::string message = message_of<UserError>(model);
  EXPECT_THAT(message, HasSubstr("cycle"));
  EXPECT_THAT(message, HasSubstr("'a'"));
  EXPECT_THAT(message, HasSubstr("'b'"));
}

TEST(Order, NamesThatNothingMakesAndNamesMadeTwice) {
  OnnxBuilder missing = one_input();
  missing.node("Add", {"x", "nowhere"}, {}, "y");
  missing.output_without_shape("y", DataType::float32);
  EXPECT_THAT(message_of<UserError>(missing), HasSubstr("'nowhere'"));
  OnnxBuilder twice = one_input();
  twice.node("Neg", {"x"}, {}, "y");
  twice.node("Relu", {"x"}, {}, "y");
  twice.output_without_shape("y", DataType::float32);
  EXPECT_THAT(message_of<UserError>(twice), HasSubstr("made twice"));
  OnnxBuilder no_output = one_input();
  no_output.output_without_shape("z", DataType::float32);
  EXPECT_THAT(message_of<UserError>(no_output), HasSubstr("'z'"));
}

TEST(Order, AnOperatorWithoutANodeNeededIsNotImported) {
  OnnxBuilder model = one_input();
  model.node("Neg", {"x"}, {}, "y");
  model.node("NoSuchOperator", {"x"}, {}, "dead");
  model.output_without_shape("y", DataType::float32);
  EXPECT_EQ(imported(model).size(), 2u);
}

TEST(Order, ADeepChainIsImported) {
  OnnxBuilder model = one_input();
  constexpr int length = 50000;
  std::string at = "x";
  for (int i = 0; i < length; ++i) at = model.node("Neg", {at});
  model.output_without_shape(at, DataType::float32);
  const graph::Graph graph = imported(model);
  EXPECT_EQ(graph.size(), static_cast<size_t>(length) + 1);
}

TEST(Outputs, InputsInitializersAndConstantsAreDelivered) {
  OnnxBuilder model = one_input();
  model.floats("w", {1}, {7});
  model.node("Constant", {}, {{"value_float", OnnxAttributeValue(3.0f)}}, "c");
  for (const char* name : {"x", "w", "c", "x"}) model.output_without_shape(name, DataType::float32);
  const auto y = run(model, {floats({2}, {2.3f, 4})});
  ASSERT_EQ(y.size(), 4u);
  EXPECT_THAT(values(y[0]), ElementsAre(2.3f, 4));
  EXPECT_THAT(values(y[1]), ElementsAre(7));
  EXPECT_THAT(values(y[2]), ElementsAre(3));
  EXPECT_THAT(values(y[3]), ElementsAre(2.3f, 4));
}

TEST(Outputs, AnInnerTensorIsDelivered) {
  OnnxBuilder model = one_input();
  const std::string inner = model.node("Neg", {"x"});
  const std::string outer = model.node("Relu", {inner});
  model.output_without_shape(outer, DataType::float32);
  model.output_without_shape(inner, DataType::float32);
  const auto y = run(model, {floats({2}, {1, -2})});
  EXPECT_THAT(values(y[0]), ElementsAre(0, 2));
  EXPECT_THAT(values(y[1]), ElementsAre(-1, 2));
}

TEST(Initializers, ThatAreListedAsInputsAreConstants) {
  OnnxBuilder model = one_input();
  model.input("w", DataType::float32, {int64_t{2}});
  model.floats("w", {2}, {10, 20});
  model.node("Add", {"x", "w"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  EXPECT_EQ(imported(model).inputs.size(), 1u);
  EXPECT_THAT(values(run(model, {floats({2}, {1, 2})})[0]), ElementsAre(11, 22));
}

TEST(Initializers, UnusedOnesAreDropped) {
  OnnxBuilder model = one_input();
  model.floats("unused", {2}, {1, 2});
  model.node("Neg", {"x"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  EXPECT_TRUE(imported(model).constants.empty());
}

TEST(Initializers, RawDataIsNotCopied) {
  OnnxBuilder model = one_input({int64_t{64}});
  model.floats("w", {64}, std::vector<float>(64, 1));
  model.node("Add", {"x", "w"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  auto owner = std::make_shared<const std::string>(model.serialize());
  const graph::Graph graph = import_onnx(std::as_bytes(std::span(*owner)), owner, "");
  ASSERT_EQ(graph.constants.size(), 1u);
  const auto* data = reinterpret_cast<const char*>(graph.constants[0].bytes.data());
  EXPECT_TRUE(data >= owner->data() && data < owner->data() + owner->size());
}

TEST(Functions, AreInlinedWithTheirAttributes) {
  OnnxBuilder model = one_input();
  OnnxFunction f{"ScaledNeg", "custom", {"a"}, {"b"}, {"factor"}, {}, 17};
  f.nodes.push_back(
      {"", "Constant", "", {}, {"k"}, {OnnxAttribute::reference("value_float", "factor", 1.0f)}});
  f.nodes.push_back({"", "Neg", "", {"a"}, {"n"}, {}});
  f.nodes.push_back({"", "Mul", "", {"n", "k"}, {"b"}, {}});
  model.functions.push_back(f);
  model.opsets.emplace_back("custom", 1);
  model.node("ScaledNeg", {"x"}, {{"factor", OnnxAttributeValue(3.0f)}}, "y", "custom");
  model.output_without_shape("y", DataType::float32);
  EXPECT_THAT(values(run(model, {floats({2}, {1, 2})})[0]), ElementsAre(-3, -6));
}

TEST(Functions, ThatCallThemselvesAreRefused) {
  OnnxBuilder model = one_input();
  OnnxFunction f{"F", "custom", {"a"}, {"b"}, {}, {}, 17};
  f.nodes.push_back({"", "F", "custom", {"a"}, {"b"}, {}});
  model.functions.push_back(f);
  model.node("F", {"x"}, {}, "y", "custom");
  model.output_without_shape("y", DataType::float32);
  EXPECT_THAT(message_of<UserError>(model), HasSubstr("call"));
}

std::shared_ptr<OnnxGraphBuilder> branch(const std::string& op, const std::string& output) {
  auto body = std::make_shared<OnnxGraphBuilder>();
  body->node(op, {"x"}, {}, output);
  body->output_without_shape(output, DataType::float32);
  return body;
}

TEST(If, AConstantConditionTakesItsBranch) {
  OnnxBuilder model = one_input();
  model.initializer(onnx_tensor("condition", DataType::boolean, {}, {std::byte{0}}));
  model.node("If", {"condition"},
             {{"then_branch", branch("NoSuchOperator", "a")}, {"else_branch", branch("Neg", "b")}}, "y");
  model.output_without_shape("y", DataType::float32);
  EXPECT_THAT(values(run(model, {floats({2}, {1, 2})})[0]), ElementsAre(-1, -2));
}

TEST(If, AConditionOfDataChoosesBetweenBothResults) {
  OnnxBuilder model = one_input();
  model.input("condition", DataType::boolean, {});
  model.node("If", {"condition"}, {{"then_branch", branch("Relu", "a")}, {"else_branch", branch("Neg", "b")}},
             "y");
  model.output_without_shape("y", DataType::float32);
  const Tensor x = floats({2}, {-1, 2});
  const auto flag = [](uint8_t v) { return Tensor::from(DataType::boolean, {}, std::vector<uint8_t>{v}); };
  EXPECT_THAT(values(run(model, {x, flag(1)})[0]), ElementsAre(0, 2));
  EXPECT_THAT(values(run(model, {x, flag(0)})[0]), ElementsAre(1, -2));
}

TEST(Unsupported, EverythingOfTheModelIsListedAtOnce) {
  OnnxBuilder model = one_input();
  const std::string a = model.node("NoSuchOperator", {"x"});
  const std::string b = model.node("NoSuchOperator", {a});
  const std::string c = model.node("Frobnicate", {b}, {}, "", "com.example");
  const std::string d = model.node("BatchNormalization", {"x3", "v", "v", "v", "v"}, {{"training_mode", 1}});
  model.input("x3", DataType::float32, {int64_t{1}, int64_t{2}, int64_t{3}});
  model.floats("v", {2}, {1, 2});
  model.output_without_shape(c, DataType::float32);
  model.output_without_shape(d, DataType::float32);
  try {
    imported(model);
    FAIL();
  } catch (const UnsupportedError& e) {
    ASSERT_EQ(e.items.size(), 3u);
    EXPECT_THAT(e.what(), HasSubstr("operator NoSuchOperator, opset version 17 (2 times"));
    EXPECT_THAT(e.what(), HasSubstr("com.example.Frobnicate"));
    EXPECT_THAT(e.what(), HasSubstr("training mode"));
    EXPECT_EQ(e.items[0].count, 2);
  }
}

TEST(Provenance, NodesNameTheirModelNode) {
  OnnxBuilder model = one_input();
  model.node("Sigmoid", {"x"}, {}, "s");
  model.node("Neg", {"s"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  const graph::Graph graph = imported(model);
  ASSERT_EQ(graph.model_nodes.size(), 2u);
  EXPECT_EQ(graph.model_nodes[0].name, "node_s");
  EXPECT_EQ(graph.model_nodes[0].op_type, "Sigmoid");
  const graph::Node& last = graph.node(graph.outputs[0].value.node);
  ASSERT_EQ(last.sources.size(), 1u);
  EXPECT_EQ(last.sources[0], 1u);
}

TEST(Symbols, OddAndMissingNames) {
  OnnxBuilder model(17);
  model.input("x", DataType::float32,
              {std::string("p2o.DynamicDimension.0"), std::string("?"), std::string("")});
  model.node("Neg", {"x"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  const graph::Graph graph = imported(model);
  const Shape shape = graph.node(graph.inputs[0].node).results[0].shape;
  EXPECT_EQ(shape[0].as_symbol(), "p2o.DynamicDimension.0");
  EXPECT_EQ(shape[1].as_symbol(), "x_dim1");
  EXPECT_EQ(shape[2].as_symbol(), "x_dim2");
}

// Shape -> Gather -> Unsqueeze -> Concat -> Reshape, the way exporters write it.
TEST(Symbols, ShapeArithmeticBecomesDimensions) {
  OnnxBuilder model = one_input({std::string("batch"), std::string("seq"), int64_t{12}});
  const std::string shape = model.node("Shape", {"x"});
  const auto extent = [&](int64_t d) {
    const std::string i = model.ints("i" + std::to_string(d), {}, {d});
    return model.node("Unsqueeze", {model.node("Gather", {shape, i}), "axis"});
  };
  model.ints("axis", {1}, {0});
  const std::string target = model.node(
      "Concat", {extent(0), extent(1), model.ints("three", {1}, {3}), model.ints("rest", {1}, {-1})},
      {{"axis", 0}});
  model.node("Reshape", {"x", target}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  const graph::Graph graph = imported(model);
  EXPECT_EQ(to_string(graph.type(graph.outputs[0].value)), "float32[batch, seq, 3, 4]");
  EXPECT_EQ(graph.size(), 2u);
}

TEST(Symbols, ExpandByWhereEqual) {
  OnnxBuilder model = one_input({std::string("n"), int64_t{1}});
  const std::string shape = model.node("Shape", {"x"});
  const std::string extent =
      model.node("Slice", {shape, model.ints("zero", {1}, {0}), model.ints("one", {1}, {1})});
  const std::string target = model.node("Concat", {extent, model.ints("four", {1}, {4})}, {{"axis", 0}});
  const std::string ones = model.node("ConstantOfShape", {model.ints("two", {1}, {2})},
                                      {{"value", onnx_tensor("", {1}, Ints{1})}});
  const std::string open = model.node("Equal", {target, model.ints("minus", {2}, {-1, -1})});
  model.node("Expand", {"x", model.node("Where", {open, ones, target})}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  const auto y = run(model, {floats({2, 1}, {5, 6})});
  EXPECT_EQ(y[0].shape, (Ints{2, 4}));
  EXPECT_THAT(values(y[0]), ElementsAre(5, 5, 5, 5, 6, 6, 6, 6));
}

TEST(Symbols, ShapesUsedAsData) {
  OnnxBuilder model = one_input({std::string("n"), int64_t{3}});
  const std::string size = model.node("Cast", {model.node("Size", {"x"})}, {{"to", 1}});
  model.node("Div", {"x", size}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  EXPECT_THAT(values(run(model, {ramp({2, 3})})[0])[3], 0.5f);
}

TEST(Symbols, TwoSymbolsThatMeetBroadcastAtRunTime) {
  OnnxBuilder model(17);
  model.input("x", DataType::float32, {std::string("N"), int64_t{2}});
  model.input("y", DataType::float32, {std::string("M"), int64_t{2}});
  model.node("Add", {"x", "y"}, {}, "z");
  model.output_without_shape("z", DataType::float32);
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{1, 5}, {5, 1}, {4, 4}, {1, 1}, {0, 0}}) {
    const auto z = run(model, {ramp({n, 2}), ramp({m, 2}, 0, 10)});
    ASSERT_EQ(z[0].shape, (Ints{std::max(n, m), 2}));
    for (int64_t i = 0; i < std::max(n, m) * 2; ++i) {
      const float expected =
          static_cast<float>(n == 1 ? i % 2 : i) + 10 * static_cast<float>(m == 1 ? i % 2 : i);
      EXPECT_EQ(values(z[0])[static_cast<size_t>(i)], expected) << n << " " << m << " " << i;
    }
  }
}

TEST(Symbols, RangeOfALength) {
  OnnxBuilder model = one_input({std::string("n")});
  const std::string length = model.node("Squeeze", {model.node("Shape", {"x"})});
  model.node("Range", {model.ints("zero", {}, {0}), length, model.ints("two", {}, {2})}, {}, "y");
  model.output_without_shape("y", DataType::int64);
  EXPECT_THAT(values<int64_t>(run(model, {ramp({5})})[0]), ElementsAre(0, 2, 4));
  EXPECT_THAT(values<int64_t>(run(model, {ramp({0})})[0]), ElementsAre());
}

TEST(Zoo, TinyModelsImportAndRun) {
  for (const ZooEntry& entry : zoo_models()) {
    if (!entry.name.ends_with("_tiny")) continue;
    const graph::Graph graph = imported(build_zoo(entry.name));
    std::vector<Tensor> inputs;
    for (const graph::GraphInput& input : graph.inputs) {
      const graph::TensorType& type = graph.node(input.node).results[0];
      Ints shape;
      for (const Dim& d : type.shape) shape.push_back(d.is_constant() ? d.value() : 3);
      const size_t count = static_cast<size_t>(graph::element_count(shape));
      if (type.element == DataType::int64)
        inputs.push_back(ints(shape, Ints(count, 1)));
      else
        inputs.push_back(ramp(shape, static_cast<float>(count) / 2, 2.0f / static_cast<float>(count)));
    }
    const auto outputs = graph::interpret(graph, inputs);
    float largest = 0;
    for (float v : values(outputs[0])) {
      ASSERT_TRUE(std::isfinite(v)) << entry.name;
      largest = std::max(largest, std::abs(v));
    }
    EXPECT_GT(largest, 0.01f) << entry.name;
    EXPECT_LT(largest, 100.0f) << entry.name;
  }
}

TEST(Summary, CountsWhatTheFileHolds) {
  const std::string path = ::testing::TempDir() + "/summary_model.onnx";
  write_zoo("bert_base_tiny", path);
  const ModelSummary summary = summarize_onnx(path);
  EXPECT_EQ(summary.op_counts.at("LayerNormalization"), 5);
  EXPECT_EQ(summary.inputs.size(), 3u);
  EXPECT_EQ(summary.inputs[0].type, "int64[batch, seq]");
  EXPECT_THAT(summary.symbols, ElementsAre("batch", "seq"));
  EXPECT_EQ(summary.opsets[0].second, 17);
  EXPECT_GT(summary.parameters, 20000);
}

}  // namespace
}  // namespace fusewise
