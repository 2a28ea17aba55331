// Parts of buffers as arguments of steps, and copies between arrays with different strides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "program/program_file.h"
#include "runtime/executable.h"
#include "sample_kernels.h"

namespace fusewise::runtime {
namespace {

using program::BufferKind;
using program::make_buffer;
using program::Program;

program::Buffer part_of(program::BufferId base, Dim bytes, Dim offset, Dim reach, const std::string& name) {
  program::Buffer part = make_buffer(BufferKind::view, program::none, std::move(bytes), name);
  part.base = base;
  part.offset = std::move(offset);
  part.reach = std::move(reach);
  return part;
}

// [n, a] beside [n, b], copied together in an arena buffer and from there to the output [n, a + b]. Buffers: 0 and 1
// the inputs, 2 the whole, 3 and 4 its parts, 5 the output.
Program join_columns() {
  Program p;
  p.name = "join";
  p.symbols = {"a", "b", "n"};
  const Dim a = Dim::symbol("a"), b = Dim::symbol("b"), n = Dim::symbol("n"), row = a + b;
  p.inputs = {{"x", DataType::float32, {n, a}}, {"y", DataType::float32, {n, b}}};
  p.outputs = {{"z", DataType::float32, {n, row}, 5, {}}};
  p.buffers = {make_buffer(BufferKind::input, 0, 4 * n * a, "x"),
               make_buffer(BufferKind::input, 1, 4 * n * b, "y"),
               make_buffer(BufferKind::arena, program::none, 4 * n * row, "whole"),
               part_of(2, 4 * n * a, 0, 4 * (n * row - b), "left"),
               part_of(2, 4 * n * b, 4 * a, 4 * (n * row - a), "right"),
               make_buffer(BufferKind::output, 0, 4 * n * row, "z")};
  const auto copy = [&](program::BufferId from, program::BufferId to, std::vector<Dim> parameters) {
    program::Step step = program::make_step(program::none, {from, to}, std::move(parameters), "copy");
    step.kind = program::StepKind::copy;
    p.run_steps.push_back(std::move(step));
  };
  copy(0, 3, {4, n, 4 * a, 4 * row, a, 4, 4});
  copy(1, 4, {4, n, 4 * b, 4 * row, b, 4, 4});
  copy(2, 5, {});
  return p;
}

void expect_joined(const Executable& executable, int64_t n, int64_t a, int64_t b) {
  std::vector<float> x, y, expected;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < a; ++j) expected.push_back(x.emplace_back(static_cast<float>(100 * i + j)));
    for (int64_t j = 0; j < b; ++j) expected.push_back(y.emplace_back(static_cast<float>(-100 * i - j)));
  }
  std::vector<float> z(expected.size(), 7.0F);
  const std::vector<std::vector<int64_t>> shapes = {{n, a}, {n, b}};
  const void* inputs[] = {x.data(), y.data()};
  void* outputs[] = {z.data()};
  const auto binding = executable.bind(shapes);
  for (int run = 0; run < 2; ++run) {
    const Status status = executable.run(*binding, inputs, outputs);
    ASSERT_TRUE(status.ok()) << status.message;
    EXPECT_EQ(z, expected) << n << " " << a << " " << b;
  }
}

TEST(Views, PartsAreWrittenIntoTheWholeAndReadFromIt) {
  for (const bool poison : {false, true})
    for (const GuardPages pages : {GuardPages::off, GuardPages::after, GuardPages::before})
      for (const int threads : {1, 2, 7}) {
        ExecutableOptions options;
        options.threads = threads;
        options.poison = poison;
        options.guard_pages = pages;
        options.resolver = KernelTable().resolver();
        const Executable executable(join_columns(), options);
        for (const auto& [n, a, b] : std::vector<std::array<int64_t, 3>>{
                 {5, 4, 3}, {1, 1, 1}, {0, 3, 2}, {7, 0, 5}, {7, 5, 0}, {1, 1000, 3}, {3000, 31, 17}})
          expect_joined(executable, n, a, b);
      }
}

TEST(Views, AreKeptInFiles) {
  const TemporaryFolder folder;
  program::save(join_columns(), folder.path() / "join");
  ExecutableOptions options;
  options.threads = 1;
  options.resolver = KernelTable().resolver();
  expect_joined(Executable(program::load(folder.path() / "join"), options), 3, 5, 2);
}

// A buffer lives from the first write to a part of it until the last reader of a part is done.
TEST(Views, KeepTheirWholeAlive) {
  Program p = join_columns();
  const Dim bytes = p.buffers[2].bytes;
  p.buffers.push_back(make_buffer(BufferKind::arena, program::none, bytes, "between"));
  p.buffers.push_back(make_buffer(BufferKind::arena, program::none, bytes, "behind"));
  const auto copy = [&](program::BufferId from, program::BufferId to) {
    program::Step step = program::make_step(program::none, {from, to}, {}, "copy");
    step.kind = program::StepKind::copy;
    return step;
  };
  // whole is complete, then another buffer of its size is used, then the whole's part is read.
  p.run_steps = {p.run_steps[0], p.run_steps[1], copy(2, 6), copy(6, 5),
                 p.run_steps[1], copy(2, 7),     copy(7, 5)};
  ExecutableOptions options;
  options.threads = 1;
  options.resolver = KernelTable().resolver();
  const Executable executable(p, options);
  expect_joined(executable, 16, 7, 9);
  const std::vector<std::vector<int64_t>> shapes = {{16, 7}, {16, 9}};
  const auto binding = executable.bind(shapes);
  EXPECT_NE(binding->arena_offsets[2], binding->arena_offsets[6]);
  EXPECT_EQ(binding->arena_bytes, 2 * 1024);
}

}  // namespace
}  // namespace fusewise::runtime
