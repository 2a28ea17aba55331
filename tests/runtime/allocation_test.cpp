// A shape that has run before runs without allocating.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "runtime/executable.h"
#include "sample_kernels.h"

namespace {
thread_local int64_t allocations = 0;

void* counted(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
// The library would make this of the first, but a sanitizer brings one of its own.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace fusewise::runtime {
namespace {

TEST(HotPath, AllocatesNothing) {
  ExecutableOptions options;
  options.threads = 2;
  options.resolver = sample_kernels().resolver();
  const Executable executable(program::sample_program(), options);
  const std::vector<std::vector<int64_t>> large = {{300, 4}};
  const std::vector<std::vector<int64_t>> small = {{3, 4}};
  std::vector<float> x(1200, 1.0F), y(1200);
  std::vector<int64_t> shape(2);
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data(), shape.data()};
  const auto run_both = [&] {
    for (const auto* shapes : {&large, &small})
      if (!executable.run(*executable.bind(*shapes), inputs, outputs).ok()) std::abort();
  };
  run_both();
  const int64_t before = allocations;
  for (int i = 0; i < 100; ++i) run_both();
  EXPECT_EQ(allocations, before);
  const auto unused = std::make_unique<int>(1);
  EXPECT_EQ(allocations, before + 1) << "the counter counts";
}

}  // namespace
}  // namespace fusewise::runtime
