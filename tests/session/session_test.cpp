#include "session/session.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "export/onnx_builder.h"
#include "graph/interpreter/interpreter.h"
#include "session/verify.h"

namespace fusewise::session {
namespace {

using graph::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

// y = relu(x W + b) over a symbolic batch, and the sum of each row.
void write_model(const std::filesystem::path& path, float bias = 0.5f) {
  OnnxBuilder model;
  model.input("x", DataType::float32, {std::string("batch"), int64_t{3}});
  model.floats("w", {3, 2}, {1, -2, 3, -4, 5, 6});
  model.floats("b", {2}, {bias, -1});
  const std::string product = model.node("MatMul", {"x", "w"});
  model.node("Relu", {model.node("Add", {product, "b"})}, {}, "y");
  model.node("ReduceSum", {"y"}, {{"keepdims", 0}, {"axes", std::vector<int64_t>{1}}}, "sum");
  model.output("y", DataType::float32, {std::string("batch"), int64_t{2}});
  model.output("sum", DataType::float32, {std::string("batch")});
  model.opsets = {{"", 11}};
  model.write(path);
}

class SessionTest : public testing::Test {
 protected:
  SessionTest() { write_model(path()); }
  std::filesystem::path path() const { return folder_.path() / "model.onnx"; }
  Model model() const { return Model::load(path().string()); }
  SessionOptions options() const {
    SessionOptions result;
    result.threads = 2;
    result.cache_folder = (folder_.path() / "cache").string();
    return result;
  }
  static Tensor input(int64_t batch) {
    return random_tensor("x", DataType::float32, {batch, 3}, 7, ValueRange{-1, 1}, {});
  }

  TemporaryFolder folder_;
};

TEST_F(SessionTest, RunsInEveryShape) {
  const Session session(model(), options());
  for (const int64_t batch : {0, 1, 2, 7, 64, 1}) {
    const std::vector<Tensor> inputs = {input(batch)};
    const std::vector<Tensor> actual = session.run(inputs),
                              expected = graph::interpret(model().graph(), inputs);
    ASSERT_EQ(actual.size(), 2u);
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_TRUE(compare_within("y", expected[i], actual[i], 1e-6).passed) << batch;
  }
}

TEST_F(SessionTest, SaysWhatItIs) {
  const Session session(model(), options());
  const SessionInfo& info = session.info();
  EXPECT_THAT(info.symbols, ElementsAre("batch"));
  EXPECT_EQ(info.inputs.at(0).name, "x");
  EXPECT_EQ(info.outputs.at(1).name, "sum");
  EXPECT_EQ(info.threads, 2);
  EXPECT_GT(info.kernels, 0);
  EXPECT_GE(info.phases, info.kernels);
  EXPECT_FALSE(info.cache_hit);
  EXPECT_EQ(session.steps().size(), static_cast<size_t>(info.kernels + info.copies));
  const PreparedRun run = session.prepare(std::vector{input(5)});
  EXPECT_GE(run.flops(), 5 * 3 * 2 * 2);
  EXPECT_GE(run.bytes_moved(), 5 * (3 + 2 + 1) * 4);
}

TEST_F(SessionTest, InputsMustFit) {
  const Session session(model(), options());
  EXPECT_THROW(session.run({}), UserError);
  EXPECT_THROW(session.run(std::vector{input(1), input(1)}), UserError);
  EXPECT_THROW(session.run(std::vector{Tensor(DataType::float64, {1, 3})}), UserError);
  EXPECT_THROW(session.run(std::vector{Tensor(DataType::float32, {1, 4})}), UserError);
  EXPECT_THROW(session.run(std::vector{Tensor(DataType::float32, {3})}), UserError);
}

TEST_F(SessionTest, APreparedRunRepeatsAndIsTimed) {
  const Session session(model(), options());
  PreparedRun run = session.prepare(std::vector{input(3)});
  run.run();
  const std::vector<Tensor> first = {Tensor::copy_of(DataType::float32, {3, 2}, run.outputs()[0].bytes())};
  std::vector<double> seconds(session.steps().size(), 0);
  run.run_with_timing(seconds);
  EXPECT_TRUE(compare_exactly("y", first[0], run.outputs()[0]).passed);
  for (const double step : seconds) EXPECT_GT(step, 0);
}

TEST_F(SessionTest, ManyThreadsMayRunOneSession) {
  const Session session(model(), options());
  std::vector<Tensor> expected;
  for (int64_t batch = 0; batch < 6; ++batch) expected.push_back(session.run(std::vector{input(batch)})[0]);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int64_t k = 0; k < 50; ++k) {
        const int64_t batch = (t + k) % 6;
        const std::vector<Tensor> outputs = session.run(std::vector{input(batch)});
        if (!compare_exactly("y", expected[static_cast<size_t>(batch)], outputs[0]).passed) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(SessionTest, AWarmStartTellsTheSame) {
  const Session first(model(), options()), second(model(), options());
  EXPECT_FALSE(first.info().cache_hit);
  EXPECT_TRUE(second.info().cache_hit);
  EXPECT_EQ(second.info().compile_ms, 0);
  EXPECT_EQ(first.info().flops, second.info().flops);
  EXPECT_EQ(first.info().machine, second.info().machine);
  EXPECT_EQ(first.info().kernels, second.info().kernels);
  const std::vector<Tensor> inputs = {input(4)};
  EXPECT_TRUE(compare_exactly("y", first.run(inputs)[0], second.run(inputs)[0]).passed);
}

TEST_F(SessionTest, TheKeyHoldsWhatTheResultDependsOn) {
  const Session first(model(), options());
  SessionOptions other = options();
  other.numerics = compiler::Numerics::strict;
  EXPECT_FALSE(Session(model(), other).info().cache_hit);
  other = options();
  other.fusion = fusion::FusionMode::off;
  EXPECT_FALSE(Session(model(), other).info().cache_hit);
  other = options();
  other.usual = {{"batch", 3}};
  EXPECT_FALSE(Session(model(), other).info().cache_hit);
  EXPECT_TRUE(Session(model(), other).info().cache_hit);
  other.usual = {{"batch", 4}};
  EXPECT_FALSE(Session(model(), other).info().cache_hit);
  const Model fixed = Model::load(path().string(), {.import = {.symbol_values = {{"batch", 4}}}});
  EXPECT_FALSE(Session(fixed, options()).info().cache_hit);
  EXPECT_TRUE(Session(model(), options()).info().cache_hit);
  // Another content under the same name.
  write_model(path(), 2.5f);
  const Session changed(model(), options());
  EXPECT_FALSE(changed.info().cache_hit);
  EXPECT_FALSE(
      compare_exactly("y", first.run(std::vector{input(4)})[0], changed.run(std::vector{input(4)})[0])
          .passed);
}

TEST_F(SessionTest, PlansReckonWithUsualSizesAndRunInAll) {
  double before = 0;
  for (const int64_t usual : {0, 1, 64, 100000}) {
    SessionOptions sized = options();
    sized.numerics = compiler::Numerics::strict;
    sized.usual = {{"batch", usual}, {"of another model", 7}};
    const Session session(model(), sized);
    if (usual == 0) {
      // An empty run says nothing about sizes.
      sized.usual = {};
      EXPECT_EQ(session.info().predicted_ms, Session(model(), sized).info().predicted_ms);
    } else {
      EXPECT_GT(session.info().predicted_ms, before) << usual;
      before = session.info().predicted_ms;
    }
    for (const int64_t batch : {0, 1, 7, 65}) {
      const std::vector<Tensor> inputs = {input(batch)};
      const std::vector<Tensor> actual = session.run(inputs),
                                expected = graph::interpret(model().graph(), inputs);
      for (size_t i = 0; i < actual.size(); ++i)
        EXPECT_TRUE(compare_exactly("y", expected[i], actual[i]).passed) << usual << " " << batch;
    }
  }
}

TEST_F(SessionTest, StaticShapesAreTheOnlyOnes) {
  const Session session(Model::load(path().string(), {.import = {.symbol_values = {{"batch", 4}}}}),
                        options());
  EXPECT_THAT(session.info().symbols, ElementsAre());
  const std::vector<Tensor> expected = graph::interpret(model().graph(), std::vector{input(4)});
  EXPECT_TRUE(compare_within("y", expected[0], session.run(std::vector{input(4)})[0], 1e-6).passed);
  EXPECT_THROW(session.run(std::vector{input(3)}), UserError);
}

TEST_F(SessionTest, ARunMayBeCancelled) {
  const Session session(model(), options());
  const std::atomic<bool> cancel{true};
  try {
    session.run(std::vector{input(4)}, &cancel);
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cancelled"));
  }
}

TEST_F(SessionTest, ACacheThatCannotBeUsedIsAWarning) {
  SessionOptions unusable = options();
  unusable.cache_folder = path().string() + "/cache";
  std::vector<std::string> warnings;
  unusable.warn = [&](const std::string& text) { warnings.push_back(text); };
  const Session session(model(), unusable);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("is not used")));
  EXPECT_EQ(session.run(std::vector{input(1)}).size(), 2u);
}

TEST_F(SessionTest, MissingModelsAreNamed) {
  try {
    Model::load("no/such/model.onnx");
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_EQ(error.context.file, "no/such/model.onnx");
  }
}

}  // namespace
}  // namespace fusewise::session
