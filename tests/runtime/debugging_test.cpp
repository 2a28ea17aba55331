// Poison and guard pages find what a kernel does wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/executable.h"
#include "sample_kernels.h"

namespace fusewise::runtime {
namespace {

using testing::HasSubstr;

struct Outcome {
  Status status;
  std::vector<float> y;
  std::vector<int64_t> shape = {0, 0};
};

Outcome run(const KernelTable& table, bool poison, GuardPages pages, int64_t batch = 5, int threads = 2) {
  ExecutableOptions options;
  options.threads = threads;
  options.resolver = table.resolver();
  options.poison = poison;
  options.guard_pages = pages;
  const Executable executable(program::sample_program(), options);
  const std::vector<std::vector<int64_t>> shapes = {{batch, 4}};
  const auto binding = executable.bind(shapes);
  Outcome result;
  const std::vector<float> x(static_cast<size_t>(4 * batch), 1.0F);
  result.y.assign(x.size(), 7.0F);
  const void* inputs[] = {x.data()};
  void* outputs[] = {result.y.data(), result.shape.data()};
  for (int i = 0; i < 2; ++i) {
    result.status = executable.run(*binding, inputs, outputs);
    if (!result.status.ok()) break;
  }
  return result;
}

TEST(Debugging, RightKernelsPassInEveryMode) {
  for (const bool poison : {false, true})
    for (const GuardPages pages : {GuardPages::off, GuardPages::after, GuardPages::before}) {
      const Outcome result = run(sample_kernels(), poison, pages);
      EXPECT_TRUE(result.status.ok()) << result.status.message;
      EXPECT_EQ(result.y[0], 4.0F);
      EXPECT_EQ(result.y[19], 10.0F);
      EXPECT_EQ(result.shape, (std::vector<int64_t>{5, 4}));
    }
}

TEST(Debugging, PoisonShowsWhatIsNotWritten) {
  KernelTable table = sample_kernels();
  table.add("add_p0", [](void* const*, const int64_t*, char*, int64_t, int64_t) {}, first_parameter);
  table.add(
      "relu_p0",
      [](void* const* buffers, const int64_t*, char*, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          static_cast<float*>(buffers[1])[i] = static_cast<const float*>(buffers[0])[i];
      },
      first_parameter);
  for (const GuardPages pages : {GuardPages::off, GuardPages::after})
    EXPECT_TRUE(std::isnan(run(table, true, pages).y[3]));
  // Scratch is poisoned too.
  table.add(
      "add_p0",
      [](void* const* buffers, const int64_t*, char* scratch, int64_t begin, int64_t end) {
        for (int64_t i = 4 * begin; i < 4 * end; ++i)
          static_cast<float*>(buffers[2])[i] = reinterpret_cast<const float*>(scratch)[0];
      },
      first_parameter);
  EXPECT_TRUE(std::isnan(run(table, true, GuardPages::off).y[3]));
}

TEST(Debugging, PoisonLeavesInPlaceBuffersAlone) {
  program::Program program = program::sample_program();
  // sum (3) -> doubled (7), in place -> y.
  program.buffers.push_back(
      program::make_buffer(program::BufferKind::arena, program::none, 16 * Dim::symbol("batch"), "doubled"));
  program.buffers[7].may_overwrite = {3};
  program.run_steps[1].buffers = {3, 7};
  program.run_steps.push_back(program.run_steps[1]);
  program.run_steps.back().buffers = {7, 5};
  for (const GuardPages pages : {GuardPages::off, GuardPages::before}) {
    ExecutableOptions options;
    options.threads = 2;
    options.resolver = sample_kernels().resolver();
    options.poison = true;
    options.guard_pages = pages;
    const Executable executable(program, options);
    const std::vector<std::vector<int64_t>> shapes = {{3, 4}};
    const auto binding = executable.bind(shapes);
    EXPECT_EQ(binding->arena_offsets[7], binding->arena_offsets[3]);
    EXPECT_EQ(binding->arena_bytes, 64);
    std::vector<float> x(12, 1.0F), y(12);
    std::vector<int64_t> shape(2);
    const void* inputs[] = {x.data()};
    void* outputs[] = {y.data(), shape.data()};
    EXPECT_TRUE(executable.run(*binding, inputs, outputs).ok());
    EXPECT_EQ(y[1], 12.0F);
  }
}

TEST(Debugging, MarginsShowSmallOverruns) {
  KernelTable table = sample_kernels();
  // y has 80 bytes here, and the page ends at byte 128.
  table.add(
      "relu_p1",
      [](void* const* buffers, const int64_t*, char*, int64_t, int64_t) {
        static_cast<float*>(buffers[1])[20] = 1;
      },
      one_block);
  const Outcome result = run(table, false, GuardPages::after);
  EXPECT_EQ(result.status.code, StatusCode::failed);
  EXPECT_THAT(result.status.message, HasSubstr("output buffer 5 'y'"));
}

using DebuggingDeathTest = testing::Test;

TEST(DebuggingDeathTest, PagesStopLargeOverruns) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  KernelTable after = sample_kernels();
  after.add(
      "add_p0",
      [](void* const* buffers, const int64_t*, char*, int64_t, int64_t) {
        static_cast<float*>(buffers[2])[0] = static_cast<const float*>(buffers[0])[32];
      },
      one_block);
  EXPECT_DEATH((void)run(after, false, GuardPages::after, 8, 1), "");
  KernelTable before = sample_kernels();
  before.add(
      "add_p0",
      [](void* const* buffers, const int64_t*, char*, int64_t, int64_t) {
        static_cast<float*>(buffers[2])[-1] = 0;
      },
      one_block);
  EXPECT_DEATH((void)run(before, false, GuardPages::before, 8, 1), "");
  KernelTable input = sample_kernels();
  input.add(
      "add_p0",
      [](void* const* buffers, const int64_t*, char*, int64_t, int64_t) {
        static_cast<float*>(buffers[0])[0] = 0;
      },
      one_block);
  EXPECT_DEATH((void)run(input, false, GuardPages::after, 8, 1), "");
}

}  // namespace
}  // namespace fusewise::runtime
