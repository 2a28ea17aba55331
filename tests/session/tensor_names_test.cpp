#include "session/tensor_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "export/onnx_builder.h"

namespace fusewise::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Names = std::vector<std::string>;

class TensorNames : public testing::Test {
 protected:
  TensorNames() {
    OnnxBuilder model;
    model.input("x", DataType::float32, {int64_t{4}});
    model.node("Relu", {"x"}, {}, "first_relu");
    model.ints("sizes", {2}, {2, 2});
    const Names parts = model.node_with_outputs(2, "Split", {"first_relu", "sizes"}, {{"axis", 0}});
    model.nodes.back().name = "cut";
    model.node("Relu", {parts[0]}, {}, "second_relu");
    model.node("Add", {"second_relu", parts[1]}, {}, "y");
    model.output("y", DataType::float32, {int64_t{2}});
    model.write(path());
  }
  std::filesystem::path path() const { return folder_.path() / "model.onnx"; }
  Names resolve(const Names& wanted) const { return resolve_tensors(path().string(), wanted); }

  TemporaryFolder folder_;
};

TEST_F(TensorNames, NamesPatternsAndNodes) {
  EXPECT_THAT(resolve({"second_relu"}), ElementsAre("second_relu"));
  EXPECT_THAT(resolve({"*relu"}), ElementsAre("first_relu", "second_relu"));
  EXPECT_THAT(resolve({"cut"}), ElementsAre("Split_1_0", "Split_1_1"));
  EXPECT_THAT(resolve({"Relu#1"}), ElementsAre("second_relu"));
  EXPECT_THAT(resolve({"#0"}), ElementsAre("first_relu"));
  EXPECT_THAT(resolve({"cu?"}), ElementsAre("Split_1_0", "Split_1_1"));
  EXPECT_THAT(resolve({"x", "sizes"}), ElementsAre("x", "sizes"));
  EXPECT_THAT(resolve({}), IsEmpty());
}

TEST_F(TensorNames, EachIsDeliveredOnce) {
  EXPECT_THAT(resolve({"first_relu", "*relu", "Relu#0"}), ElementsAre("first_relu", "second_relu"));
  EXPECT_THAT(resolve({"y"}), IsEmpty());
  EXPECT_THAT(resolve({"*"}), ElementsAre("first_relu", "Split_1_0", "Split_1_1", "second_relu"));
}

TEST_F(TensorNames, NearNamesAreSuggested) {
  try {
    resolve({"second_rleu"});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("second_rleu"));
    EXPECT_THAT(error.context.hint, HasSubstr("'second_relu'"));
  }
  EXPECT_THROW(resolve({"Relu#7"}), UserError);
  EXPECT_THROW(resolve({"nothing*"}), UserError);
}

}  // namespace
}  // namespace fusewise::session
