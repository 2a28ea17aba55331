#include "zoo/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace fusewise {
namespace {

using testing::Contains;
using testing::Not;

std::vector<std::string> operators_of(const OnnxBuilder& model) {
  std::set<std::string> operators;
  for (const OnnxNode& node : model.nodes) operators.insert(node.op_type);
  return {operators.begin(), operators.end()};
}

// The elements of what training changes: neither statistics nor tables that follow from the sizes.
int64_t parameters_of(const OnnxBuilder& model) {
  const auto is_buffer = [](const std::string& name) {
    for (const char* end :
         {"running_mean", "running_var", "inv_freq", "attn_mask", "time_frequencies", "scales"})
      if (name.ends_with(end)) return true;
    return false;
  };
  int64_t count = 0;
  for (const OnnxTensor& tensor : model.initializers) {
    if (tensor.type != DataType::float32 || tensor.dims.empty() || is_buffer(tensor.name)) continue;
    int64_t elements = 1;
    for (int64_t size : tensor.dims) elements *= size;
    count += elements;
  }
  return count;
}

TEST(Zoo, EveryModelHasATinySize) {
  std::set<std::string> names;
  for (const ZooEntry& entry : zoo_models()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.description.empty());
  }
  for (const std::string& name : names) {
    if (!name.ends_with("_tiny")) {
      EXPECT_TRUE(names.contains(name + "_tiny")) << name;
    }
  }
}

TEST(Zoo, TheListIsSorted) {
  const std::vector<ZooEntry> entries = zoo_models();
  EXPECT_TRUE(std::ranges::is_sorted(entries, {}, &ZooEntry::name));
}

// What the publications and their implementations state.
TEST(Zoo, FullModelsHaveThePublishedNumberOfParameters) {
  const std::map<std::string, int64_t> published = {
      {"bert_base", 109482240 - 590592},  // without the pooler
      {"convnext_t", 28589128},
      {"diffusion_block", 25581440},  // this part of the 859520964
      {"efficientnet_b0", 5288548},
      {"gpt2_decode", 124439808},
      {"gpt2_prefill", 124439808},
      {"llama_decode", 134515008},
      {"llama_prefill", 134515008},
      {"mobilenet_v2", 3504872},
      {"resnet50", 25557032},
      {"swin_t", 28288354},
      {"vit_b16", 86567656},
      {"whisper_encoder", 20590592},
  };
  for (const auto& [name, count] : published) EXPECT_EQ(parameters_of(build_zoo(name)), count) << name;
}

TEST(Zoo, TheTablesOfDlrmAreCut) {
  const OnnxBuilder model = build_zoo("dlrm");
  int64_t tables = 0, elsewhere = parameters_of(model);
  for (const OnnxTensor& tensor : model.initializers)
    if (tensor.name.starts_with("emb_l.")) {
      ++tables;
      EXPECT_LE(tensor.dims[0], 100000);
      elsewhere -= tensor.dims[0] * tensor.dims[1];
    }
  EXPECT_EQ(tables, 26);
  EXPECT_EQ(elsewhere, 475985);
}

TEST(Zoo, OperatorsAreThoseThatExportersWrite) {
  EXPECT_THAT(operators_of(build_zoo("bert_base_tiny")), Contains("Erf"));
  EXPECT_THAT(operators_of(build_zoo("lstm_tagger_tiny")), Contains("LSTM"));
  EXPECT_THAT(operators_of(build_zoo("diffusion_block_tiny")), Contains("GroupNormalization"));
  EXPECT_THAT(operators_of(build_zoo("diffusion_block_tiny")), Contains("Resize"));
  for (const char* name : {"convnext_t_tiny", "swin_t_tiny", "whisper_encoder_tiny"}) {
    EXPECT_THAT(operators_of(build_zoo(name)), Contains("LayerNormalization")) << name;
    EXPECT_THAT(operators_of(build_zoo(name)), Contains("Gelu")) << name;
  }
  for (const char* name : {"vit_b16_tiny", "llama_prefill_tiny"}) {
    EXPECT_THAT(operators_of(build_zoo(name)), Not(Contains("LayerNormalization"))) << name;
    EXPECT_THAT(operators_of(build_zoo(name)), Contains("ReduceMean")) << name;
  }
}

TEST(Zoo, FullModelsHaveTheirTinyOnesOperators) {
  for (const ZooEntry& entry : zoo_models())
    if (!entry.name.ends_with("_tiny")) {
      EXPECT_EQ(operators_of(build_zoo(entry.name)), operators_of(build_zoo(entry.name + "_tiny")))
          << entry.name;
    }
}

TEST(Zoo, WeightsDependOnNamesAlone) {
  EXPECT_EQ(build_zoo("resnet50_tiny").serialize(), build_zoo("resnet50_tiny").serialize());
}

TEST(Zoo, UnknownNamesAreRefusedWithTheList) {
  try {
    build_zoo("resnet51");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("resnet50_tiny"), std::string::npos);
  }
}

TEST(Zoo, NoTensorIsNamedTwice) {
  for (const ZooEntry& entry : zoo_models()) {
    const OnnxBuilder model = build_zoo(entry.name);
    std::set<std::string> names;
    for (const OnnxTensor& tensor : model.initializers)
      EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
    for (const OnnxNode& node : model.nodes)
      for (const std::string& output : node.outputs) EXPECT_TRUE(names.insert(output).second) << output;
  }
}

}  // namespace
}  // namespace fusewise
