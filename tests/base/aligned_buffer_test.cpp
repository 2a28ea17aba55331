#include "base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/function_ref.h"

namespace fusewise {
namespace {

size_t misalignment(const AlignedBuffer& buffer, size_t unit) {
  return reinterpret_cast<uintptr_t>(buffer.data()) % unit;
}

TEST(AlignedBuffer, StartsAtACacheLineOrHugePage) {
  for (size_t size : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{1000003}}) {
    AlignedBuffer buffer(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(misalignment(buffer, 64), 0U);
    std::memset(buffer.data(), 7, size);
  }
  AlignedBuffer large(AlignedBuffer::huge_page_threshold + 5);
  EXPECT_EQ(misalignment(large, AlignedBuffer::huge_page), 0U);
  std::memset(large.data(), 7, large.size());
}

TEST(AlignedBuffer, EmptyAndImpossibleSizes) {
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
  EXPECT_TRUE(AlignedBuffer().empty());
  EXPECT_THROW(AlignedBuffer(SIZE_MAX - 3), std::bad_alloc);
}

TEST(AlignedBuffer, MovesItsMemory) {
  AlignedBuffer first(10);
  const std::byte* memory = first.data();
  AlignedBuffer second = std::move(first);
  EXPECT_EQ(second.data(), memory);
  AlignedBuffer third(5);
  third = std::move(second);
  EXPECT_EQ(third.data(), memory);
  EXPECT_EQ(third.size(), 10U);
  EXPECT_EQ(third.as<float>().size(), 2U);
}

int twice(int value) { return 2 * value; }

int apply(FunctionRef<int(int)> function, int value) { return function(value); }

TEST(FunctionRef, CallsLambdasAndFunctionObjects) {
  int calls = 0;
  EXPECT_EQ(apply([&](int value) { return ++calls + value; }, 4), 5);
  const auto constant = [](int) { return 9; };
  EXPECT_EQ(apply(constant, 0), 9);
  auto* pointer = &twice;
  EXPECT_EQ(apply(pointer, 4), 8);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace fusewise
