// The comparison with the interpreter notices small faults: a model that differs a little from the one that is
// compiled must fail, or the comparison would pass a compiler that makes such a difference.
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/zoo_model.h"
#include "session/reference.h"

namespace fusewise::test {
namespace {

using compiler::Numerics;
using fusion::FusionMode;
using graph::Tensor;
using session::OutputVerdict;

OnnxTensor& weight(OnnxBuilder& builder, const std::string& name) {
  for (OnnxTensor& tensor : builder.initializers)
    if (tensor.name == name) return tensor;
  throw std::runtime_error("no weight " + name);
}

// Changes the numbers of a weight.
void change(OnnxBuilder& builder, const std::string& name, const std::function<void(std::span<float>)>& how) {
  OnnxTensor& tensor = weight(builder, name);
  tensor.fill = [fill = tensor.fill, how](std::span<std::byte> bytes) {
    fill(bytes);
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    how(numbers);
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
  };
}

void round_to_bfloat16(std::span<float> numbers) {
  for (float& x : numbers) {
    const auto bits = std::bit_cast<uint32_t>(x);
    x = std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
  }
}

void set_epsilon(OnnxBuilder& builder, const std::string& op_type, float epsilon) {
  for (OnnxNode& node : builder.nodes)
    if (node.op_type == op_type)
      for (OnnxAttribute& attribute : node.attributes)
        if (attribute.name == "epsilon") attribute.value = epsilon;
}

// Erf(s) becomes Tanh(sqrt(2 / pi) x (1 + 0.044715 x^2)) with x = sqrt(2) s: GELU by its usual approximation.
void approximate_gelu(OnnxBuilder& builder) {
  std::vector<OnnxNode> nodes;
  nodes.swap(builder.nodes);
  builder.floats("approximate_linear", {}, {2 / std::sqrt(3.14159265f)});
  builder.floats("approximate_cubic", {}, {2 * 0.044715f});
  for (OnnxNode& node : nodes) {
    if (node.op_type != "Erf") {
      builder.nodes.push_back(std::move(node));
      continue;
    }
    const std::string s = node.inputs[0], base = node.outputs[0];
    const std::string square = builder.node("Mul", {s, s}, {}, base + "_square");
    const std::string cubic = builder.node("Mul", {square, "approximate_cubic"}, {}, base + "_cubic");
    const std::string factor = builder.node("Add", {cubic, "one"}, {}, base + "_factor");
    const std::string product = builder.node("Mul", {s, factor}, {}, base + "_product");
    const std::string scaled = builder.node("Mul", {product, "approximate_linear"}, {}, base + "_scaled");
    builder.node("Tanh", {scaled}, {}, base);
  }
}

struct Mutation {
  std::string name, model;
  std::function<void(OnnxBuilder&)> change;
};

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> all = {
      {"bfloat16_weight_of_a_convolution", "resnet50_tiny",
       [](OnnxBuilder& b) { change(b, "layer1.0.2.conv.weight", round_to_bfloat16); }},
      {"bfloat16_weight_of_a_product", "bert_base_tiny",
       [](OnnxBuilder& b) { change(b, "encoder.layer.1.intermediate.weight", round_to_bfloat16); }},
      {"bfloat16_weight_of_attention", "gpt2_prefill_tiny",
       [](OnnxBuilder& b) { change(b, "h.0.attn.c_attn.weight", round_to_bfloat16); }},
      {"approximate_gelu", "bert_base_tiny", approximate_gelu},
      {"epsilon_of_layer_norm", "bert_base_tiny",
       [](OnnxBuilder& b) { set_epsilon(b, "LayerNormalization", 1e-6f); }},
      {"epsilon_of_batch_norm", "resnet50_tiny",
       [](OnnxBuilder& b) { set_epsilon(b, "BatchNormalization", 1e-6f); }},
      {"epsilon_of_a_small_norm", "mobilenet_v2_tiny",
       [](OnnxBuilder& b) { set_epsilon(b, "BatchNormalization", 1.2e-5f); }},
      {"a_zero_filter", "resnet50_tiny",
       [](OnnxBuilder& b) {
         const auto filters = static_cast<size_t>(weight(b, "layer1.0.2.conv.weight").dims[0]);
         change(b, "layer1.0.2.conv.weight", [filters](std::span<float> numbers) {
           for (float& x : numbers.subspan(0, numbers.size() / filters)) x = 0;
         });
       }},
      {"one_bias", "unet_tiny",
       [](OnnxBuilder& b) {
         for (OnnxTensor& tensor : b.initializers)
           if (tensor.name.ends_with(".bias")) {
             change(b, tensor.name, [](std::span<float> numbers) { numbers[0] *= 1.0001f; });
             return;
           }
         throw std::runtime_error("no bias");
       }},
  };
  return all;
}

class Mutations : public testing::TestWithParam<Mutation> {};

TEST_P(Mutations, AreNoticed) {
  const Mutation& mutation = GetParam();
  const ZooModel model(mutation.model), changed(mutation.model, mutation.change);
  const std::vector<Tensor> inputs = model.inputs(odd_sizes(model.graph()));
  const session::Reference reference(model.graph(), inputs);
  for (const Numerics numerics : {Numerics::strict, Numerics::default_}) {
    const auto outputs = [&](const ZooModel& m) {
      return session::Session(m.model(), options_of(numerics, FusionMode::on, 2)).run(inputs);
    };
    const auto verdicts = [&](const std::vector<Tensor>& given) {
      return numerics == Numerics::strict ? reference.exact(given) : reference.rounded_otherwise(given);
    };
    EXPECT_TRUE(all_passed(verdicts(outputs(model))));
    const std::vector<OutputVerdict> given = verdicts(outputs(changed));
    EXPECT_FALSE(all_passed(given));
    for (const OutputVerdict& v : given)
      RecordProperty(fmt::format("{}_{}", v.name, numerics == Numerics::strict ? "strict" : "default"),
                     fmt::format("{:.3g}", v.spread));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Mutations, testing::ValuesIn(mutations()),
                         [](const auto& mutation) { return mutation.param.name; });

}  // namespace
}  // namespace fusewise::test
