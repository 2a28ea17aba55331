// Around the machine code: objects, links, texts, targets, phases and scratch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "codegen/codegen.h"
#include "kernel/interpreter.h"
#include "kernel/passes/pipeline.h"
#include "support/loaded_kernels.h"

namespace fusewise::test {
namespace {

using kernel::Kernel;

Kernel parsed(const std::string& text) {
  kernel::PassOptions options;
  return kernel::run_passes(kernel::parse(text), options);
}

// The second phase needs all of the first; each block has its own scratch for a while.
Kernel two_phases() {
  return parsed(R"(kernel two_phases(n: int64; A: float32 in, T: float32 out, C: float32 out) {
  phase block i in 0..n {
    allocate s: float32[n] scratch
    for serial j in 0..n {
      s[j] = A[j] + cast<float32>(i)
    }
    mut sum: float32 = 0:float32
    for serial j in 0..n {
      sum = sum + s[j]
    }
    T[i] = sum
  }
  phase block i in 0..n step 2 {
    C[i] = T[n - 1 - i]
  }
}
)");
}

codegen::CpuTarget any_target() { return codegen::target_named("x86-64-v3"); }

TEST(Compile, PhasesRunInOrderWithTheirScratch) {
  const std::vector<Kernel> kernels = {two_phases()};
  const LoadedKernels library(kernels, any_target());
  std::vector<float> a = {1, 2, 3, 4, 5}, t(5), c(5, -1);
  void* buffers[] = {a.data(), t.data(), c.data()};
  const int64_t parameters[] = {5};
  library.run(kernels[0], buffers, parameters);
  EXPECT_THAT(t, testing::ElementsAre(15, 20, 25, 30, 35));
  EXPECT_THAT(c, testing::ElementsAre(35, -1, 25, -1, 15));
}

TEST(Compile, NothingHappensForNoBlocks) {
  const std::vector<Kernel> kernels = {two_phases()};
  const LoadedKernels library(kernels, any_target());
  void* buffers[] = {nullptr, nullptr, nullptr};
  const int64_t parameters[] = {0};
  library.run(kernels[0], buffers, parameters);
}

TEST(Compile, LanesThatAMaskLeavesOutStayOut) {
  for (const char* op : {"add", "div", "mod", "remainder", "sqrt"}) {
    const bool is_unary = std::string(op) == "sqrt", is_sign = std::string(op) == "div";
    const std::string masked = "a[ramp(0, 3, 2) if m]";
    const std::string value = is_unary  ? "sqrt(" + masked + ")"
                              : is_sign ? "x[0:int64x2 if m] / " + masked
                                        : std::string(op) + "(x[0:int64x2 if m], " + masked + ")";
    const std::vector<Kernel> kernels = {
        kernel::parse(R"(kernel masked(; a: float32 in, x: float32 in, c: float32 out) {
  phase block b in 0..1 {
    let m: booleanx2 = ramp(0, -3, 2) < 0:int64x2
    c[ramp(0, 1, 2)] = select(m, )" +
                      value + R"(, 0:float32x2)
    c[ramp(2, 1, 2)] = select(m, 0:float32x2 + )" +
                      value + R"(, 0:float32x2)
  }
}
)")};
    std::vector<float> a = {0, 0, 0, 2.5}, x = {7}, wanted(4), c(4, -1);
    const kernel::BufferArgument arguments[] = {{a.data(), 4}, {x.data(), 1}, {wanted.data(), 4}};
    kernel::interpret(kernels[0], arguments, {});
    for (const char* target : {"x86-64-v3", "x86-64-v4"}) {
      if (!codegen::host_runs(target)) continue;
      const LoadedKernels library(kernels, codegen::target_named(target));
      void* buffers[] = {a.data(), x.data(), c.data()};
      library.run(kernels[0], buffers, {});
      EXPECT_THAT(c, testing::ElementsAreArray(wanted)) << op << " " << target;
    }
  }
}

TEST(Compile, ObjectsDoNotDependOnThreads) {
  std::vector<Kernel> kernels;
  for (int i = 0; i < 9; ++i) {
    kernels.push_back(two_phases());
    kernels.back().name += std::to_string(i);
    kernels.back().exprs.resize(3000);  // unused: enough to fill objects of their own
  }
  const auto one = codegen::compile_objects(kernels, any_target(), 1);
  const auto two = codegen::compile_objects(kernels, any_target(), 2);
  ASSERT_GT(one.size(), 1U);
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].bytes, two[i].bytes);
  const std::string library = codegen::link_shared(one);
  EXPECT_THAT(library, testing::StartsWith("\x7f"
                                           "ELF"));
  EXPECT_EQ(library, codegen::link_shared(two));
}

TEST(Compile, StaysTheSameAfterALink) {
  const std::vector<Kernel> kernels = {two_phases()};
  const auto before = codegen::compile_objects(kernels, any_target(), 1);
  codegen::link_shared(before);
  EXPECT_EQ(before[0].bytes, codegen::compile_objects(kernels, any_target(), 1)[0].bytes);
}

TEST(Compile, ShowsWhatItMakes) {
  const Kernel kernel = two_phases();
  EXPECT_THAT(codegen::emit_text(kernel, any_target(), codegen::TextForm::llvm_ir),
              testing::HasSubstr("define void @two_phases_p0("));
  EXPECT_THAT(codegen::emit_text(kernel, any_target(), codegen::TextForm::assembly),
              testing::HasSubstr("two_phases_p1_blocks:"));
}

TEST(Compile, KnowsItsTargets) {
  EXPECT_THROW(codegen::target_named("z80"), UserError);
  EXPECT_EQ(codegen::target_named("x86-64-v4").vector_bits, 512);
  EXPECT_GE(codegen::host_target().vector_bits, 128);
  EXPECT_FALSE(codegen::host_target().cpu.empty());
}

TEST(Compile, RefusesBarriers) {
  const Kernel kernel = kernel::parse(R"(kernel barriers(n: int64; A: float32 out) {
  phase block i in 0..n {
    for thread t in 0..4 {
      barrier
      A[i * 4 + t] = 0:float32
    }
  }
}
)");
  EXPECT_THROW(codegen::compile_objects({&kernel, 1}, any_target(), 1), UnsupportedError);
}

TEST(Passes, AreSkippedByName) {
  kernel::PassOptions options;
  options.disabled = {"vectorise"};
  EXPECT_THROW(kernel::run_passes(two_phases(), options), UserError);
  std::vector<std::string> ran;
  options.disabled = {"vectorize"};
  options.dump = [&](std::string_view pass, const Kernel&) { ran.emplace_back(pass); };
  kernel::run_passes(two_phases(), options);
  EXPECT_THAT(ran, testing::Not(testing::Contains("vectorize")));
  EXPECT_THAT(ran, testing::Contains("share_loads"));
}

}  // namespace
}  // namespace fusewise::test
