// Each kernel pass alone, and all of them in order, on random kernels: the interpreter sees no difference.
#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <sstream>

#include "kernel/interpreter.h"
#include "kernel/passes/pipeline.h"
#include "kernel/verifier.h"
#include "support/case_file.h"
#include "support/random_kernel.h"

namespace fusewise::test {
namespace {

using Results = std::vector<std::vector<std::byte>>;

Results interpreted(const Kernel& kernel, const RandomKernel& random) {
  Results results;
  for (const auto& argument : random.arguments) results.push_back(argument.bytes);
  std::vector<BufferArgument> buffers;
  for (size_t i = 0; i < results.size(); ++i)
    buffers.push_back({results[i].data(), random.arguments[i].elements});
  interpret(kernel, buffers, random.parameters);
  return results;
}

void expect_same(const Kernel& before, const Kernel& after, const RandomKernel& random,
                 const Results& expected, const std::string& what) {
  verify(after);
  const Results actual = interpreted(after, random);
  for (size_t i = 0; i < expected.size(); ++i) {
    const int64_t at = first_difference(random.arguments[i].type, expected[i], actual[i]);
    ASSERT_EQ(at, -1) << what << " changes " << before.buffers[i].name << " of\n"
                      << print(before) << "\nto\n"
                      << print(after);
  }
}

void check_kernel(uint64_t seed, bool with_functions, int vector_bits) {
  const RandomKernel random(seed, with_functions);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  verify(random.kernel);
  const Results expected = interpreted(random.kernel, random);
  PassOptions options;
  options.vector_bits = vector_bits;
  for (const Pass& pass : passes()) {
    const Kernel after = pass.run(random.kernel, options);
    ASSERT_NO_FATAL_FAILURE(expect_same(random.kernel, after, random, expected, std::string(pass.name)));
  }
  Kernel kernel = random.kernel;
  for (const Pass& pass : passes()) {
    const Kernel before = kernel;
    kernel = pass.run(std::move(kernel), options);
    ASSERT_NO_FATAL_FAILURE(
        expect_same(before, kernel, random, expected, std::string(pass.name) + " in its place"));
  }
}

TEST(KernelPasses, KeepTheMeaningOfRandomKernels) {
  for (uint64_t seed = 0; seed < 150; ++seed)
    ASSERT_NO_FATAL_FAILURE(check_kernel(seed, false, seed % 2 == 0 ? 256 : 512));
}

TEST(KernelPasses, KeepTheMeaningWithFunctions) {
  for (uint64_t seed = 1000; seed < 1040; ++seed) ASSERT_NO_FATAL_FAILURE(check_kernel(seed, true, 256));
}

// `pass`: names of passes in order; `vector_bits`: 128 by default.
TEST(KernelPasses, Cases) {
  run_cases("kernel/passes", [](const Case& c) {
    PassOptions options;
    options.vector_bits = std::stoi(c.word("vector_bits", "128"));
    Kernel kernel = parse(c.text("input"));
    verify(kernel);
    std::istringstream words(c.text("pass"));
    const std::set<std::string, std::less<>> wanted{std::istream_iterator<std::string>(words), {}};
    for (const Pass& pass : passes())
      if (wanted.contains(pass.name)) kernel = pass.run(std::move(kernel), options);
    verify(kernel);
    const bool places = wanted.contains("place_scratch");
    return places ? "scratch " + kernel.scratch_bytes.to_string() + "\n" : print(kernel);
  });
}

}  // namespace
}  // namespace fusewise::test
