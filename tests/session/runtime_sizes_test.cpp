// Models with sizes that only the run knows: strict kernels and host functions against the interpreter, over inputs
// that give sizes 0, 1 and others, one session for all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

#include "exact_session.h"

namespace fusewise::session {
namespace {

using graph::Tensor;
using testing::HasSubstr;

constexpr float inf = std::numeric_limits<float>::infinity();

class RuntimeSizes : public ExactSession {};

// The rows of x whose first element is positive, doubled; their number; and the sum of each.
OnnxBuilder chosen_rows() {
  OnnxBuilder model(17);
  model.input("x", DataType::float32, {std::string("n"), int64_t{3}});
  model.ints("zero", {}, {0});
  model.floats("none", {}, {0});
  model.ints("one", {1}, {1});
  const std::string first = model.node("Gather", {"x", "zero"}, {{"axis", 1}});
  const std::string mask = model.node("Greater", {first, "none"});
  const std::string rows =
      model.node("Squeeze", {model.node("NonZero", {mask}), model.ints("front", {1}, {0})});
  const std::string taken = model.node("Gather", {"x", rows});
  model.node("Add", {taken, taken}, {}, "doubled");
  model.node("ReduceSum", {"doubled", "one"}, {{"keepdims", 0}}, "sums");
  model.node("Shape", {"doubled"}, {}, "shape");
  model.output_without_shape("doubled", DataType::float32);
  model.output_without_shape("sums", DataType::float32);
  model.output_without_shape("shape", DataType::int64);
  return model;
}
std::vector<std::vector<Tensor>> chosen_rows_cases() {
  return {{floats({4, 3}, {1, 2, 3, -1, 5, 6, 7, 8, 9, 0, 1, 2})},
          {floats({1, 3}, {1, 2, inf})},
          {floats({2, 3}, {-1, 2, 3, 0, 5, 6})},
          {floats({0, 3}, {})},
          {floats({37, 3}, std::vector<float>(111, 1.5f))}};
}

TEST_F(RuntimeSizes, RowsThatAreChosen) { expect_exact(chosen_rows(), chosen_rows_cases()); }

TEST_F(RuntimeSizes, ManyThreadsAndTheCache) {
  write(chosen_rows());
  SessionOptions options = strict(2);
  options.use_cache = true;
  options.cache_folder = (folder_.path() / "cache").string();
  const auto cases = chosen_rows_cases();
  for (const bool hit : {false, true}) {
    const Session session(*model_, options);
    EXPECT_EQ(session.info().cache_hit, hit);
    EXPECT_EQ(session.info().host_steps, 1);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (size_t k = 0; k < 20; ++k) {
          const std::vector<Tensor>& inputs = cases[(t + k) % cases.size()];
          const auto expected = graph::interpret(model_->graph(), inputs);
          const auto actual = session.run(inputs);
          for (size_t i = 0; i < actual.size(); ++i)
            if (!compare_exactly("", expected[i], actual[i]).passed) ++wrong;
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST_F(RuntimeSizes, PreparedRunsFollowTheirInputs) {
  write(chosen_rows());
  const Session session(*model_, strict());
  PreparedRun run = session.prepare(chosen_rows_cases()[0]);
  run.run();
  EXPECT_EQ(run.outputs()[0].shape, (std::vector<int64_t>{2, 3}));
  const std::byte* before = run.outputs()[0].bytes().data();
  run.run();
  EXPECT_EQ(run.outputs()[0].bytes().data(), before);
}

TEST_F(RuntimeSizes, FunctionOperandsOfEverySort) {
  OnnxBuilder model(17);
  model.input("x", DataType::float32, {std::string("n")});
  model.input("k", DataType::int64, {int64_t{1}});
  model.input("from", DataType::int64, {int64_t{1}});
  model.input("to", DataType::int64, {int64_t{1}});
  model.nodes.push_back({"", "TopK", "", {"x", "k"}, {"values", "indices"}, {}});
  model.node("Slice", {"x", "from", "to"}, {}, "slice");
  model.node("Exp", {"slice"}, {}, "exp");
  const std::string shape = model.node("Concat", {"k", model.ints("two", {1}, {2})}, {{"axis", 0}});
  model.node("Expand", {model.floats("five", {}, {5}), shape}, {}, "expanded");
  model.node("ConstantOfShape", {"k"}, {}, "zeros");
  const std::string limit = model.node("Squeeze", {"to"}), start = model.node("Squeeze", {"from"});
  model.node("Range", {start, limit, model.ints("step", {}, {2})}, {}, "range");
  for (const char* name : {"values", "exp", "expanded", "zeros"})
    model.output_without_shape(name, DataType::float32);
  for (const char* name : {"indices", "range"}) model.output_without_shape(name, DataType::int64);
  const Tensor x = floats({7}, {3, -1, 4, 1, -5, 9, 2});
  expect_exact(model, {{x, ints({1}, {3}), ints({1}, {1}), ints({1}, {6})},
                       {x, ints({1}, {0}), ints({1}, {-2}), ints({1}, {1000})},
                       {x, ints({1}, {7}), ints({1}, {5}), ints({1}, {2})},
                       {x, ints({1}, {1}), ints({1}, {-100}), ints({1}, {-1})},
                       {floats({1}, {2}), ints({1}, {1}), ints({1}, {0}), ints({1}, {1})},
                       {floats({0}, {}), ints({1}, {0}), ints({1}, {0}), ints({1}, {0})}});
  EXPECT_THAT(error_of({x, ints({1}, {8}), ints({1}, {1}), ints({1}, {2})}), HasSubstr("is 8"));
  EXPECT_THAT(error_of({x, ints({1}, {-1}), ints({1}, {1}), ints({1}, {2})}), HasSubstr("-1"));
  EXPECT_THAT(error_of({x, ints({1}, {int64_t{1} << 50}), ints({1}, {1}), ints({1}, {2})}),
              HasSubstr("n >= k"));
}

TEST_F(RuntimeSizes, AbsurdSizesAreRefusedInWords) {
  OnnxBuilder model(17);
  model.input("n", DataType::int64, {int64_t{2}});
  model.node("Exp", {model.node("ConstantOfShape", {"n"})}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  write(model);
  EXPECT_EQ(error_of({ints({2}, {3, 0})}), "none");
  EXPECT_THAT(error_of({ints({2}, {int64_t{1} << 45, 2})}), HasSubstr("more than this machine has"));
  EXPECT_THAT(error_of({ints({2}, {int64_t{1} << 62, int64_t{1} << 62})}), HasSubstr("64 bits"));
  EXPECT_THAT(error_of({ints({2}, {-3, -5})}), HasSubstr("-3"));
}

TEST_F(RuntimeSizes, ReshapesResolveZeroAndMinusOne) {
  OnnxBuilder model(17);
  model.input("x", DataType::float32, {int64_t{2}, std::string("n")});
  model.input("shape", DataType::int64, {int64_t{3}});
  model.node("Neg", {model.node("Reshape", {"x", "shape"})}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  const Tensor x = floats({2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  expect_exact(model, {{x, ints({3}, {2, 2, 3})},
                       {x, ints({3}, {0, 3, -1})},
                       {x, ints({3}, {-1, 1, 4})},
                       {x, ints({3}, {1, 12, 1})},
                       {floats({2, 0}, {}), ints({3}, {2, 0, 5})}});
  EXPECT_THAT(error_of({x, ints({3}, {2, 2, 2})}), HasSubstr("=="));
  EXPECT_NE(error_of({x, ints({3}, {-1, -1, 2})}), "none");
}

TEST_F(RuntimeSizes, RangesOfFloatsAndSteps) {
  OnnxBuilder model(17);
  for (const char* name : {"start", "limit", "delta"}) model.input(name, DataType::float32, {});
  model.node("Range", {"start", "limit", "delta"}, {}, "y");
  model.output_without_shape("y", DataType::float32);
  const auto scalar = [](float value) { return floats({}, {value}); };
  expect_exact(model, {{scalar(0), scalar(1), scalar(0.25f)},
                       {scalar(5), scalar(1), scalar(-1.5f)},
                       {scalar(5), scalar(1), scalar(1)},
                       {scalar(1), scalar(1), scalar(1)}});
  EXPECT_NE(error_of({scalar(0), scalar(1), scalar(0)}), "none");
}

// Concatenations of what only the run sizes are kernels; others are put together in place behind the same step.
OnnxBuilder joins() {
  OnnxBuilder model = chosen_rows();
  const auto join = [&](const char* name, std::vector<std::string> parts, int axis) {
    model.nodes.push_back({name, "Concat", "", std::move(parts), {name}, {{"axis", axis}}});
  };
  const std::string exp = model.node("Exp", {"x"}), sums = model.node("CumSum", {exp, "zero"});
  join("late", {exp, "doubled", "x"}, 0);
  join("early", {exp, sums, model.node("Neg", {"x"}), "x"}, 1);
  model.node("Abs",
             {model.node("MatMul", {"early", model.floats("w", {12, 2}, std::vector<float>(24, 0.5f))})}, {},
             "product");
  for (const char* name : {"late", "product"}) model.output_without_shape(name, DataType::float32);
  return model;
}
std::string assembled(const std::string& name) {
  return R"({"schema": "fusewise.plan/1", "replay": false, "groups": [{"pin": true, "assembled": true, "members": [")" +
         name + R"("]}]})";
}

TEST_F(RuntimeSizes, ConcatenationsInPlaceBesideLateSizes) {
  write(joins());
  SessionOptions options = strict(2);
  options.plan_text = assembled("early");
  options.poison = true;
  for (const runtime::GuardPages pages : {runtime::GuardPages::off, runtime::GuardPages::after}) {
    options.guard_pages = pages;
    const Session session(*model_, options);
    EXPECT_EQ(session.info().host_steps, 1);
    EXPECT_GE(session.info().copies, 3);  // exp and its sums lie in one piece, x is the caller's
    for (const std::vector<Tensor>& inputs : chosen_rows_cases()) expect_exact_run(session, inputs);
  }
  options.plan_text = assembled("late");
  EXPECT_THROW(Session(*model_, options), UnsupportedError);
}

TEST_F(RuntimeSizes, SizesOfSizes) {
  // The distinct values of those above 0, then as many of the greatest as the smallest one says.
  OnnxBuilder model(17);
  model.input("x", DataType::int64, {std::string("n")});
  model.ints("zero", {}, {0});
  const std::string above = model.node("Compress", {"x", model.node("Greater", {"x", "zero"})});
  model.nodes.push_back({"", "Unique", "", {above}, {"distinct", "", "inverse", "counts"}, {}});
  model.ints("first", {1}, {0});
  const std::string smallest = model.node("Gather", {"distinct", "first"});
  model.nodes.push_back({"", "TopK", "", {"distinct", smallest}, {"top", "places"}, {}});
  for (const char* name : {"distinct", "inverse", "counts", "top", "places"})
    model.output_without_shape(name, DataType::int64);
  expect_exact(
      model,
      {{ints({7}, {3, 2, 9, -4, 2, 0, 3})}, {ints({4}, {1, 1, 1, 1})}, {ints({6}, {2, 5, 5, 7, 2, -1})}});
}

}  // namespace
}  // namespace fusewise::session
