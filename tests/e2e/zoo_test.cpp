// Every embedded model, from file to results, in every setting that promises the same numbers: compiled code against
// the interpreter, with what is not written yet filled with NaN.
#include <algorithm>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/zoo_model.h"
#include "runtime/executable.h"
#include "session/reference.h"

namespace fusewise::test {
namespace {

using compiler::Numerics;
using fusion::FusionMode;
using graph::Tensor;
using session::OutputVerdict;
using session::Reference;
using session::Session;

struct Setting {
  FusionMode fusion;
  int threads;
};
constexpr Setting strict_settings[] = {{FusionMode::off, 5},
                                       {FusionMode::operators, 2},
                                       {FusionMode::on, 1},
                                       {FusionMode::on, 2},
                                       {FusionMode::on, 5}};
constexpr Setting default_settings[] = {{FusionMode::operators, 5}, {FusionMode::on, 1}, {FusionMode::on, 2}};

std::string failures_of(const std::vector<OutputVerdict>& verdicts) {
  std::string text;
  for (const OutputVerdict& v : verdicts)
    if (!v.passed)
      text += fmt::format("{}: {} of {} differ, at {} it is {} and should be {} within {}; {}\n", v.name,
                          v.differing, v.elements, v.worst_index, v.actual, v.expected, v.tolerance, v.note);
  return text;
}

class Zoo : public testing::TestWithParam<std::string> {
 protected:
  Reference reference(bool bounds) const {
    session::ReferenceOptions options;
    options.bounds = bounds;
    options.threads = 2;
    return Reference(model_.graph(), inputs_, options);
  }

  ZooModel model_{GetParam()};
  std::vector<Tensor> inputs_ = model_.inputs(odd_sizes(model_.graph())), kept_ = copy_of(inputs_);
};

TEST_P(Zoo, StrictResultsAreTheInterpretersToTheBit) {
  const Reference reference = this->reference(false);
  for (const auto& [fusion, threads] : strict_settings) {
    const Session session(model_.model(), options_of(Numerics::strict, fusion, threads));
    const std::vector<Tensor> outputs = session.run(inputs_);
    EXPECT_EQ(failures_of(reference.exact(outputs)), "")
        << static_cast<int>(fusion) << ", " << threads << " threads";
    EXPECT_TRUE(same_bits(outputs, session.run(inputs_))) << "another run";
  }
  EXPECT_TRUE(same_bits(inputs_, kept_)) << "a run writes to its inputs";
}

TEST_P(Zoo, DefaultResultsAreWithinWhatRoundingExplains) {
  const Reference reference = this->reference(true);
  for (const auto& [fusion, threads] : default_settings) {
    const Session session(model_.model(), options_of(Numerics::default_, fusion, threads));
    const std::vector<Tensor> outputs = session.run(inputs_);
    EXPECT_EQ(failures_of(reference.rounded_otherwise(outputs)), "")
        << static_cast<int>(fusion) << ", " << threads << " threads";
    EXPECT_TRUE(same_bits(outputs, session.run(inputs_))) << "another run";
  }
  EXPECT_TRUE(same_bits(inputs_, kept_)) << "a run writes to its inputs";
}

TEST_P(Zoo, NothingOutsideOfBuffersIsTouched) {
  const Reference reference = this->reference(false);
  for (const runtime::GuardPages guard : {runtime::GuardPages::after, runtime::GuardPages::before}) {
    session::SessionOptions options = options_of(Numerics::strict, FusionMode::on, 2);
    options.guard_pages = guard;
    const Session session(model_.model(), options);
    EXPECT_EQ(failures_of(reference.exact(session.run(inputs_))), "");
  }
}

TEST_P(Zoo, FusionSavesKernels) {
  int64_t last = 0;
  for (const FusionMode fusion : {FusionMode::on, FusionMode::operators, FusionMode::off}) {
    const Session session(model_.model(), options_of(Numerics::default_, fusion, 2));
    EXPECT_GT(session.info().kernels, last) << static_cast<int>(fusion);
    EXPECT_EQ(session.info().host_steps, 0);
    last = session.info().kernels;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Zoo, testing::ValuesIn(tiny_models()),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace fusewise::test
