#include "session/pinned_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <vector>

#include "base/cpu_limits.h"

namespace fusewise::session {
namespace {

int processors_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}

TEST(PinnedPool, KeepsEachThreadOnOneProcessor) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  {
    const auto pool = pinned_pool(3);
    EXPECT_EQ(pool->size(), 3);
    EXPECT_EQ(processors_of_this_thread(), 1);
    std::atomic<int> wide = 0;
    std::atomic<int64_t> done = 0;
    for (int round = 0; round < 50; ++round)
      pool->parallel_for(64, [&](int64_t begin, int64_t end, int) {
        if (processors_of_this_thread() != 1) ++wide;
        done += end - begin;
      });
    EXPECT_EQ(wide, 0);
    EXPECT_EQ(done, 50 * 64);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(processors_of_this_thread(), CPU_COUNT(&before));
}

}  // namespace
}  // namespace fusewise::session
