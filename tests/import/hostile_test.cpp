// Files that are damaged, cut short or made to do harm: an error in words, or a success, and never anything
// else.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "import/run_model.h"
#include "zoo/zoo.h"

namespace fusewise {
namespace {

using namespace import_test;  // NOLINT
using ::testing::HasSubstr;
namespace fs = std::filesystem;

OnnxBuilder small_model() {
  OnnxBuilder model(13);
  model.input("x", DataType::float32, {std::string("n"), int64_t{4}, int64_t{6}});
  const std::string w = model.floats("w", {4, 4, 3}, std::vector<float>(48, 0.5f));
  std::string y = model.node("Conv", {"x", w}, {{"pads", std::vector<int64_t>{1, 1}}, {"group", 1}});
  y = model.node("Softmax", {y}, {{"axis", 1}});
  const std::string shape = model.node("Shape", {"x"});
  const std::string n =
      model.node("Slice", {shape, model.ints("zero", {1}, {0}), model.ints("one", {1}, {1})});
  const std::string target = model.node("Concat", {n, model.ints("rest", {1}, {-1})}, {{"axis", 0}});
  y = model.node("Reshape", {y, target});
  y = model.node("Pad", {y, model.ints("pads", {4}, {0, 1, 0, 2})}, {{"mode", "edge"}});
  y = model.node("ReduceMean", {y}, {{"axes", std::vector<int64_t>{1}}});
  y = model.node("Tile", {y, model.ints("repeats", {2}, {1, 3})});
  model.node("Gemm", {y, model.floats("b", {3, 2}, std::vector<float>(6, 1))}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  return model;
}

// True when it was imported. Anything but the two kinds of error for the user's side escapes and fails the
// test.
bool survives(const std::string& bytes) {
  try {
    imported(bytes, {.allow_missing_external_data = true});
    return true;
  } catch (const UserError&) {
  } catch (const UnsupportedError&) {
  }
  return false;
}

TEST(Hostile, CutShortAnywhere) {
  const std::string whole = small_model().serialize();
  ASSERT_TRUE(survives(whole));
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_NO_THROW(survives(whole.substr(0, size))) << size;
}

TEST(Hostile, AnEmptyFileAndOneThatIsNoModel) {
  EXPECT_THROW(imported(std::string()), UserError);
  EXPECT_THROW(imported(std::string("PK\3\4 this is an archive, not a model")), UserError);
  EXPECT_THROW(import_onnx("no/such/model.onnx"), UserError);
}

TEST(Hostile, RandomlyChangedBytes) {
  for (const OnnxBuilder& model : {small_model(), build_zoo("gpt2_decode_tiny")}) {
    const std::string whole = model.serialize();
    // Weights are data whatever they hold; what matters are the first bytes, the nodes.
    const size_t reach = std::min<size_t>(whole.size(), 9000);
    std::mt19937 random(20);
    int imported_anyway = 0;
    const int rounds = whole.size() > 50000 ? 300 : 4000;
    for (int round = 0; round < rounds; ++round) {
      std::string bytes = whole;
      const int changes = 1 + static_cast<int>(random() % 3);
      for (int i = 0; i < changes; ++i) bytes[random() % reach] = static_cast<char>(random());
      EXPECT_NO_THROW(imported_anyway += survives(bytes)) << "round " << round;
    }
    EXPECT_GT(imported_anyway, 0);
    EXPECT_LT(imported_anyway, rounds);
  }
}

TEST(Hostile, NestedGraphsWithoutEnd) {
  auto body = std::make_shared<OnnxGraphBuilder>();
  body->node("Neg", {"x"}, {}, "y");
  body->output_without_shape("y", DataType::float32);
  const auto nest = [&](int levels) {
    auto inner = body;
    for (int i = 0; i < levels; ++i) {
      auto outer = std::make_shared<OnnxGraphBuilder>();
      outer->node("If", {"condition"}, {{"then_branch", inner}, {"else_branch", body}},
                  "r" + std::to_string(i));
      outer->output_without_shape("r" + std::to_string(i), DataType::float32);
      inner = outer;
    }
    OnnxBuilder model(17);
    model.input("x", DataType::float32, {int64_t{2}});
    model.initializer(onnx_tensor("condition", DataType::boolean, {}, {std::byte{1}}));
    model.node("If", {"condition"}, {{"then_branch", inner}, {"else_branch", body}}, "out");
    model.output_without_shape("out", DataType::float32);
    return model;
  };
  EXPECT_EQ(values(run(nest(200), {floats({2}, {1, 2})})[0])[1], -2);
  EXPECT_THROW(imported(nest(400)), UserError);
}

TEST(Hostile, SizesThatDoNotFit) {
  const auto with_initializer = [](std::vector<int64_t> dims, DataType type) {
    OnnxBuilder model(17);
    OnnxTensor tensor = onnx_tensor("w", DataType::uint8, {8}, std::vector<std::byte>(8));
    model.initializer(tensor);
    model.node("Identity", {"w"}, {}, "y");
    model.output_without_shape("y", type);
    std::string bytes = model.serialize();
    // The tensor's dimensions are one packed field: 0a 01 08.
    const size_t at = bytes.find(std::string("\x0a\x01\x08\x10", 4));
    EXPECT_NE(at, std::string::npos);
    bytes[at + 2] = static_cast<char>(dims[0]);
    return bytes;
  };
  EXPECT_THROW(imported(with_initializer({9}, DataType::uint8)), UserError);
  EXPECT_THROW(imported(with_initializer({7}, DataType::uint8)), UserError);
  EXPECT_NO_THROW(imported(with_initializer({8}, DataType::uint8)));
}

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / fmt::format("external_{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "model");
    write(folder_ / "model" / "w.bin", std::string(16, '\0') + floats_of({1, 2, 3, 4}));
    write(folder_ / "outside.bin", floats_of({1, 2, 3, 4}));
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string floats_of(const std::vector<float>& v) {
    return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float)};
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  // A model whose four weights lie where it says.
  graph::Graph load(const std::string& location, const std::string& offset, const std::string& length) {
    OnnxBuilder model(17);
    model.input("x", DataType::float32, {int64_t{4}});
    OnnxTensor w = onnx_tensor("w", {4}, std::vector<float>{0, 0, 0, 0});
    w.external = {{"location", location}};
    if (!offset.empty()) w.external.emplace_back("offset", offset);
    if (!length.empty()) w.external.emplace_back("length", length);
    model.initializer(w);
    model.node("Add", {"x", "w"}, {}, "y");
    model.output_without_shape("y", DataType::float32);
    const fs::path path = folder_ / "model" / "m.onnx";
    model.write(path);
    return import_onnx(path.string());
  }
  std::string refusal(const std::string& location, const std::string& offset = "",
                      const std::string& length = "") {
    try {
      load(location, offset, length);
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), HasSubstr("tensor 'w'"));
      return e.what();
    }
    ADD_FAILURE() << "it was loaded";
    return "";
  }
  fs::path folder_;
};

TEST_F(ExternalData, IsReadFromItsOffset) {
  const graph::Graph graph = load("w.bin", "16", "16");
  EXPECT_EQ(values(graph::interpret(graph, std::vector<Tensor>{floats({4}, {0, 0, 0, 0})})[0])[3], 4);
}

TEST_F(ExternalData, NeverReadsBeyondTheFile) {
  EXPECT_THAT(refusal("w.bin", "17", "16"), HasSubstr("which has 32"));
  EXPECT_THAT(refusal("w.bin", "5000000000", "16"), HasSubstr("5000000000"));
  EXPECT_THAT(refusal("w.bin", "18446744073709551615", "16"), HasSubstr("which has 32"));
  EXPECT_THAT(refusal("w.bin", "18446744073709551616", "16"), HasSubstr("no number"));
  EXPECT_THAT(refusal("w.bin", "-1", "16"), HasSubstr("no number"));
  EXPECT_THAT(refusal("w.bin", "0", "20"), HasSubstr("20 bytes"));
}

TEST_F(ExternalData, NeverLeavesTheFolder) {
  EXPECT_THAT(refusal("../outside.bin"), HasSubstr("outside"));
  EXPECT_THAT(refusal((folder_ / "outside.bin").string()), HasSubstr("outside"));
  EXPECT_THAT(refusal("sub/../../outside.bin"), HasSubstr("outside"));
  fs::create_symlink(folder_ / "outside.bin", folder_ / "model" / "link.bin");
  EXPECT_THAT(refusal("link.bin"), HasSubstr("outside"));
}

TEST_F(ExternalData, SaysWhatIsMissing) {
  EXPECT_THAT(refusal("missing.bin"), HasSubstr("missing.bin"));
  EXPECT_THAT(refusal(""), HasSubstr("location"));
}

}  // namespace
}  // namespace fusewise
