// Concatenations put together in place, end to end: random graphs of joins, cuts and products, every join assembled,
// against the interpreter to the bit; between guard pages, on memory that starts as NaN.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "base/temporary_folder.h"
#include "export/onnx_builder.h"
#include "graph/interpreter/interpreter.h"
#include "runtime/executable.h"
#include "session/session.h"
#include "session/verify.h"

namespace fusewise::session {
namespace {

using graph::Tensor;

struct Joined {
  OnnxBuilder model{17};
  std::vector<std::string> joins;
};

// Values [rows, c, 6] with various c; everything may be joined, cut, an output, or used again.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Joined make() {
    values_ = {
        {result_.model.input("x", DataType::float32, {std::string("rows"), int64_t{5}, int64_t{6}}), 5},
        {result_.model.input("y", DataType::float32, {std::string("rows"), int64_t{3}, int64_t{6}}), 3}};
    for (int i = 0; i < 14; ++i) step();
    add_output(values_.back());
    for (int i = 0; i < 3; ++i) add_output(any());
    return std::move(result_);
  }

 private:
  struct Named {
    std::string name;
    int64_t channels;
  };
  std::mt19937 random_;
  Joined result_;
  std::vector<Named> values_;
  std::set<std::string> outputs_;
  int constants_ = 0;

  size_t pick(size_t n) { return random_() % n; }
  Named any() { return values_[pick(values_.size())]; }
  std::string fresh(const char* stem) { return stem + std::to_string(constants_++); }

  void add_output(const Named& v) {
    if (v.name == "x" || v.name == "y" || !outputs_.insert(v.name).second) return;
    result_.model.output(v.name, DataType::float32, {std::string("rows"), v.channels, int64_t{6}});
  }

  void step() {
    const Named v = any();
    switch (pick(8)) {
      case 0:
        return add(result_.model.node(pick(2) ? "Relu" : "Exp", {v.name}), v.channels);
      case 1: {
        const std::string w = fresh("w");
        std::vector<float> data;
        for (int i = 0; i < 36; ++i) data.push_back(static_cast<float>(static_cast<int>(pick(9)) - 4) / 16);
        result_.model.floats(w, {6, 6}, data);
        return add(result_.model.node("MatMul", {v.name, w}), v.channels);
      }
      case 2: {
        const int64_t begin = static_cast<int64_t>(pick(static_cast<size_t>(v.channels)));
        result_.model.ints(fresh("s"), {1}, {begin});
        const std::string start = "s" + std::to_string(constants_ - 1);
        result_.model.ints(fresh("e"), {1}, {v.channels});
        const std::string end = "e" + std::to_string(constants_ - 1);
        result_.model.ints(fresh("a"), {1}, {1});
        const std::string axis = "a" + std::to_string(constants_ - 1);
        return add(result_.model.node("Slice", {v.name, start, end, axis}), v.channels - begin);
      }
      case 3:  // steps that stand alone and want their tensors in one piece
        return add(result_.model.node("CumSum", {v.name, scalar(static_cast<int64_t>(1 + pick(2)))}),
                   v.channels);
      case 4:
        return sorted(v);
      default:
        return join(v);
    }
  }

  std::string scalar(int64_t value) {
    const std::string name = fresh("i");
    result_.model.ints(name, {}, {value});
    return name;
  }

  void sorted(const Named& v) {
    const std::string count = fresh("k");
    result_.model.ints(count, {1}, {v.channels});
    OnnxNode node;
    node.name = fresh("top");
    node.op_type = "TopK";
    node.inputs = {v.name, count};
    node.outputs = {node.name + "_values", node.name + "_indices"};
    node.attributes = {{"axis", 1}};
    result_.model.nodes.push_back(node);
    add(node.outputs[0], v.channels);
  }

  void join(const Named& v) {
    std::vector<std::string> parts = {v.name};
    int64_t channels = v.channels;
    for (size_t more = 1 + pick(3); more > 0 && channels < 60; --more) {
      const Named other = any();
      parts.push_back(other.name);
      channels += other.channels;
    }
    if (parts.size() < 2) return;
    OnnxNode node;
    node.name = fresh("join");
    node.op_type = "Concat";
    node.inputs = parts;
    node.outputs = {node.name + "_out"};
    node.attributes = {{"axis", 1}};
    result_.model.nodes.push_back(node);
    result_.joins.push_back(node.name);
    add(node.outputs[0], channels);
  }

  void add(std::string name, int64_t channels) { values_.push_back({std::move(name), channels}); }
};

std::string plan_of(const std::vector<std::string>& joins) {
  std::string text = R"({"schema": "fusewise.plan/1", "replay": false, "groups": [)";
  for (size_t i = 0; i < joins.size(); ++i)
    text += (i ? ", " : "") + (R"({"pin": true, "assembled": true, "members": [")" + joins[i] + R"("]})");
  return text + "]}";
}

std::vector<Tensor> inputs_of(int64_t rows) {
  std::vector<Tensor> inputs = {
      random_tensor("x", DataType::float32, {rows, 5, 6}, 7, ValueRange{-1, 1}, {}),
      random_tensor("y", DataType::float32, {rows, 3, 6}, 8, ValueRange{-1, 1}, {})};
  if (rows > 0) {
    float* x = reinterpret_cast<float*>(inputs[0].mutable_bytes().data());
    x[0] = NAN;
    x[1] = -0.0F;
    x[2] = INFINITY;
    x[3] = 1e-42F;
  }
  return inputs;
}

void expect_equal(const Session& session, const graph::Graph& graph, int64_t rows, const std::string& what) {
  const std::vector<Tensor> inputs = inputs_of(rows), before = inputs_of(rows);
  const std::vector<Tensor> expected = graph::interpret(graph, inputs), actual = session.run(inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    const OutputVerdict verdict = compare_exactly("", expected[i], actual[i]);
    EXPECT_TRUE(verdict.passed) << what << " rows " << rows << " output " << i << ": " << verdict.differing
                                << " differ";
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(inputs[i].bytes(), before[i].bytes())) << what;
}

TEST(Assemblies, RandomJoinsAreRightToTheBit) {
  const TemporaryFolder folder;
  int64_t copies = 0;
  for (uint32_t seed = 0; seed < 24; ++seed) {
    const Joined joined = Generator(seed).make();
    const std::string path = (folder.path() / (std::to_string(seed) + ".onnx")).string();
    joined.model.write(path);
    const Model model = Model::load(path);
    SessionOptions options;
    options.threads = seed % 3 == 0 ? 1 : 2;
    options.use_cache = false;
    options.numerics = compiler::Numerics::strict;
    options.plan_text = plan_of(joined.joins);
    options.poison = true;
    options.guard_pages = seed % 2 ? runtime::GuardPages::after : runtime::GuardPages::off;
    const std::string what = "seed " + std::to_string(seed);
    const Session session(model, options);
    copies += session.info().copies;
    for (const int64_t rows : {3, 0, 1, 17}) expect_equal(session, model.graph(), rows, what);
  }
  EXPECT_GT(copies, 20);
}

// Earlier outputs stay as they are while the same session runs other shapes.
TEST(Assemblies, OutputsOfEarlierShapesStay) {
  const TemporaryFolder folder;
  const Joined joined = Generator(5).make();
  const std::string path = (folder.path() / "model.onnx").string();
  joined.model.write(path);
  const Model model = Model::load(path);
  SessionOptions options;
  options.threads = 2;
  options.use_cache = false;
  options.plan_text = plan_of(joined.joins);
  const Session session(model, options);
  std::vector<std::vector<Tensor>> results;
  std::vector<std::vector<std::vector<std::byte>>> kept;
  for (const int64_t rows : {32, 1, 64, 32}) {
    results.push_back(session.run(inputs_of(rows)));
    auto& copy = kept.emplace_back();
    for (const Tensor& t : results.back()) copy.emplace_back(t.bytes().begin(), t.bytes().end());
  }
  for (size_t r = 0; r < results.size(); ++r)
    for (size_t i = 0; i < results[r].size(); ++i)
      EXPECT_TRUE(std::ranges::equal(results[r][i].bytes(), kept[r][i])) << r;
}

}  // namespace
}  // namespace fusewise::session
