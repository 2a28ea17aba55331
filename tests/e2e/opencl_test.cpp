// Embedded models on an OpenCL device, from file to results: strict ones to the bit, because orders of reductions and
// functions are the same everywhere, others within their bounds.
#include <cstdlib>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "e2e/zoo_model.h"
#include "runtime/drivers/opencl/device.h"
#include "session/reference.h"

namespace fusewise::test {
namespace {

using compiler::Numerics;

bool has_exact_device(const char* platform) {
  for (const auto& device : runtime::opencl::Device::all())
    if (device->facts().platform.find(platform) != std::string::npos && device->facts().exact_division &&
        device->facts().ieee)
      return true;
  return false;
}

class OnDevice : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    constexpr const char* platform = "Portable Computing Language";
    if (!has_exact_device(platform))
      GTEST_SKIP() << "left out: there is no OpenCL platform named " << platform;
    ::setenv("FUSEWISE_OPENCL_PLATFORM", platform, 1);
  }
};

TEST_P(OnDevice, StrictResultsAreTheInterpretersToTheBit) {
  const ZooModel model(GetParam());
  const auto inputs = model.inputs(odd_sizes(model.graph()));
  session::ReferenceOptions reference_options;
  reference_options.threads = 2;
  session::Reference reference(model.graph(), inputs, reference_options);
  session::SessionOptions options = options_of(Numerics::strict, fusion::FusionMode::on, 1);
  options.target = "opencl";
  const session::Session session(model.model(), options);
  for (const session::OutputVerdict& v : reference.exact(session.run(inputs)))
    EXPECT_TRUE(v.passed) << v.name << ": " << v.differing << " of " << v.elements << " differ; " << v.note;
  EXPECT_GT(session.info().kernels, 0);
}

TEST_P(OnDevice, DefaultResultsAreWithinTheirBounds) {
  const ZooModel model(GetParam());
  const auto inputs = model.inputs(odd_sizes(model.graph()));
  session::ReferenceOptions reference_options;
  reference_options.threads = 2;
  session::Reference reference(model.graph(), inputs, reference_options);
  session::SessionOptions options = options_of(Numerics::default_, fusion::FusionMode::on, 1);
  options.target = "opencl";
  const session::Session session(model.model(), options);
  for (const session::OutputVerdict& v : reference.rounded_otherwise(session.run(inputs)))
    EXPECT_TRUE(v.passed) << v.name << ": " << v.differing << " of " << v.elements << " differ; " << v.note;
}

INSTANTIATE_TEST_SUITE_P(Models, OnDevice,
                         testing::Values("bert_base_tiny", "dlrm_tiny", "mobilenet_v2_tiny", "vit_b16_tiny"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace fusewise::test
