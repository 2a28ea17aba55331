// Programs with one fault each: the check must name the kernel that it is in.
#include "session/kernel_check.h"

#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "session/compile.h"
#include "session/inputs.h"
#include "session/model.h"
#include "zoo/zoo.h"

namespace fusewise::session {
namespace {

using compiler::Numerics;
using fusion::FusionMode;
using graph::Tensor;
using testing::Contains;
using testing::HasSubstr;

class KernelCheckTest : public testing::Test {
 protected:
  Model zoo(const std::string& name) const {
    const auto path = folder_.path() / (name + ".onnx");
    if (!std::filesystem::exists(path)) write_zoo(name, path);
    return Model::load(path.string());
  }

  static compiler::Compiled compiled(const Model& model, Numerics numerics, FusionMode fusion) {
    SessionOptions options;
    options.threads = 2;
    options.numerics = numerics;
    options.fusion = fusion;
    return compiler::compile(model.graph(), compile_options_for(options));
  }

  static std::vector<Tensor> inputs(const Model& model) {
    InputRequest request;
    for (const InputInfo& input : inputs_of(model.graph()))
      for (const Dim& extent : input.shape)
        for (const std::string& name : extent.symbols()) request.dims[name] = name == "batch" ? 2 : 5;
    return prepare_inputs(inputs_of(model.graph()), request, [](const std::string&) {}).tensors;
  }

  static std::vector<KernelVerdict> check(const Model& model, const compiler::Compiled& program,
                                          Numerics numerics) {
    KernelCheckOptions options;
    options.threads = 2;
    options.reference.bounds = numerics != Numerics::strict;
    options.judge = [numerics](const Reference& reference, std::span<const Tensor> values) {
      return numerics == Numerics::strict ? reference.exact(values) : reference.rounded_otherwise(values);
    };
    return check_kernels(program, inputs(model), options);
  }

  static const KernelVerdict* first_off(const std::vector<KernelVerdict>& verdicts) {
    const auto found = std::find_if(verdicts.begin(), verdicts.end(),
                                    [](const KernelVerdict& v) { return !v.verdict.passed; });
    return found == verdicts.end() ? nullptr : &*found;
  }

  // The program's own copy of a weight, changed; the interpreter keeps the model's.
  static void change_weight(compiler::Compiled& program, const std::string& name) {
    for (program::Constant& constant : program.program.constants) {
      if (constant.name != name) continue;
      std::vector<std::byte> bytes(constant.bytes.span.begin(), constant.bytes.span.end());
      float first = 0;
      std::memcpy(&first, bytes.data(), sizeof first);
      first += 1;
      std::memcpy(bytes.data(), &first, sizeof first);
      constant.bytes = program::own_bytes(std::move(bytes));
      return;
    }
    FAIL() << "there is no constant " << name;
  }

  TemporaryFolder folder_;
};

TEST_F(KernelCheckTest, RightKernelsAgree) {
  for (const char* name : {"resnet50_tiny", "bert_base_tiny", "dlrm_tiny", "mobilenet_v3_large_tiny"})
    for (const Numerics numerics : {Numerics::strict, Numerics::default_})
      for (const FusionMode fusion : {FusionMode::on, FusionMode::operators}) {
        const Model model = zoo(name);
        const compiler::Compiled program = compiled(model, numerics, fusion);
        const std::vector<KernelVerdict> verdicts = check(model, program, numerics);
        const KernelVerdict* off = first_off(verdicts);
        EXPECT_EQ(off, nullptr) << name << ": " << off->kernel << " " << off->verdict.name;
        size_t kernels = 0;
        for (const program::Step& step : program.program.run_steps) kernels += step.kernel != program::none;
        EXPECT_GE(verdicts.size(), kernels);
      }
}

TEST_F(KernelCheckTest, AWrongWeightIsFoundWhereItIsRead) {
  const Model model = zoo("bert_base_tiny");
  for (const Numerics numerics : {Numerics::strict, Numerics::default_})
    for (const FusionMode fusion : {FusionMode::on, FusionMode::operators}) {
      compiler::Compiled program = compiled(model, numerics, fusion);
      change_weight(program, "encoder.layer.1.intermediate.bias");
      const std::vector<KernelVerdict> verdicts = check(model, program, numerics);
      const KernelVerdict* off = first_off(verdicts);
      ASSERT_NE(off, nullptr);
      EXPECT_THAT(off->nodes, Contains(HasSubstr("encoder.layer.1.intermediate")));
      EXPECT_FALSE(verdicts.front().verdict.name.empty());
      EXPECT_GT(off->verdict.differing, 0);
      EXPECT_GE(off->verdict.worst_index, 0);
    }
}

TEST_F(KernelCheckTest, AWrongPackedWeightIsFoundInTheKernelThatPacksIt) {
  const Model model = zoo("bert_base_tiny");
  compiler::Compiled program = compiled(model, Numerics::strict, FusionMode::on);
  ASSERT_FALSE(program.program.once_steps.empty());
  change_weight(program, "encoder.layer.0.output.weight");
  const std::vector<KernelVerdict> verdicts = check(model, program, Numerics::strict);
  const KernelVerdict* off = first_off(verdicts);
  ASSERT_NE(off, nullptr);
  EXPECT_TRUE(off->once);
  EXPECT_EQ(off->verdict.differing, 1);
}

TEST_F(KernelCheckTest, AKernelThatStoresTooLittleIsFound) {
  const Model model = zoo("gpt2_prefill_tiny");
  compiler::Compiled program = compiled(model, Numerics::strict, FusionMode::operators);
  // Somewhere in the middle a kernel is told that there is one row less.
  std::vector<program::Step>& steps = program.program.run_steps;
  const auto is_large = [](const program::Step& step) {
    return !step.parameters.empty() && step.label.find("gelu") == std::string::npos;
  };
  const auto step =
      std::find_if(steps.begin() + static_cast<int64_t>(steps.size() / 2), steps.end(), is_large);
  ASSERT_NE(step, steps.end());
  for (Dim& parameter : step->parameters) parameter = parameter - Dim(1);
  const std::string kernel = program.program.kernels[step->kernel].name;
  const std::vector<KernelVerdict> verdicts = check(model, program, Numerics::strict);
  const KernelVerdict* off = first_off(verdicts);
  ASSERT_NE(off, nullptr);
  EXPECT_EQ(off->kernel, kernel);
}

}  // namespace
}  // namespace fusewise::session
