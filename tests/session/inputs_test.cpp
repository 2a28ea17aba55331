#include "session/inputs.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "graph/builder.h"
#include "session/files/npy.h"
#include "session/files/tensor_proto.h"

namespace fusewise::session {
namespace {

using graph::Tensor;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

const Dim batch = Dim::symbol("batch"), seq = Dim::symbol("seq");
const std::vector<InputInfo> model_inputs = {
    {"ids", DataType::int64, {batch, seq}, Dim(7)},
    {"mask", DataType::int32, {batch, seq}, std::nullopt},
    {"past_0", DataType::float32, {batch, 2, seq + 1}, std::nullopt},
    {"a/b:0", DataType::bfloat16, {3}, std::nullopt},
};

class Inputs : public testing::Test {
 protected:
  PreparedInputs prepare(const InputRequest& request, std::span<const InputInfo> inputs = model_inputs) {
    return prepare_inputs(inputs, request, [&](const std::string& text) { warnings_.push_back(text); });
  }
  std::string message_of(const InputRequest& request) {
    try {
      prepare(request);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string folder() const { return folder_.path().string(); }
  void write(const std::string& name, const Tensor& tensor) { write_npy(folder_.path() / name, tensor); }

  TemporaryFolder folder_;
  std::vector<std::string> warnings_;
};

TEST_F(Inputs, OpenSymbolsAreOneAndWarnedOf) {
  const PreparedInputs prepared = prepare({});
  EXPECT_THAT(prepared.tensors[0].shape, ElementsAre(1, 1));
  EXPECT_THAT(prepared.tensors[2].shape, ElementsAre(1, 2, 2));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("batch, seq")));
}

TEST_F(Inputs, DimsAndShapesFixSymbolsForAllInputs) {
  const PreparedInputs prepared = prepare({.shapes = {{"mask", {2, 5}}}});
  EXPECT_THAT(prepared.tensors[0].shape, ElementsAre(2, 5));
  EXPECT_THAT(prepared.tensors[2].shape, ElementsAre(2, 2, 6));
  EXPECT_THAT(warnings_, IsEmpty());
  const PreparedInputs by_dims = prepare({.dims = {{"batch", 0}, {"seq", 3}}});
  EXPECT_THAT(by_dims.tensors[0].shape, ElementsAre(0, 3));
  EXPECT_THAT(by_dims.tensors[2].shape, ElementsAre(0, 2, 4));
}

TEST_F(Inputs, SymbolsAreWhatFilesAndOptionsSay) {
  EXPECT_THAT(requested_symbols(model_inputs, {}), IsEmpty());
  write("ids.npy", Tensor(DataType::int64, {2, 5}));
  const InputRequest request = {.source = folder()};
  EXPECT_THAT(requested_symbols(model_inputs, request), ElementsAre(Pair("batch", 2), Pair("seq", 5)));
  EXPECT_THAT(requested_symbols(model_inputs, {.dims = {{"seq", 3}}}), ElementsAre(Pair("seq", 3)));
  EXPECT_THROW(requested_symbols(model_inputs, {.source = folder(), .dims = {{"seq", 3}}}), UserError);
}

TEST_F(Inputs, SaysWhatIsLeftOpen) {
  const std::vector<std::string> valued = {"ids", "mask"};
  EXPECT_EQ(open_choices(model_inputs, {}, {}),
            "sizes that nothing gives are 1; give those that fit: --shape ids=<batch>x<seq> --shape "
            "mask=<batch>x<seq> --shape past_0=<batch>x2x<" +
                (seq + 1).to_string() + ">");
  EXPECT_THAT(open_choices(model_inputs, {.dims = {{"seq", 3}}}, {}), HasSubstr("--shape ids=<batch>x3"));
  write("ids.npy", Tensor(DataType::int64, {2, 5}));
  EXPECT_EQ(open_choices(model_inputs, {.source = folder()}, valued),
            "values that no file gives are random; give some that fit: --val-range mask=LOW,HIGH");
  EXPECT_EQ(open_choices(model_inputs, {.source = folder(), .ranges = {{"m*", {0, 1}}}}, valued), "");
}

TEST_F(Inputs, ShapeNamesMayBePatterns) {
  const PreparedInputs prepared = prepare({.shapes = {{"past_*", {4, 2, 8}}}, .dims = {{"seq", 7}}});
  EXPECT_THAT(prepared.tensors[2].shape, ElementsAre(4, 2, 8));
  EXPECT_THAT(prepared.tensors[1].shape, ElementsAre(4, 7));
}

TEST_F(Inputs, ContradictionsAreErrors) {
  EXPECT_THAT(message_of({.shapes = {{"mask", {2, 5}}}, .dims = {{"seq", 3}}}),
              HasSubstr("'seq' is 3 by --dim and 5"));
  EXPECT_THAT(message_of({.shapes = {{"mask", {2, 5}}, {"ids", {2, 6}}}}), HasSubstr("'seq' is"));
  EXPECT_THAT(message_of({.shapes = {{"mask", {2}}}}), HasSubstr("needs rank 2"));
  EXPECT_THAT(message_of({.shapes = {{"past_0", {2, 3, 4}}}}), HasSubstr("dimension 1 of the model's is 2"));
  EXPECT_THAT(message_of({.shapes = {{"none", {2}}}}), HasSubstr("no input 'none'"));
  EXPECT_THAT(message_of({.dims = {{"width", 2}}}), HasSubstr("no input has a dimension 'width'"));
  EXPECT_THAT(message_of({.ranges = {{"none", {0, 1}}}}), HasSubstr("no input 'none'"));
}

TEST_F(Inputs, RandomValuesKeepTheirRanges) {
  const InputRequest request = {.dims = {{"batch", 20}, {"seq", 30}}};
  const PreparedInputs prepared = prepare(request);
  for (const int64_t id : prepared.tensors[0].as<int64_t>()) EXPECT_TRUE(id >= 0 && id < 7) << id;
  for (const int32_t mask : prepared.tensors[1].as<int32_t>()) EXPECT_TRUE(mask == 0 || mask == 1) << mask;
  for (const float value : prepared.tensors[2].as<float>()) EXPECT_TRUE(value >= 0 && value < 1) << value;
  InputRequest ranged = request;
  ranged.ranges = {{"*", {-3, -2}}, {"mask", {5, 5}}};
  const PreparedInputs other = prepare(ranged);
  EXPECT_THAT(other.tensors[1].as<int32_t>(), Each(5));
  for (const int64_t id : other.tensors[0].as<int64_t>()) EXPECT_TRUE(id == -3 || id == -2) << id;
  for (const float value : other.tensors[2].as<float>()) EXPECT_TRUE(value >= -3 && value <= -2) << value;
}

TEST_F(Inputs, SeedAndNameDecideTheValues) {
  const auto floats = [&](uint64_t seed) {
    const PreparedInputs prepared = prepare({.dims = {{"batch", 2}, {"seq", 3}}, .seed = seed});
    const auto values = prepared.tensors[2].as<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  EXPECT_EQ(floats(1), floats(1));
  EXPECT_NE(floats(1), floats(2));
  const Tensor a = random_tensor("a", DataType::float32, {8}, 0, {}, {});
  const Tensor b = random_tensor("b", DataType::float32, {8}, 0, {}, {});
  EXPECT_NE(std::vector<float>(a.as<float>().begin(), a.as<float>().end()),
            std::vector<float>(b.as<float>().begin(), b.as<float>().end()));
}

TEST_F(Inputs, RandomIntegersFitTheirType) {
  const Tensor narrow = random_tensor("x", DataType::int8, {1000}, 0, {}, 100000);
  for (const int8_t value : narrow.as<int8_t>()) EXPECT_GE(value, 0);
  EXPECT_THROW(random_tensor("x", DataType::uint8, {1}, 0, ValueRange{-1, 1}, {}), UserError);
  EXPECT_THROW(random_tensor("x", DataType::uint8, {1}, 0, ValueRange{0, 256}, {}), UserError);
  const Tensor wide = random_tensor("x", DataType::int64, {4}, 0, ValueRange{-0x1p63, 0x1p63}, {});
  EXPECT_EQ(wide.count(), 4);
  const Tensor empty_table = random_tensor("x", DataType::int64, {3}, 0, {}, 0);
  EXPECT_THAT(empty_table.as<int64_t>(), Each(0));
}

TEST_F(Inputs, RandomHalvesStayBelowOne) {
  const Tensor halves = random_tensor("x", DataType::bfloat16, {5000}, 0, {}, {});
  for (const uint16_t bits : halves.as<uint16_t>()) EXPECT_LT(bits, 0x3F80);
}

TEST_F(Inputs, AFolderGivesFilesByName) {
  write("ids.npy", Tensor::from<int64_t>(DataType::int64, {1, 2}, {5, 6}));
  write("a_b_0.npy", Tensor::from<uint16_t>(DataType::uint16, {3}, {0x3F80, 0, 1}));
  write("other.npy", Tensor::from<float>(DataType::float32, {1}, {0}));
  const PreparedInputs prepared = prepare({.source = folder(), .warn_of_random = true});
  EXPECT_THAT(prepared.tensors[0].as<int64_t>(), ElementsAre(5, 6));
  EXPECT_THAT(prepared.tensors[1].shape, ElementsAre(1, 2));
  EXPECT_EQ(prepared.tensors[3].element, DataType::bfloat16);
  EXPECT_THAT(prepared.tensors[3].as<uint16_t>(), ElementsAre(0x3F80, 0, 1));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("other.npy"), HasSubstr("'mask'"), HasSubstr("'past_0'")));
}

TEST_F(Inputs, FilesThatDoNotFitAreErrors) {
  write("mask.npy", Tensor::from<int64_t>(DataType::int64, {1, 2}, {5, 6}));
  EXPECT_THAT(message_of({.source = folder()}), HasSubstr("holds int64 and input 'mask' is int32"));
  write("mask.npy", Tensor::from<int32_t>(DataType::int32, {2}, {5, 6}));
  EXPECT_THAT(message_of({.source = folder()}), HasSubstr("needs rank 2"));
  write("mask.npy", Tensor::from<int32_t>(DataType::int32, {1, 2}, {5, 6}));
  EXPECT_THAT(message_of({.source = folder(), .dims = {{"seq", 3}}}),
              HasSubstr("'seq' is 2 by the file of 'mask'"));
  EXPECT_THAT(message_of({.source = folder() + "/none"}), HasSubstr("no such file or folder"));
  EXPECT_THAT(message_of({.source = folder() + "/mask.npy"}), HasSubstr("neither a folder nor a .npz file"));
  EXPECT_THAT(message_of({.files = {{"none", "x.npy"}}}), HasSubstr("no input 'none'"));
  EXPECT_THAT(message_of({.files = {{"mask", "x.npy"}}}), HasSubstr("x.npy"));
  EXPECT_THAT(message_of({.files = {{"mask", "x.txt"}}}), HasSubstr("neither a .npy nor a .pb"));
}

TEST_F(Inputs, TwoNamesInOneFileAreAnError) {
  const std::vector<InputInfo> twins = {{"a/b", DataType::float32, {1}, {}},
                                        {"a:b", DataType::float32, {1}, {}}};
  EXPECT_NO_THROW(prepare({.source = folder()}, twins));
  write("a_b.npy", Tensor::from<float>(DataType::float32, {1}, {0}));
  EXPECT_THROW(prepare({.source = folder()}, twins), UserError);
}

TEST_F(Inputs, ATestFolderGivesFilesByNameElseByPosition) {
  write_tensor_proto(folder_.path() / "input_0.pb", "mask",
                     Tensor::from<int32_t>(DataType::int32, {1, 2}, {3, 4}));
  write_tensor_proto(folder_.path() / "input_1.pb", "past_0",
                     Tensor::from<float>(DataType::float32, {1, 2, 3}, {1, 2, 3, 4, 5, 6}));
  const PreparedInputs prepared = prepare({.source = folder()});
  EXPECT_THAT(prepared.tensors[1].as<int32_t>(), ElementsAre(3, 4));
  EXPECT_THAT(prepared.tensors[2].as<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  write_tensor_proto(folder_.path() / "input_0.pb", "",
                     Tensor::from<int64_t>(DataType::int64, {1, 2}, {3, 4}));
  EXPECT_THAT(prepare({.source = folder()}).tensors[0].as<int64_t>(), ElementsAre(3, 4));
}

TEST(IndexExtents, FollowIntegersToTheGathersThatTheyReach) {
  graph::Graph graph;
  graph::GraphBuilder builder(graph);
  const auto ids = builder.input("ids", {DataType::int32, {2, 3}});
  const auto offset = builder.input("offset", {DataType::int32, {6}});
  const auto mask = builder.input("mask", {DataType::int64, {6}});
  const auto words = builder.input("words", {DataType::float32, {50, 4}});
  const auto places = builder.input("places", {DataType::float32, {Dim::symbol("n"), 4}});
  const auto flat = builder.reshape(ids, {6});
  const auto wide = builder.cast(builder.map(ScalarOp::add, {flat, offset}), DataType::int64);
  graph.outputs.push_back({builder.gather(words, wide, 0), "a"});
  graph.outputs.push_back({builder.gather(places, builder.cast(offset, DataType::int64), 0), "b"});
  graph.outputs.push_back({builder.cast(mask, DataType::float32), "c"});
  const auto extents = index_extents(graph);
  ASSERT_EQ(extents.size(), 5u);
  EXPECT_EQ(extents[0], Dim(50));
  EXPECT_EQ(extents[1], min(Dim(50), Dim::symbol("n")));
  EXPECT_FALSE(extents[2].has_value());
  EXPECT_FALSE(extents[3].has_value());
}

}  // namespace
}  // namespace fusewise::session
