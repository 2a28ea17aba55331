// Views put in place, end to end: random chains of reshapes, transposes, slices, joins and shuffles, all of them in place
// where that can be, against the interpreter to the bit; between guard pages, on memory that starts as NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
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

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  OnnxBuilder make() {
    const Named x{"x", {pick({1, 2, 3}), pick({4, 6, 34}), pick({1, 3, 20})}};
    model_.input(x.name, DataType::float32, x.dimensions());
    values_ = {x, work(x)};
    for (int i = 0; i < 14; ++i) step();
    for (size_t i = 0; i < 4; ++i) {
      const Named v = i == 0 ? work(values_.back()) : values_[random_() % values_.size()];
      if (v.name != "x" && outputs_.insert(v.name).second)
        model_.output(v.name, DataType::float32, v.dimensions());
    }
    return std::move(model_);
  }
  const std::vector<std::string>& moved() const { return moved_; }

 private:
  struct Named {
    std::string name;
    std::vector<int64_t> shape;
    OnnxShape dimensions() const { return {shape.begin(), shape.end()}; }
  };
  std::mt19937 random_;
  OnnxBuilder model_{17};
  std::vector<Named> values_;
  std::vector<std::string> moved_;
  std::set<std::string> outputs_;
  int number_ = 0;

  int64_t pick(std::vector<int64_t> from) { return from[random_() % from.size()]; }
  std::string ints(const std::vector<int64_t>& data) {
    const std::string name = "c" + std::to_string(number_++);
    model_.ints(name, {static_cast<int64_t>(data.size())}, data);
    return name;
  }
  Named work(const Named& v) { return {model_.node(random_() % 2 ? "Relu" : "Neg", {v.name}), v.shape}; }

  Named add(const char* type, std::vector<std::string> inputs, std::vector<int64_t> shape,
            OnnxAttributes attributes = {}) {
    OnnxNode node;
    node.name = "move" + std::to_string(number_++);
    node.op_type = type;
    node.inputs = std::move(inputs);
    node.outputs = {node.name + "_out"};
    node.attributes = std::move(attributes);
    model_.nodes.push_back(node);
    moved_.push_back(node.name);
    return {node.outputs[0], std::move(shape)};
  }
  Named reshape(const Named& v, const std::vector<int64_t>& shape) {
    return add("Reshape", {v.name, ints(shape)}, shape);
  }
  Named transpose(const Named& v, const std::vector<int64_t>& permutation) {
    std::vector<int64_t> shape;
    for (int64_t p : permutation) shape.push_back(v.shape[static_cast<size_t>(p)]);
    return add("Transpose", {v.name}, shape, {OnnxAttribute("perm", OnnxAttributeValue(permutation))});
  }
  Named join(const Named& a, const Named& b, size_t axis) {
    std::vector<int64_t> shape = a.shape;
    shape[axis] += b.shape[axis];
    return add("Concat", {a.name, b.name}, shape, {OnnxAttribute("axis", static_cast<int>(axis))});
  }

  void step() {
    const Named v = values_[random_() % values_.size()];
    const size_t axis = random_() % v.shape.size();
    const int64_t extent = v.shape[axis],
                  elements = std::accumulate(v.shape.begin(), v.shape.end(), int64_t{1}, std::multiplies<>());
    switch (random_() % 6) {
      case 0: {
        std::vector<int64_t> permutation(v.shape.size());
        std::iota(permutation.begin(), permutation.end(), 0);
        std::shuffle(permutation.begin(), permutation.end(), random_);
        return values_.push_back(transpose(v, permutation));
      }
      case 1:
        return values_.push_back(reshape(
            v, elements % 2 ? std::vector{elements, int64_t{1}} : std::vector{elements / 2, int64_t{2}}));
      case 2: {
        const int64_t from = static_cast<int64_t>(random_() % static_cast<uint64_t>(extent));
        std::vector<int64_t> shape = v.shape;
        shape[axis] = extent - from;
        return values_.push_back(
            add("Slice", {v.name, ints({from}), ints({extent}), ints({static_cast<int64_t>(axis)})}, shape));
      }
      case 3:
        return values_.push_back(work(v));
      default: {  // a shuffle
        if (elements > 20000) return;
        const Named whole = join(work(v), work(v), axis);
        std::vector<int64_t> split = v.shape, mixed = whole.shape, permutation(split.size() + 1);
        split.insert(split.begin() + static_cast<std::ptrdiff_t>(axis), 2);
        std::iota(permutation.begin(), permutation.end(), 0);
        std::swap(permutation[axis], permutation[axis + 1]);
        return values_.push_back(reshape(transpose(reshape(whole, split), permutation), mixed));
      }
    }
  }
};

std::string plan_of(const std::vector<std::string>& moved) {
  std::string text = R"({"schema": "fusewise.plan/1", "replay": false, "groups": [)";
  for (size_t i = 0; i < moved.size(); ++i)
    text += (i ? ", " : "") + (R"({"pin": true, "assembled": true, "members": [")" + moved[i] + R"("]})");
  return text + "]}";
}

TEST(Views, RandomMotionIsRightToTheBit) {
  const TemporaryFolder folder;
  for (uint32_t seed = 0; seed < 24; ++seed) {
    Generator generator(seed);
    const OnnxBuilder builder = generator.make();
    const std::string path = (folder.path() / (std::to_string(seed) + ".onnx")).string();
    builder.write(path);
    const Model model = Model::load(path);
    SessionOptions options;
    options.threads = seed % 3 == 0 ? 1 : 2;
    options.use_cache = false;
    options.numerics = compiler::Numerics::strict;
    options.plan_text = plan_of(generator.moved());
    options.poison = true;
    options.guard_pages = seed % 2 ? runtime::GuardPages::after : runtime::GuardPages::off;
    const Session session(model, options);
    const graph::Graph& graph = model.graph();
    std::vector<int64_t> shape;
    for (const Dim& d : graph.type({graph.inputs[0].node, 0}).shape) shape.push_back(d.value());
    const std::vector<Tensor> inputs = {
        random_tensor("x", DataType::float32, shape, seed, ValueRange{-1, 1}, {})};
    const std::vector<Tensor> expected = graph::interpret(graph, inputs), actual = session.run(inputs);
    for (size_t i = 0; i < expected.size(); ++i) {
      const OutputVerdict verdict = compare_exactly("", expected[i], actual[i]);
      EXPECT_TRUE(verdict.passed) << "seed " << seed << " output " << i << ": " << verdict.differing
                                  << " differ";
    }
  }
}

}  // namespace
}  // namespace fusewise::session
