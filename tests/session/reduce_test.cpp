// Models with one planted fault: what is left must be the fault's node, and fail alone.
#include "session/reduce.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "graph/interpreter/interpreter.h"
#include "session/inputs.h"
#include "session/model.h"
#include "session/reference.h"
#include "session/session.h"
#include "zoo/zoo.h"

namespace fusewise::session {
namespace {

using graph::Tensor;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Tensor> inputs_for(const Model& model) {
  InputRequest request;
  for (const InputInfo& input : inputs_of(model.graph()))
    for (const Dim& extent : input.shape)
      for (const std::string& name : extent.symbols()) request.dims[name] = name == "batch" ? 2 : 3;
  return prepare_inputs(inputs_of(model.graph()), request, [](const std::string&) {}).tensors;
}

class ReduceTest : public testing::Test {
 protected:
  std::string path_of(const OnnxBuilder& builder, const std::string& name = "whole.onnx") const {
    const std::string path = (folder_.path() / name).string();
    builder.write(path);
    return path;
  }

  // Fails where `wrong`, done to the model before it is compiled, changes a bit of what comes out.
  StillFails fails_after(std::function<void(OnnxBuilder&)> wrong) {
    return [this, wrong = std::move(wrong)](const OnnxBuilder& part, std::span<const Tensor> inputs) {
      OnnxBuilder changed = part;
      wrong(changed);
      const Model right = Model::load(path_of(part, "right.onnx"));
      const Model compiled = Model::load(path_of(changed, "changed.onnx"));
      SessionOptions options;
      options.threads = 1;
      options.numerics = compiler::Numerics::strict;
      options.use_cache = false;
      const Reference reference(right.graph(), inputs, {.bounds = false});
      return !all_passed(reference.exact(Session(compiled, options).run(inputs)));
    };
  }

  TemporaryFolder folder_;
};

void change_operator(OnnxBuilder& model, const std::string& from, const std::string& to) {
  for (OnnxNode& node : model.nodes)
    if (node.op_type == from) node.op_type = to;
}

TEST_F(ReduceTest, OneWrongOperatorIsAllThatIsLeft) {
  const std::string path = path_of(build_zoo("bert_base_tiny"));
  const std::vector<Tensor> inputs = inputs_for(Model::load(path));
  const StillFails fails = fails_after([](OnnxBuilder& model) { change_operator(model, "Erf", "Tanh"); });
  const auto reduced = reduce_model(path, inputs, fails);
  ASSERT_TRUE(reduced.has_value());
  ASSERT_EQ(reduced->model.nodes.size(), 1U);
  EXPECT_EQ(reduced->model.nodes[0].op_type, "Erf");
  EXPECT_THAT(reduced->output_names, ElementsAre(reduced->model.nodes[0].outputs[0]));
  EXPECT_TRUE(reduced->complete);
  EXPECT_LT(reduced->tried, 60);
  EXPECT_TRUE(fails(reduced->model, reduced->inputs));
  // The same again.
  const auto again = reduce_model(path, inputs, fails);
  EXPECT_EQ(again->model.serialize(), reduced->model.serialize());
  EXPECT_EQ(again->tried, reduced->tried);
}

// Nothing less than both of two operators in a row, and nothing of what lies around them.
TEST_F(ReduceTest, NodesThatOnlyFailTogetherStayTogether) {
  const std::string path = path_of(build_zoo("resnet50_tiny"));
  const std::vector<Tensor> inputs = inputs_for(Model::load(path));
  const auto fails = [](const OnnxBuilder& model, std::span<const Tensor>) {
    for (const OnnxNode& add : model.nodes)
      for (const OnnxNode& relu : model.nodes)
        if (add.op_type == "Add" && relu.op_type == "Relu" && relu.inputs[0] == add.outputs[0] &&
            add.inputs[0].find("layer3") != std::string::npos)
          return true;
    return false;
  };
  const auto reduced = reduce_model(path, inputs, fails);
  ASSERT_TRUE(reduced.has_value());
  ASSERT_EQ(reduced->model.nodes.size(), 2U);
  EXPECT_EQ(reduced->model.nodes[0].op_type, "Add");
  EXPECT_EQ(reduced->model.nodes[1].op_type, "Relu");
}

TEST_F(ReduceTest, AWholeThatDoesNotFailIsLeftAlone) {
  const std::string path = path_of(build_zoo("resnet50_tiny"));
  const auto reduced = reduce_model(path, inputs_for(Model::load(path)),
                                    [](const OnnxBuilder&, std::span<const Tensor>) { return false; });
  EXPECT_FALSE(reduced.has_value());
}

TEST_F(ReduceTest, TriesAreLimitedAndItSaysSo) {
  const std::string path = path_of(build_zoo("resnet50_tiny"));
  const auto has_two_convolutions = [](const OnnxBuilder& model, std::span<const Tensor>) {
    return std::count_if(model.nodes.begin(), model.nodes.end(),
                         [](const OnnxNode& node) { return node.op_type == "Conv"; }) > 1;
  };
  ReduceOptions options;
  options.most_tries = 5;
  const auto reduced = reduce_model(path, inputs_for(Model::load(path)), has_two_convolutions, options);
  ASSERT_TRUE(reduced.has_value());
  EXPECT_FALSE(reduced->complete);
  EXPECT_EQ(reduced->tried, 5);
}

// A part run on recorded tensors gives what the whole gave.
TEST_F(ReduceTest, PartsAreTheWholeCutOpen) {
  for (const char* name : {"gpt2_decode_tiny", "swin_t_tiny", "lstm_tagger_tiny", "diffusion_block_tiny"}) {
    const std::string path = path_of(build_zoo(name));
    const Model model = Model::load(path);
    const std::vector<Tensor> inputs = inputs_for(model);
    const RecordedTensors recorded = record_tensors(path, inputs, 1);
    const ModelParts parts(path);
    ModelPart part;
    for (uint32_t node = parts.size() / 3; node < parts.size() / 2; ++node) part.nodes.push_back(node);
    part.outputs = parts.ends_of(part.nodes);
    // Shapes that were computed are constants: as inputs they would leave ranks and sizes open.
    for (const std::string& tensor : parts.inputs_of(part))
      if (recorded.at(tensor).value.element == DataType::int64) part.constants.insert(tensor);
    const Model piece = Model::load(path_of(parts.build(part, recorded), "piece.onnx"));
    std::vector<Tensor> taken;
    for (const std::string& tensor : parts.inputs_of(part)) taken.push_back(recorded.at(tensor).value);
    const Reference reference(piece.graph(), taken, {.bounds = false});
    std::vector<Tensor> expected;
    for (const std::string& output : part.outputs) expected.push_back(recorded.at(output).value);
    EXPECT_TRUE(all_passed(reference.exact(expected))) << name;
  }
}

TEST_F(ReduceTest, NestedGraphsKeepWhatTheyTakeFromAroundThem) {
  auto branch = [](const char* op, const std::string& output) {
    auto body = std::make_shared<OnnxGraphBuilder>();
    body->node(op, {"inner"}, {}, output);
    body->output(output, DataType::float32, {int64_t{4}});
    return body;
  };
  OnnxBuilder model;
  model.input("x", DataType::float32, {int64_t{4}});
  model.node("Neg", {"x"}, {}, "inner");
  model.initializer(onnx_tensor("yes", DataType::boolean, {}, {std::byte{1}}));
  model.node("If", {"yes"}, {{"then_branch", branch("Exp", "t")}, {"else_branch", branch("Abs", "e")}}, "y");
  model.output("y", DataType::float32, {int64_t{4}});
  const std::string path = path_of(model);
  const std::vector<Tensor> inputs = {Tensor::from<float>(DataType::float32, {4}, {1, 2, 3, 4})};
  const auto has_if = [](const OnnxBuilder& part, std::span<const Tensor>) {
    return std::any_of(part.nodes.begin(), part.nodes.end(),
                       [](const OnnxNode& node) { return node.op_type == "If"; });
  };
  ReduceOptions options;
  const auto reduced = reduce_model(path, inputs, has_if, options);
  ASSERT_TRUE(reduced.has_value());
  EXPECT_EQ(reduced->model.nodes.size(), 1U);
  const Model piece = Model::load(path_of(reduced->model, "if.onnx"));
  const std::vector<Tensor> outputs = graph::interpret(piece.graph(), reduced->inputs);
  EXPECT_FLOAT_EQ(outputs[0].as<float>()[0], std::exp(-1.0f));
}

}  // namespace
}  // namespace fusewise::session
