// Reductions in parts, end to end: the plan says how many parts there are, so the number of threads that run it changes
// no bit; a value that the model delivers is the very value that later nodes used.
#include <cmath>

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "export/onnx_builder.h"
#include "fusion/plan_json.h"
#include "graph/interpreter/interpreter.h"
#include "numerics/functions.h"
#include "session/compile.h"
#include "session/random_inputs.h"
#include "session/session.h"
#include "session/verify.h"

namespace fusewise::session {
namespace {

using graph::Tensor;

constexpr int64_t length = 100000;

// A softmax written out, with the maximum, the sum and the quotients as outputs.
void write_softmax(const std::filesystem::path& path) {
  OnnxBuilder model;
  model.input("x", DataType::float32, {int64_t{1}, length});
  const OnnxAttributes last = {{"keepdims", 1}, {"axes", std::vector<int64_t>{1}}};
  model.node("ReduceMax", {"x"}, last, "m");
  model.node("Exp", {model.node("Sub", {"x", "m"})}, {}, "e");
  model.node("ReduceSum", {"e"}, last, "s");
  model.node("Div", {"e", "s"}, {}, "y");
  model.output("m", DataType::float32, {int64_t{1}, int64_t{1}});
  model.output("s", DataType::float32, {int64_t{1}, int64_t{1}});
  model.output("y", DataType::float32, {int64_t{1}, length});
  model.opsets = {{"", 11}};
  model.write(path);
}

class ReductionParts : public testing::Test {
 protected:
  ReductionParts() {
    options.use_cache = false;
    options.threads = 4;
  }

  static Model load(const std::filesystem::path& path) {
    write_softmax(path);
    return Model::load(path.string());
  }

  TemporaryFolder folder;
  const Model model = load(folder.path() / "model.onnx");
  SessionOptions options;
  const std::vector<Tensor> inputs = {
      random_tensor("x", DataType::float32, {1, length}, 5, ValueRange{-20, 20}, {})};
};

TEST_F(ReductionParts, AreThePlansNotTheThreads) {
  const compiler::Planned planned = compiler::plan_graph(model.graph(), compile_options_for(options));
  int partial = 0;
  for (const fusion::PlannedRegion& region : planned.plan.regions)
    for (const auto& stage : region.schedule.stages) partial += stage.partial ? 1 : 0;
  EXPECT_GE(partial, 1);
  options.plan_text = fusion::to_json_text(planned.graph, planned.plan);

  std::vector<std::vector<Tensor>> results;
  for (int threads : {1, 2, 3}) {
    options.threads = threads;
    results.push_back(Session(model, options).run(inputs));
  }
  for (size_t r = 1; r < results.size(); ++r)
    for (size_t i = 0; i < results[r].size(); ++i)
      EXPECT_TRUE(compare_exactly("output", results[0][i], results[r][i]).passed);
  // What is delivered is what was used.
  const std::vector<Tensor>& values = results[0];
  const float m = values[0].as<float>()[0], s = values[1].as<float>()[0];
  const auto x = inputs[0].as<float>(), y = values[2].as<float>();
  float most = -INFINITY;
  for (float e : x) most = std::max(most, e);
  EXPECT_EQ(m, most);
  for (size_t i = 0; i < x.size(); i += 777)
    EXPECT_EQ(y[i], evaluate_function(ScalarOp::exp, x[i] - m, 0.0f) / s) << i;
}

TEST_F(ReductionParts, StrictHasNone) {
  options.numerics = compiler::Numerics::strict;
  const std::vector<Tensor> actual = Session(model, options).run(inputs),
                            expected = graph::interpret(model.graph(), inputs);
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(compare_exactly("output", expected[i], actual[i]).passed);
}

}  // namespace
}  // namespace fusewise::session
