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

session::ReferenceOptions on_two_threads() {
  session::ReferenceOptions options;
  options.threads = 2;
  return options;
}

session::SessionOptions on_device(Numerics numerics) {
  session::SessionOptions options = options_of(numerics, fusion::FusionMode::on, 1);
  options.target = "opencl";
  return options;
}

struct DeviceRun {
  DeviceRun(const std::string& name, Numerics numerics)
      : model(name),
        inputs(model.inputs(odd_sizes(model.graph()))),
        reference(model.graph(), inputs, on_two_threads()),
        session(model.model(), on_device(numerics)),
        outputs(session.run(inputs)) {}

  ZooModel model;
  std::vector<graph::Tensor> inputs;
  session::Reference reference;
  session::Session session;
  std::vector<graph::Tensor> outputs;
};

void expect_passed(const session::OutputVerdict& v) {
  EXPECT_TRUE(v.passed) << v.name << ": " << v.differing << " of " << v.elements << " differ; " << v.note;
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
  const DeviceRun run(GetParam(), Numerics::strict);
  for (const session::OutputVerdict& v : run.reference.exact(run.outputs)) expect_passed(v);
  EXPECT_GT(run.session.info().kernels, 0);
}

TEST_P(OnDevice, DefaultResultsAreWithinTheirBounds) {
  const DeviceRun run(GetParam(), Numerics::default_);
  for (const session::OutputVerdict& v : run.reference.rounded_otherwise(run.outputs)) expect_passed(v);
}

INSTANTIATE_TEST_SUITE_P(Models, OnDevice,
                         testing::Values("bert_base_tiny", "dlrm_tiny", "mobilenet_v2_tiny", "vit_b16_tiny"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace fusewise::test
