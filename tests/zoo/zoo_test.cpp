#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace fusewise {
namespace {

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
