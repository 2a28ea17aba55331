#include "memory/arena.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "memory/arena_internal.h"

namespace fusewise {

using namespace memory_internal;

namespace {

std::vector<int64_t> rounded_sizes(std::span<const ArenaItem> items) {
  std::vector<int64_t> sizes;
  sizes.reserve(items.size());
  int64_t total = 0;
  for (const ArenaItem& item : items) {
    check(item.bytes >= 0, "an arena item of negative size");
    check(item.first_step <= item.last_step, "an arena item that ends before it starts");
    int64_t size = 0;
    if (__builtin_add_overflow(item.bytes, arena_alignment - 1, &size) ||
        __builtin_add_overflow(total, size, &total))
      throw UserError("the buffers of this shape need more memory than 64 bits can count");
    sizes.push_back(size / arena_alignment * arena_alignment);
  }
  return sizes;
}

// Each item with the ones it may share a place with, in both directions.
std::vector<std::vector<int>> sharing_partners(std::span<const ArenaItem> items) {
  std::vector<std::vector<int>> partners(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    for (const int other : items[i].may_overwrite) {
      const size_t j = static_cast<size_t>(other);
      check(other >= 0 && j < items.size() && j != i, "an arena item may overwrite one that does not exist");
      if (items[i].first_step != items[j].last_step) continue;
      // A pair that starts and ends at the same step has no direction: both are made there.
      if (items[j].first_step == items[i].first_step) continue;
      partners[i].push_back(other);
      partners[j].push_back(static_cast<int>(i));
    }
  }
  return partners;
}

// The most bytes alive at one step, where an item counts once with one that it may take the place of.
int64_t most_alive(const Problem& problem) {
  struct Event {
    int step;
    bool end;  // after the step
    int64_t bytes;
  };
  std::vector<Event> events;
  std::vector<std::pair<int, int64_t>> savings;
  for (size_t i = 0; i < problem.items.size(); ++i) {
    const ArenaItem& item = problem.items[i];
    events.push_back({item.first_step, false, problem.sizes[i]});
    events.push_back({item.last_step, true, -problem.sizes[i]});
    int64_t saved = 0;
    for (const int j : problem.partners[i])
      if (problem.items[static_cast<size_t>(j)].last_step == item.first_step)
        saved = std::max(saved, std::min(problem.sizes[i], problem.sizes[static_cast<size_t>(j)]));
    if (saved > 0) savings.emplace_back(item.first_step, saved);
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::pair(a.step, a.end) < std::pair(b.step, b.end);
  });
  std::sort(savings.begin(), savings.end());
  int64_t alive = 0;
  int64_t most = 0;
  size_t saving = 0;
  for (size_t e = 0; e < events.size();) {
    const int step = events[e].step;
    for (; e < events.size() && events[e].step == step && !events[e].end; ++e) alive += events[e].bytes;
    int64_t shared = 0;
    for (; saving < savings.size() && savings[saving].first <= step; ++saving)
      if (savings[saving].first == step) shared += savings[saving].second;
    most = std::max(most, alive - shared);
    for (; e < events.size() && events[e].step == step; ++e) alive += events[e].bytes;
  }
  return most;
}

// Pairs of items that are alive together.
int64_t count_pairs(std::span<const ArenaItem> items) {
  std::vector<int> firsts, lasts;
  for (const ArenaItem& item : items) {
    firsts.push_back(item.first_step);
    lasts.push_back(item.last_step);
  }
  std::sort(firsts.begin(), firsts.end());
  std::sort(lasts.begin(), lasts.end());
  int64_t pairs = 0;
  size_t ended = 0;
  for (size_t started = 0; started < firsts.size(); ++started) {
    while (ended < lasts.size() && lasts[ended] < firsts[started]) ++ended;
    pairs += static_cast<int64_t>(started) - static_cast<int64_t>(std::min(ended, started));
  }
  return pairs;
}

int64_t bytes_of(const Problem& problem, const std::vector<int64_t>& offsets) {
  int64_t bytes = 0;
  for (size_t i = 0; i < offsets.size(); ++i) bytes = std::max(bytes, offsets[i] + problem.sizes[i]);
  return bytes;
}

// About 0.1 s of work; networks of thousands of steps stay far below it.
constexpr int64_t most_pairs = 2'000'000;

}  // namespace

ArenaPlan plan_arena(std::span<const ArenaItem> items) {
  Problem problem{items, rounded_sizes(items), sharing_partners(items)};
  ArenaPlan plan;
  plan.lower_bound = most_alive(problem);
  plan.offsets = place_by_time(problem);
  plan.bytes = bytes_of(problem, plan.offsets);
  if (plan.bytes == plan.lower_bound || count_pairs(items) > most_pairs) return plan;
  std::vector<int64_t> offsets = place_by_size(problem);
  const int64_t bytes = bytes_of(problem, offsets);
  if (bytes < plan.bytes) {
    plan.offsets = std::move(offsets);
    plan.bytes = bytes;
  }
  return plan;
}

}  // namespace fusewise
