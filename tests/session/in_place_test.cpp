// Outputs that grow in the memory of their inputs: steps of decoding with caches of keys and values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "export/onnx_builder.h"
#include "graph/interpreter/interpreter.h"
#include "runtime/executable.h"
#include "session/session.h"
#include "session/verify.h"

namespace fusewise::session {
namespace {

using graph::Tensor;
using testing::HasSubstr;

constexpr int64_t heads = 2, width = 4, capacity = 11;
constexpr float untouched = 123.5F;

// One step of attention over a cache: x [1, 8] -> y [1, 8], and the caches with a row more.
void write_decoder(const std::filesystem::path& path) {
  OnnxBuilder model(17);
  const std::string x = model.input("x", DataType::float32, {int64_t{1}, heads * width});
  const auto cache = [&](const std::string& name) {
    return model.input(name, DataType::float32, {int64_t{1}, heads, std::string("past"), width});
  };
  const std::string past_key = cache("past.key"), past_value = cache("past.value");
  model.ints("split", {4}, {1, 1, heads, width});
  model.ints("join", {2}, {1, heads * width});
  const auto head = [&](const std::string& name, float scale) {
    std::vector<float> w;
    for (int i = 0; i < heads * width * heads * width; ++i)
      w.push_back(scale * static_cast<float>((7 * i + 3) % 11 - 5));
    model.floats("w" + name, {heads * width, heads * width}, w);
    const std::string y = model.node("Reshape", {model.node("MatMul", {x, "w" + name}), "split"});
    return model.node("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  };
  const std::string query = head("q", 0.04F), key = head("k", 0.05F), value = head("v", 0.06F);
  model.node("Concat", {past_key, key}, {{"axis", 2}}, "present.key");
  model.node("Concat", {past_value, value}, {{"axis", 2}}, "present.value");
  const std::string turned =
      model.node("Transpose", {"present.key"}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const std::string share = model.node("Softmax", {model.node("MatMul", {query, turned})}, {{"axis", -1}});
  const std::string mixed = model.node("MatMul", {share, "present.value"});
  const std::string back = model.node("Transpose", {mixed}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  model.node("Reshape", {back, "join"}, {}, "y");
  model.output("y", DataType::float32, {int64_t{1}, heads * width});
  for (const char* name : {"present.key", "present.value"})
    model.output(name, DataType::float32, {int64_t{1}, heads, std::string("longer"), width});
  model.write(path);
}

class InPlace : public testing::Test {
 protected:
  InPlace() { write_decoder(path()); }
  std::string path() const { return (folder_.path() / "decoder.onnx").string(); }
  Model model() const { return Model::load(path()); }
  SessionOptions options(std::vector<std::string> in_place) const {
    SessionOptions result;
    result.threads = 2;
    result.use_cache = false;
    result.numerics = compiler::Numerics::strict;
    result.in_place = std::move(in_place);
    return result;
  }
  std::string refusal(std::vector<std::string> in_place) const {
    try {
      Session(model(), options(std::move(in_place)));
    } catch (const UserError& error) {
      return error.what();
    }
    return "made";
  }
  static Tensor x(int step) {
    return random_tensor("x" + std::to_string(step), DataType::float32, {1, heads * width}, 3,
                         ValueRange{-1, 1}, {});
  }

  TemporaryFolder folder_;
};

// A cache in an array with room for `capacity` rows.
struct Array {
  std::vector<float> data = std::vector<float>(heads * capacity * width, untouched);
  float& at(int64_t head, int64_t row, int64_t i) {
    return data[static_cast<size_t>((head * capacity + row) * width + i)];
  }
  void fill(const Tensor& tensor) {
    for (int64_t h = 0, n = 0; h < heads; ++h)
      for (int64_t r = 0; r < tensor.shape[2]; ++r)
        for (int64_t i = 0; i < width; ++i, ++n) at(h, r, i) = tensor.as<float>()[static_cast<size_t>(n)];
  }
  void expect(const Tensor& tensor) {
    for (int64_t h = 0, n = 0; h < heads; ++h)
      for (int64_t r = 0; r < capacity; ++r)
        for (int64_t i = 0; i < width; ++i)
          ASSERT_EQ(at(h, r, i),
                    r < tensor.shape[2] ? tensor.as<float>()[static_cast<size_t>(n++)] : untouched)
              << "head " << h << " row " << r;
  }
};

void decode(const Session& copying, const Session& growing, int64_t past, int steps) {
  const auto start = [&](uint64_t seed) {
    return random_tensor("past", DataType::float32, {1, heads, past, width}, seed, ValueRange{-1, 1}, {});
  };
  std::vector<Tensor> caches = {start(1), start(2)};
  Array key, value;
  key.fill(caches[0]);
  value.fill(caches[1]);
  for (int step = 0; step < steps; ++step) {
    const Tensor x = random_tensor("x" + std::to_string(step), DataType::float32, {1, heads * width}, 3,
                                   ValueRange{-1, 1}, {});
    const std::vector<Tensor> expected = copying.run(std::vector<Tensor>{x, caches[0], caches[1]});
    std::vector<float> y(heads * width, untouched);
    const std::vector<int64_t> shape = {1, heads, past + step, width};
    const std::vector<CallerArray> inputs = {{const_cast<std::byte*>(x.bytes().data()), x.shape, 0},
                                             {key.data.data(), shape, capacity},
                                             {value.data.data(), shape, capacity}};
    const std::vector<CallerArray> outputs = {
        {y.data(), {}, 0}, {key.data.data(), {}, capacity}, {value.data.data(), {}, capacity}};
    PreparedRun run = growing.prepare(inputs, outputs);
    for (int again = 0; again < 2; ++again) {
      run.run();
      EXPECT_TRUE(std::ranges::equal(y, expected[0].as<float>())) << "step " << step;
      key.expect(expected[1]);
      value.expect(expected[2]);
    }
    caches = {expected[1], expected[2]};
  }
}

TEST_F(InPlace, StepsOfDecodingEqualTheCopyingRun) {
  const Session copying(model(), options({}));
  for (const auto fusion : {fusion::FusionMode::on, fusion::FusionMode::operators, fusion::FusionMode::off}) {
    SessionOptions with = options({"present.*=past.*"});
    with.fusion = fusion;
    const Session growing(model(), with);
    EXPECT_EQ(growing.info().growing.size(), 2u);
    decode(copying, growing, 0, 4);
    decode(copying, growing, 5, 6);
  }
}

TEST_F(InPlace, NeitherPoisonNorGuardPagesReachBeyondATensor) {
  const Session copying(model(), options({}));
  for (const auto pages :
       {runtime::GuardPages::off, runtime::GuardPages::after, runtime::GuardPages::before}) {
    SessionOptions with = options({"auto"});
    with.poison = true;
    with.guard_pages = pages;
    decode(copying, Session(model(), with), 3, 3);
  }
}

// The same session serves callers who keep the caches apart, with and without room.
TEST_F(InPlace, ArraysOfTheirOwnAreCopied) {
  const Session copying(model(), options({})), growing(model(), options({"auto"}));
  const Tensor step = x(0);
  const Tensor past =
      random_tensor("past", DataType::float32, {1, heads, 5, width}, 1, ValueRange{-1, 1}, {});
  const std::vector<Tensor> given = {step, past, past}, expected = copying.run(given);
  Array key, value, grown_key, grown_value;
  key.fill(past);
  value.fill(past);
  std::vector<float> y(heads * width);
  const std::vector<CallerArray> inputs = {{const_cast<std::byte*>(step.bytes().data()), step.shape, 0},
                                           {key.data.data(), past.shape, capacity},
                                           {value.data.data(), past.shape, capacity}};
  const std::vector<CallerArray> outputs = {
      {y.data(), {}, 0}, {grown_key.data.data(), {}, capacity}, {grown_value.data.data(), {}, capacity}};
  PreparedRun apart = growing.prepare(inputs, outputs);
  apart.run();
  grown_key.expect(expected[1]);
  grown_value.expect(expected[2]);
  key.expect(past);
  const std::vector<Tensor> plain = growing.run(given);
  for (size_t i = 0; i < plain.size(); ++i)
    EXPECT_TRUE(compare_exactly("", expected[i], plain[i]).passed) << i;
}

TEST_F(InPlace, WhatIsThereIsNotMoved) {
  const Session copying(model(), options({})), growing(model(), options({"auto"}));
  const Tensor past =
      random_tensor("past", DataType::float32, {1, heads, 1000, width}, 1, ValueRange{-1, 1}, {});
  const std::vector<Tensor> given = {x(0), past, past};
  const int64_t cache = heads * 1000 * width * 4;
  const int64_t copied = copying.prepare(given).bytes_moved(), grown = growing.prepare(given).bytes_moved();
  // Both caches were read and written; now they are read by the attention alone.
  EXPECT_LT(grown, copied - cache);
  EXPECT_LT(grown, 4 * cache);
}

TEST_F(InPlace, ProgramsOfTheCacheGrowToo) {
  const Session copying(model(), options({}));
  SessionOptions with = options({"auto"});
  with.use_cache = true;
  with.cache_folder = (folder_.path() / "cache").string();
  EXPECT_FALSE(Session(model(), with).info().cache_hit);
  const Session warm(model(), with);
  EXPECT_TRUE(warm.info().cache_hit);
  decode(copying, warm, 2, 3);
}

TEST_F(InPlace, SaysWhatCannotBe) {
  EXPECT_THAT(refusal({"present.key=past.value"}),
              HasSubstr("it is input 'past.key' with something behind it"));
  EXPECT_THAT(refusal({"y=x"}), HasSubstr("no concatenation that begins with an input"));
  EXPECT_THAT(refusal({"nobody=x"}), HasSubstr("no output is named so"));
  EXPECT_THAT(refusal({"present.key"}), HasSubstr("neither auto nor OUTPUT=INPUT"));
  EXPECT_EQ(refusal({"present.key=past.key"}), "made");
}

TEST_F(InPlace, ArraysAreChecked) {
  const Session growing(model(), options({"present.key=past.key"}));
  const Tensor step = x(0);
  Array key, value, longer;
  std::vector<float> y(heads * width);
  const auto attempt = [&](int64_t key_room, int64_t present_room, int64_t value_room,
                           Array& present) -> std::string {
    const std::vector<int64_t> shape = {1, heads, 5, width};
    const std::vector<CallerArray> inputs = {{const_cast<std::byte*>(step.bytes().data()), step.shape, 0},
                                             {key.data.data(), shape, key_room},
                                             {value.data.data(), shape, value_room}};
    const std::vector<CallerArray> outputs = {
        {y.data(), {}, 0}, {present.data.data(), {}, present_room}, {longer.data.data(), {}, 0}};
    try {
      growing.prepare(inputs, outputs).run();
    } catch (const UserError& error) {
      return error.what();
    }
    return "ran";
  };
  Array apart;
  EXPECT_EQ(attempt(capacity, capacity, 0, key), "ran");
  EXPECT_EQ(attempt(0, capacity, 0, apart), "ran");
  EXPECT_THAT(attempt(4, capacity, 0, apart), HasSubstr("has room for 4"));
  EXPECT_THAT(attempt(capacity, 5, 0, key), HasSubstr("has room for 5"));
  EXPECT_THAT(attempt(capacity, capacity, 7, key), HasSubstr("'past.value' has no axis"));
  EXPECT_THAT(attempt(capacity, 9, 0, key), HasSubstr("different capacities"));
}

}  // namespace
}  // namespace fusewise::session
