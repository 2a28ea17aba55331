// Random kernels compiled and run, against the interpreter bit for bit (NaN payloads aside), for AVX2 and AVX-512.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/codegen.h"
#include "kernel/interpreter.h"
#include "kernel/passes/pipeline.h"
#include "kernel/verifier.h"
#include "support/loaded_kernels.h"
#include "support/random_kernel.h"

namespace fusewise::test {
namespace {

using Results = std::vector<std::vector<std::byte>>;

Results inputs_of(const RandomKernel& random) {
  Results results;
  for (const auto& argument : random.arguments) results.push_back(argument.bytes);
  return results;
}

Results interpreted(const RandomKernel& random) {
  Results results = inputs_of(random);
  std::vector<BufferArgument> buffers;
  for (size_t i = 0; i < results.size(); ++i)
    buffers.push_back({results[i].data(), random.arguments[i].elements});
  interpret(random.kernel, buffers, random.parameters);
  return results;
}

Results executed(const RandomKernel& random, const Kernel& kernel, const LoadedKernels& library) {
  Results results = inputs_of(random);
  std::vector<void*> buffers;
  for (auto& bytes : results) buffers.push_back(bytes.data());
  library.run(kernel, buffers, random.parameters);
  return results;
}

void check_seeds(uint64_t first, uint64_t count, bool with_functions, const codegen::CpuTarget& target,
                 bool with_passes) {
  std::vector<RandomKernel> randoms;
  std::vector<Kernel> kernels;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    randoms.emplace_back(seed, with_functions);
    PassOptions options;
    options.vector_bits = target.vector_bits;
    if (!with_passes)
      options.disabled = {"unroll",           "vectorize",         "unroll_serial",
                          "legalize_halves",  "promote_registers", "hoist_addresses",
                          "hoist_invariants", "share_loads"};
    kernels.push_back(run_passes(randoms.back().kernel, options));
    verify(kernels.back());
  }
  const LoadedKernels library(kernels, target);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Results expected = interpreted(randoms[i]);
    const Results actual = executed(randoms[i], kernels[i], library);
    for (size_t b = 0; b < expected.size(); ++b) {
      const DataType type = randoms[i].arguments[b].type;
      const int64_t at = first_difference(type, expected[b], actual[b]);
      ASSERT_EQ(at, -1) << kernels[i].name << " on " << target.cpu << " differs in "
                        << kernels[i].buffers[b].name << ", which should be "
                        << load_scalar(expected[b].data() + at * bytes_of(type), type).f << " / "
                        << load_scalar(expected[b].data() + at * bytes_of(type), type).i << " and is "
                        << load_scalar(actual[b].data() + at * bytes_of(type), type).f << " / "
                        << load_scalar(actual[b].data() + at * bytes_of(type), type).i << "\n"
                        << print(randoms[i].kernel) << "\n"
                        << (std::getenv("SHOW_FINAL") != nullptr ? print(kernels[i]) : "");
    }
  }
}

class RandomKernels : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!codegen::host_runs(GetParam()))
      GTEST_SKIP() << "this processor does not run code for " << GetParam();
  }
};

TEST_P(RandomKernels, AgreeWithTheInterpreter) {
  ASSERT_NO_FATAL_FAILURE(check_seeds(0, 150, false, codegen::target_named(GetParam()), true));
}

TEST_P(RandomKernels, AgreeWithFunctions) {
  ASSERT_NO_FATAL_FAILURE(check_seeds(5000, 40, true, codegen::target_named(GetParam()), true));
}

TEST_P(RandomKernels, AgreeWithoutPasses) {
  ASSERT_NO_FATAL_FAILURE(check_seeds(7000, 60, false, codegen::target_named(GetParam()), false));
}

INSTANTIATE_TEST_SUITE_P(Targets, RandomKernels, testing::Values("x86-64-v3", "x86-64-v4"),
                         [](const auto& given) { return given.param == "x86-64-v3" ? "avx2" : "avx512"; });

}  // namespace
}  // namespace fusewise::test
