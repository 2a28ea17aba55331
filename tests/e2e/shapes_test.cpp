// One executable for all shapes, for many callers, with weights that stay as they are.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/zoo_model.h"
#include "graph/interpreter/interpreter.h"
#include "runtime/executable.h"
#include "session/reference.h"

namespace fusewise::test {
namespace {

using compiler::Numerics;
using fusion::FusionMode;
using graph::Tensor;
using session::Session;
using Sizes = std::vector<std::pair<std::string, int64_t>>;

std::vector<Sizes> sizes_of(const std::string& name) {
  if (name == "gpt2_decode_tiny")
    return {{{"batch", 1}, {"past", 1}},
            {{"batch", 2}, {"past", 31}},
            {{"batch", 1}, {"past", 0}},
            {{"batch", 5}, {"past", 63}},
            {{"batch", 1}, {"past", 1}}};
  return {{{"batch", 1}, {"seq", 1}},
          {{"batch", 2}, {"seq", 17}},
          {{"batch", 1}, {"seq", 64}},
          {{"batch", 7}, {"seq", 2}},
          {{"batch", 1}, {"seq", 1}}};
}

class Shapes : public testing::TestWithParam<std::string> {
 protected:
  ZooModel model_{GetParam()};
};

TEST_P(Shapes, OneExecutableServesAllOfThem) {
  for (const FusionMode fusion : {FusionMode::off, FusionMode::operators, FusionMode::on}) {
    const Session strict(model_.model(), options_of(Numerics::strict, fusion, 2)),
        rounded(model_.model(), options_of(Numerics::default_, fusion, 2));
    for (const Sizes& sizes : sizes_of(GetParam())) {
      const std::vector<Tensor> inputs = model_.inputs(sizes);
      const session::Reference reference(model_.graph(), inputs);
      EXPECT_TRUE(all_passed(reference.exact(strict.run(inputs)))) << testing::PrintToString(sizes);
      EXPECT_TRUE(all_passed(reference.rounded_otherwise(rounded.run(inputs))))
          << testing::PrintToString(sizes);
    }
  }
}

TEST_P(Shapes, TheCachedProgramServesAllOfThem) {
  const TemporaryFolder folder;
  session::SessionOptions options = options_of(Numerics::default_, FusionMode::on, 2);
  options.use_cache = true;
  options.cache_folder = folder.path().string();
  const Session first(model_.model(), options);
  EXPECT_FALSE(first.info().cache_hit);
  for (const Sizes& sizes : sizes_of(GetParam())) {
    const Session again(model_.model(), options);
    EXPECT_TRUE(again.info().cache_hit);
    EXPECT_EQ(again.info().compile_ms, 0);
    const std::vector<Tensor> inputs = model_.inputs(sizes);
    EXPECT_TRUE(same_bits(first.run(inputs), again.run(inputs))) << testing::PrintToString(sizes);
  }
}

TEST_P(Shapes, ManyCallersMayRunDifferentOnesAtOnce) {
  const Session session(model_.model(), options_of(Numerics::default_, FusionMode::on, 2));
  std::vector<std::vector<Tensor>> inputs, expected;
  for (const Sizes& sizes : sizes_of(GetParam())) {
    inputs.push_back(model_.inputs(sizes));
    expected.push_back(session.run(inputs.back()));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      for (size_t k = 0; k < 12; ++k) {
        const size_t which = (caller + k) % inputs.size();
        if (!same_bits(session.run(inputs[which]), expected[which])) ++wrong;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(Shapes, GuardedBuffersOfOddSizes) {
  for (const runtime::GuardPages guard : {runtime::GuardPages::after, runtime::GuardPages::before}) {
    session::SessionOptions options = options_of(Numerics::strict, FusionMode::on, 2);
    options.guard_pages = guard;
    const Session session(model_.model(), options);
    for (const Sizes& sizes : sizes_of(GetParam())) {
      const std::vector<Tensor> inputs = model_.inputs(sizes);
      const session::Reference reference(model_.graph(), inputs, {.bounds = false});
      EXPECT_TRUE(all_passed(reference.exact(session.run(inputs)))) << testing::PrintToString(sizes);
    }
  }
}

TEST_P(Shapes, WeightsStayAsTheyAre) {
  std::vector<std::vector<std::byte>> before;
  for (const graph::ConstantData& constant : model_.graph().constants)
    before.emplace_back(constant.bytes.begin(), constant.bytes.end());
  const Session session(model_.model(), options_of(Numerics::default_, FusionMode::on, 2));
  for (const Sizes& sizes : sizes_of(GetParam())) session.run(model_.inputs(sizes));
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(before[i], model_.graph().constants[i].bytes)) << i;
}

INSTANTIATE_TEST_SUITE_P(Text, Shapes,
                         testing::Values("bert_base_tiny", "gpt2_decode_tiny", "gpt2_prefill_tiny"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace fusewise::test
