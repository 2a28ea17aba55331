#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "memory/arena_internal.h"

namespace fusewise::memory_internal {
namespace {

class FreeList {
 public:
  int64_t take(int64_t bytes) {
    const auto found = by_size_.lower_bound({bytes, 0});
    if (found != by_size_.end()) {
      const auto [size, offset] = *found;
      erase(offset, size);
      if (size > bytes) insert(offset + bytes, size - bytes);
      return offset;
    }
    int64_t offset = top_;
    if (!by_offset_.empty()) {
      const auto [last, size] = *std::prev(by_offset_.end());
      if (last + size == top_) {  // the free piece at the top grows
        erase(last, size);
        offset = last;
      }
    }
    top_ = offset + bytes;
    return offset;
  }

  void give(int64_t offset, int64_t bytes) {
    if (bytes == 0) return;
    const auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto [before, size] = *std::prev(after);
      if (before + size == offset) {
        offset = before;
        bytes += size;
        erase(before, size);
      }
    }
    const auto next = by_offset_.find(offset + bytes);
    if (next != by_offset_.end()) {
      const auto [begin, size] = *next;
      bytes += size;
      erase(begin, size);
    }
    insert(offset, bytes);
  }

 private:
  void insert(int64_t offset, int64_t size) {
    by_size_.emplace(size, offset);
    by_offset_.emplace(offset, size);
  }
  void erase(int64_t offset, int64_t size) {
    by_size_.erase({size, offset});
    by_offset_.erase(offset);
  }

  std::set<std::pair<int64_t, int64_t>> by_size_;
  std::map<int64_t, int64_t> by_offset_;
  int64_t top_ = 0;
};

}  // namespace

std::vector<int64_t> place_by_time(const Problem& problem) {
  const size_t count = problem.items.size();
  std::vector<size_t> starts(count);
  std::iota(starts.begin(), starts.end(), size_t{0});
  std::vector<size_t> ends = starts;
  const auto item = [&](size_t index) -> const ArenaItem& { return problem.items[index]; };
  std::stable_sort(starts.begin(), starts.end(), [&](size_t a, size_t b) {
    return std::pair(item(a).first_step, -problem.sizes[a]) <
           std::pair(item(b).first_step, -problem.sizes[b]);
  });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](size_t a, size_t b) { return item(a).last_step < item(b).last_step; });

  FreeList free;
  std::vector<int64_t> offsets(count, 0);
  std::vector<int64_t> taken_over(count, 0);  // how much of an item's place a successor has
  size_t ended = 0;
  for (const size_t index : starts) {
    for (; ended < count && item(ends[ended]).last_step < item(index).first_step; ++ended) {
      const size_t gone = ends[ended];
      free.give(offsets[gone] + taken_over[gone], problem.sizes[gone] - taken_over[gone]);
    }
    if (problem.sizes[index] == 0) continue;
    const std::vector<int>& partners = problem.partners[index];
    const auto donor = std::find_if(partners.begin(), partners.end(), [&](int partner) {
      const size_t other = static_cast<size_t>(partner);
      return item(other).last_step == item(index).first_step && taken_over[other] == 0 &&
             problem.sizes[other] >= problem.sizes[index];
    });
    if (donor == partners.end()) {
      offsets[index] = free.take(problem.sizes[index]);
    } else {
      offsets[index] = offsets[static_cast<size_t>(*donor)];
      taken_over[static_cast<size_t>(*donor)] = problem.sizes[index];
    }
  }
  return offsets;
}

}  // namespace fusewise::memory_internal
