#include "runtime/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "sample_kernels.h"

namespace fusewise::runtime {
namespace {

using program::Program;
using testing::HasSubstr;

ExecutableOptions sample_options(int threads = 2) {
  ExecutableOptions options;
  options.threads = threads;
  options.resolver = sample_kernels().resolver();
  return options;
}

struct Buffers {
  std::vector<float> x, y;
  std::vector<int64_t> shape = {-1, -1};

  explicit Buffers(int64_t batch, float start = -6) {
    for (int64_t i = 0; i < 4 * batch; ++i) x.push_back(start + static_cast<float>(i));
    y.assign(x.size(), -1);
  }
  std::vector<float> expected() const {
    std::vector<float> values;
    for (size_t i = 0; i < x.size(); ++i)
      values.push_back(2 * std::max(x[i] + static_cast<float>(i % 4 + 1), 0.0F));
    return values;
  }
  Status run(const Executable& executable, const Binding& binding, const RunOptions& options = {}) {
    const void* inputs[] = {x.data()};
    void* outputs[] = {y.data(), shape.data()};
    return executable.run(binding, inputs, outputs, options);
  }
};

std::shared_ptr<const Binding> bind(const Executable& executable, int64_t batch) {
  const std::vector<std::vector<int64_t>> shapes = {{batch, 4}};
  return executable.bind(shapes);
}

void expect_right(const Executable& executable, int64_t batch) {
  Buffers buffers(batch);
  const Status status = buffers.run(executable, *bind(executable, batch));
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(buffers.y, buffers.expected());
  EXPECT_EQ(buffers.shape, (std::vector<int64_t>{batch, 4}));
}

TEST(Executable, ManyShapesAndThreads) {
  for (const int threads : {1, 2, 5}) {
    const Executable executable(program::sample_program(), sample_options(threads));
    EXPECT_EQ(executable.threads(), threads);
    for (const int64_t batch : {1, 2, 3, 17, 1000, 5, 1}) expect_right(executable, batch);
  }
}

TEST(Executable, EmptyTensorsMayBeNull) {
  Program program = program::sample_program();
  program.guards.clear();
  const Executable executable(program, sample_options());
  expect_right(executable, 0);
  std::vector<int64_t> shape(2);
  const void* inputs[] = {nullptr};
  void* outputs[] = {nullptr, shape.data()};
  EXPECT_TRUE(executable.run(*bind(executable, 0), inputs, outputs).ok());
  EXPECT_EQ(shape, (std::vector<int64_t>{0, 4}));
}

TEST(Executable, GuardsAndShapesAreChecked) {
  const Executable executable(program::sample_program(), sample_options());
  EXPECT_THROW(bind(executable, 0), UserError);
  const std::vector<std::vector<int64_t>> wrong = {{2, 5}};
  EXPECT_THROW(executable.bind(wrong), UserError);
}

TEST(Executable, KeepsTheLastBindings) {
  ExecutableOptions options = sample_options();
  options.kept_bindings = 2;
  const Executable executable(program::sample_program(), options);
  const auto one = bind(executable, 1);
  const auto two = bind(executable, 2);
  EXPECT_EQ(bind(executable, 1), one);
  bind(executable, 3);  // 2 goes, it was used less recently
  EXPECT_EQ(bind(executable, 1), one);
  EXPECT_NE(bind(executable, 2), two);
  // A binding that was let go stays usable by who holds it.
  Buffers buffers(2);
  EXPECT_TRUE(buffers.run(executable, *two).ok());
  EXPECT_EQ(buffers.y, buffers.expected());
}

TEST(Executable, BadArgumentsRunNothing) {
  const Executable executable(program::sample_program(), sample_options());
  const Executable other(program::sample_program(), sample_options());
  const auto binding = bind(executable, 2);
  Buffers buffers(2);
  EXPECT_THAT(buffers.run(other, *binding).message, HasSubstr("another executable"));
  const void* inputs[] = {buffers.x.data()};
  void* outputs[] = {buffers.y.data(), buffers.shape.data()};
  EXPECT_EQ(executable.run(*binding, {}, outputs).code, StatusCode::bad_argument);
  EXPECT_EQ(executable.run(*binding, inputs, {}).code, StatusCode::bad_argument);
  const void* null_inputs[] = {nullptr};
  EXPECT_THAT(executable.run(*binding, null_inputs, outputs).message,
              HasSubstr("input 'x' is a null pointer"));
  void* null_outputs[] = {buffers.y.data(), nullptr};
  EXPECT_THAT(executable.run(*binding, inputs, null_outputs).message, HasSubstr("output 'shape' is a null"));
  void* same_outputs[] = {buffers.y.data(), buffers.y.data() + 7};
  EXPECT_THAT(executable.run(*binding, inputs, same_outputs).message,
              HasSubstr("outputs 'shape' and 'y' overlap"));
  void* shifted[] = {buffers.x.data() + 1, buffers.shape.data()};
  EXPECT_THAT(executable.run(*binding, inputs, shifted).message, HasSubstr("output 'y' overlaps input 'x'"));
  EXPECT_EQ(buffers.y, std::vector<float>(8, -1));
}

TEST(Executable, OutputMayLieInItsInputWhereDeclared) {
  Program program = program::sample_program();
  const Executable executable(program, sample_options());
  Buffers buffers(3);
  const std::vector<float> expected = buffers.expected();
  const void* inputs[] = {buffers.x.data()};
  void* outputs[] = {buffers.x.data(), buffers.shape.data()};
  EXPECT_TRUE(executable.run(*bind(executable, 3), inputs, outputs).ok());
  EXPECT_EQ(buffers.x, expected);
  program.outputs[0].may_alias_inputs.clear();
  const Executable strict(program, sample_options());
  EXPECT_EQ(strict.run(*bind(strict, 3), inputs, outputs).code, StatusCode::bad_argument);
}

TEST(Executable, EightThreadsAtOnce) {
  const Executable executable(program::sample_program(), sample_options());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Buffers buffers(3 + t % 3 * 40, static_cast<float>(-t));
      const std::vector<float> expected = buffers.expected();
      for (int i = 0; i < 200; ++i) {
        const auto binding = bind(executable, 3 + t % 3 * 40);
        buffers.y.assign(buffers.y.size(), -1);
        if (!buffers.run(executable, *binding).ok() || buffers.y != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Executable, MemoryStopsGrowing) {
  const Executable executable(program::sample_program(), sample_options());
  expect_right(executable, 100);
  const int64_t bytes = executable.workspace_bytes();
  EXPECT_GT(bytes, 0);
  for (const int64_t batch : {1, 100, 50, 100}) expect_right(executable, batch);
  EXPECT_EQ(executable.workspace_bytes(), bytes);
}

TEST(Executable, Cancellation) {
  const Executable executable(program::sample_program(), sample_options());
  Buffers buffers(2);
  std::atomic<bool> cancel{true};
  RunOptions options;
  options.cancel = &cancel;
  EXPECT_EQ(buffers.run(executable, *bind(executable, 2), options).code, StatusCode::cancelled);
  cancel = false;
  EXPECT_TRUE(buffers.run(executable, *bind(executable, 2), options).ok());
}

TEST(Executable, TimesOfSteps) {
  const Executable executable(program::sample_program(), sample_options());
  Buffers buffers(1000);
  std::vector<double> seconds(3, 0.0);
  RunOptions options;
  options.step_seconds = seconds;
  EXPECT_TRUE(buffers.run(executable, *bind(executable, 1000), options).ok());
  const std::vector<double> first = seconds;
  EXPECT_TRUE(buffers.run(executable, *bind(executable, 1000), options).ok());
  for (size_t i = 0; i < 3; ++i) EXPECT_GT(seconds[i], first[i]);
  options.step_seconds = std::span(seconds).first(2);
  EXPECT_EQ(buffers.run(executable, *bind(executable, 1000), options).code, StatusCode::bad_argument);
}

TEST(Executable, KernelsRunInTheDefaultFloatEnvironment) {
  Program program = program::sample_program();
  KernelTable table = sample_kernels();
  // A denormal times one is not flushed to zero.
  table.add(
      "relu_p1",
      [](void* const* buffers, const int64_t*, char*, int64_t begin, int64_t end) {
        volatile float tiny = 1e-40F;
        volatile float one = 1;
        for (int64_t i = begin; i < end; ++i)
          static_cast<float*>(buffers[1])[i] = tiny * one > 0 ? 1.0F : 0.0F;
      },
      first_parameter);
  ExecutableOptions options;
  options.threads = 2;
  options.resolver = table.resolver();
  const Executable executable(program, options);
  Buffers buffers(50);
  const auto binding = bind(executable, 50);
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);  // flush to zero, denormals are zero
  const Status status = buffers.run(executable, *binding);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(after & 0x8040, 0x8040u);
  EXPECT_EQ(buffers.y, std::vector<float>(200, 1.0F));
}

TEST(Executable, AKernelThatThrowsFailsTheRun) {
  KernelTable table = sample_kernels();
  table.add(
      "relu_p1",
      [](void* const*, const int64_t*, char*, int64_t begin, int64_t) {
        if (begin == 0) throw std::runtime_error("no luck");
      },
      first_parameter);
  ExecutableOptions options;
  options.threads = 2;
  options.resolver = table.resolver();
  const Executable executable(program::sample_program(), options);
  for (const int64_t batch : {1, 100}) {
    Buffers buffers(batch);
    const Status status = buffers.run(executable, *bind(executable, batch));
    EXPECT_EQ(status.code, StatusCode::failed);
    EXPECT_EQ(status.message, "no luck");
  }
}

TEST(Executable, NoRoomIsAStatus) {
  Program program = program::sample_program();
  program.kernels[1].scratch_bytes = (int64_t{1} << 62) * Dim::symbol("p0");
  const Executable executable(program, sample_options(4));
  Buffers buffers(1);
  EXPECT_EQ(buffers.run(executable, *bind(executable, 1)).code, StatusCode::out_of_memory);
}

TEST(Executable, OnceResultsAreKeptAndReused) {
  const Executable first(program::sample_program(), sample_options());
  EXPECT_EQ(first.resident_bytes(), 32);
  EXPECT_TRUE(first.program().constants[0].bytes.span.empty()) << "no run step reads it";
  const Program saved = first.with_once_results();
  KernelTable table = sample_kernels();
  table.add(
      "pack_p0",
      [](void* const*, const int64_t*, char*, int64_t, int64_t) { throw std::runtime_error("again"); },
      one_block);
  ExecutableOptions options = sample_options();
  options.resolver = table.resolver();
  const Executable second(saved, options);
  expect_right(second, 4);
  EXPECT_EQ(second.with_once_results().buffers[2].content.span.data(), saved.buffers[2].content.span.data());
  options.copy_once_results = true;
  const Executable third(saved, options);
  expect_right(third, 4);
  EXPECT_NE(third.with_once_results().buffers[2].content.span.data(), saved.buffers[2].content.span.data());
  EXPECT_THROW(Executable(program::sample_program(), options), std::runtime_error);
}

TEST(Executable, OnceResultsLieApartWithoutGaps) {
  Program program = program::sample_program();
  const auto once = [&](int64_t bytes) {
    program.buffers.push_back(program::make_buffer(program::BufferKind::once, program::none, bytes, "more"));
    program.buffers.back().zero_fill = true;
    program.once_steps.push_back(
        program::make_step(0, {1, static_cast<uint32_t>(program.buffers.size() - 1)}, {}, "pack"));
    return static_cast<uint32_t>(program.buffers.size() - 1);
  };
  const std::vector<uint32_t> read = {2, once(16), once(68), once(5'000'004)};
  const uint32_t unread = once(20);
  for (const uint32_t id : read)
    program.run_steps.insert(program.run_steps.begin(),
                             program::make_step(1, {0, id, 3}, {Dim::symbol("batch"), 4}, "Add"));
  const Executable executable(program, sample_options());
  expect_right(executable, 5);
  const Program results = executable.with_once_results();
  EXPECT_TRUE(results.buffers[unread].content.span.empty());
  uintptr_t end = 0;
  for (const uint32_t id : read) {
    const std::span<const std::byte> bytes = results.buffers[id].content.span;
    ASSERT_EQ(static_cast<int64_t>(bytes.size()), results.buffers[id].bytes.value());
    const uintptr_t begin = reinterpret_cast<uintptr_t>(bytes.data());
    EXPECT_EQ(begin % 64, 0U);
    if (end) {
      EXPECT_EQ(begin, (end + 63) / 64 * 64);
    }
    end = begin + bytes.size();
    std::vector<float> values(bytes.size() / 4), expected = {1, 2, 3, 4};
    std::memcpy(values.data(), bytes.data(), values.size() * 4);
    expected.resize(values.size());
    EXPECT_EQ(values, expected);
  }
}

TEST(Executable, MissingKernelsAndProcessorsAreErrors) {
  ExecutableOptions options;
  options.resolver = KernelTable().resolver();
  EXPECT_THROW(Executable(program::sample_program(), options), InternalError);
  Program program = program::sample_program();
  program.cpu_features = {"warp-drive"};
  EXPECT_THROW(Executable(program, sample_options()), UserError);
  EXPECT_THROW(Executable(program::sample_program(), {}), UserError) << "its library is no shared object";
}

}  // namespace
}  // namespace fusewise::runtime
