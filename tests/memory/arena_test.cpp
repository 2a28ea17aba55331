#include "memory/arena.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "base/error.h"
#include "memory/arena_internal.h"

namespace fusewise {
namespace {

int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The most bytes alive at one step, counted step by step without regard to sharing.
int64_t plain_bound(const std::vector<ArenaItem>& items, int steps) {
  int64_t most = 0;
  for (int step = 0; step < steps; ++step) {
    int64_t alive = 0;
    for (const ArenaItem& item : items)
      if (item.first_step <= step && step <= item.last_step) alive += round_up(item.bytes);
    most = std::max(most, alive);
  }
  return most;
}

bool may_share(const std::vector<ArenaItem>& items, size_t writer, size_t reader) {
  const auto& list = items[writer].may_overwrite;
  return items[writer].first_step == items[reader].last_step &&
         std::find(list.begin(), list.end(), static_cast<int>(reader)) != list.end();
}

void expect_valid(const std::vector<ArenaItem>& items, const std::vector<int64_t>& offsets, int64_t total) {
  ASSERT_EQ(offsets.size(), items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(offsets[i] % arena_alignment, 0);
    EXPECT_GE(offsets[i], 0);
    EXPECT_LE(offsets[i] + items[i].bytes, total);
    for (size_t j = 0; j < i; ++j) {
      const ArenaItem &a = items[i], &b = items[j];
      if (a.last_step < b.first_step || b.last_step < a.first_step) continue;
      const bool apart = offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
      const bool shared = offsets[i] == offsets[j] && (may_share(items, i, j) || may_share(items, j, i));
      ASSERT_TRUE(apart || shared || a.bytes == 0 || b.bytes == 0) << "items " << i << " and " << j;
    }
  }
}

std::vector<ArenaItem> random_items(std::mt19937& random, int count, int steps, int longest) {
  std::vector<ArenaItem> items;
  for (int i = 0; i < count; ++i) {
    ArenaItem item;
    item.bytes = random() % 8 == 0 ? 0 : static_cast<int64_t>(random() % 2000);
    item.first_step = static_cast<int>(random() % static_cast<unsigned>(steps));
    item.last_step =
        std::min(steps - 1, item.first_step + static_cast<int>(random() % static_cast<unsigned>(longest)));
    items.push_back(item);
  }
  for (size_t i = 0; i < items.size(); ++i)
    for (size_t j = 0; j < items.size(); ++j)
      if (i != j && items[i].first_step == items[j].last_step && random() % 2)
        items[i].may_overwrite.push_back(static_cast<int>(j));
  return items;
}

TEST(Arena, LiveItemsNeverOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int steps = 1 + static_cast<int>(random() % 40);
    const auto items =
        random_items(random, static_cast<int>(random() % 60), steps, 1 + static_cast<int>(random() % 12));
    const ArenaPlan plan = plan_arena(items);
    expect_valid(items, plan.offsets, plan.bytes);
    EXPECT_LE(plan.lower_bound, plan.bytes);
    EXPECT_LE(plan.lower_bound, plain_bound(items, steps));
  }
}

TEST(Arena, BothPlacementsAreValid) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const auto items = random_items(random, 50, 25, 8);
    memory_internal::Problem problem{items, {}, std::vector<std::vector<int>>(items.size())};
    for (const ArenaItem& item : items) problem.sizes.push_back(round_up(item.bytes));
    for (size_t i = 0; i < items.size(); ++i)
      for (const int j : items[i].may_overwrite)
        if (items[static_cast<size_t>(j)].first_step != items[i].first_step) {
          problem.partners[i].push_back(j);
          problem.partners[static_cast<size_t>(j)].push_back(static_cast<int>(i));
        }
    expect_valid(items, memory_internal::place_by_size(problem), INT64_MAX);
    expect_valid(items, memory_internal::place_by_time(problem), INT64_MAX);
  }
}

TEST(Arena, ChainReusesTwoPlaces) {
  std::vector<ArenaItem> items;
  for (int i = 0; i < 100; ++i) items.push_back({1000, i, i + 1, {}});
  const ArenaPlan plan = plan_arena(items);
  EXPECT_EQ(plan.bytes, 2048);
  EXPECT_EQ(plan.lower_bound, 2048);
}

TEST(Arena, InPlaceChainNeedsOnePlace) {
  std::vector<ArenaItem> items;
  for (int i = 0; i < 100; ++i)
    items.push_back({1000, i, i + 1, i ? std::vector<int>{i - 1} : std::vector<int>{}});
  const ArenaPlan plan = plan_arena(items);
  EXPECT_EQ(plan.bytes, 1024);
  EXPECT_EQ(plan.lower_bound, 1024);
}

TEST(Arena, SmallerAndLargerSuccessorsShareTheStart) {
  const std::vector<ArenaItem> items = {{1000, 0, 1, {}}, {300, 1, 2, {0}}, {900, 2, 3, {1}}};
  const ArenaPlan plan = plan_arena(items);
  expect_valid(items, plan.offsets, plan.bytes);
  EXPECT_EQ(plan.bytes, 1024);
}

TEST(Arena, TwoWritersDoNotTakeTheSamePlace) {
  const std::vector<ArenaItem> items = {{640, 0, 1, {}}, {640, 1, 2, {0}}, {640, 1, 2, {0}}};
  const ArenaPlan plan = plan_arena(items);
  expect_valid(items, plan.offsets, plan.bytes);
  EXPECT_EQ(plan.bytes, 1280);
}

TEST(Arena, StillReadLaterIsNotOverwritten) {
  const std::vector<ArenaItem> items = {{640, 0, 2, {}}, {640, 1, 2, {0}}};
  EXPECT_EQ(plan_arena(items).bytes, 1280);
}

TEST(Arena, MadeAtTheSameStepIsNotShared) {
  const std::vector<ArenaItem> items = {{640, 1, 1, {}}, {640, 1, 1, {0}}};
  EXPECT_EQ(plan_arena(items).bytes, 1280);
}

TEST(Arena, EmptyAndZeroSizes) {
  EXPECT_EQ(plan_arena({}).bytes, 0);
  const std::vector<ArenaItem> items = {{0, 0, 5, {}}, {0, 0, 0, {}}, {1, 0, 5, {0}}};
  const ArenaPlan plan = plan_arena(items);
  EXPECT_EQ(plan.bytes, 64);
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{0, 0, 0}));
}

TEST(Arena, BadItemsAreErrors) {
  EXPECT_THROW(plan_arena(std::vector<ArenaItem>{{-1, 0, 0, {}}}), InternalError);
  EXPECT_THROW(plan_arena(std::vector<ArenaItem>{{1, 1, 0, {}}}), InternalError);
  EXPECT_THROW(plan_arena(std::vector<ArenaItem>{{1, 0, 0, {7}}}), InternalError);
  EXPECT_THROW(plan_arena(std::vector<ArenaItem>{{INT64_MAX, 0, 0, {}}}), UserError);
  EXPECT_THROW(plan_arena(std::vector<ArenaItem>{{INT64_MAX - 100, 0, 0, {}}, {INT64_MAX - 100, 0, 0, {}}}),
               UserError);
}

TEST(Arena, SameItemsGiveTheSamePlan) {
  std::mt19937 random(3);
  const auto items = random_items(random, 500, 300, 10);
  EXPECT_EQ(plan_arena(items).offsets, plan_arena(items).offsets);
}

TEST(Arena, TwentyThousandItemsAreFast) {
  std::mt19937 random(4);
  for (const int longest : {4, 20'000}) {
    std::vector<ArenaItem> items;
    for (int i = 0; i < 20'000; ++i)
      items.push_back({static_cast<int64_t>(random() % 100'000),
                       i,
                       std::min(19'999, i + 1 + static_cast<int>(random() % static_cast<unsigned>(longest))),
                       {}});
    const auto start = std::chrono::steady_clock::now();
    const ArenaPlan plan = plan_arena(items);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_LT(seconds.count(), 1.0) << longest;
    EXPECT_LE(plan.bytes, plan.lower_bound * 3 / 2) << longest;
  }
}

}  // namespace
}  // namespace fusewise
