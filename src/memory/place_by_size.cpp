#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>

#include "memory/arena_internal.h"

namespace fusewise::memory_internal {
namespace {

// Which placed items are alive within a range of steps. Items stand in the order of their first steps; a tree
// over them keeps the latest last step below each node, so that a query visits only what it finds (and the
// paths there).
class PlacedItems {
 public:
  explicit PlacedItems(std::span<const ArenaItem> items)
      : items_(items), order_(items.size()), position_(items.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return item(a).first_step < item(b).first_step; });
    for (size_t i = 0; i < order_.size(); ++i) position_[static_cast<size_t>(order_[i])] = i;
    while (leaves_ < order_.size()) leaves_ *= 2;
    latest_.assign(2 * leaves_, never);
  }

  void add(int index) {
    size_t node = leaves_ + position_[static_cast<size_t>(index)];
    for (; node > 0; node /= 2) latest_[node] = std::max(latest_[node], item(index).last_step);
  }

  void find_alive(int first, int last, std::vector<int>& found) const {
    found.clear();
    const auto end = std::upper_bound(order_.begin(), order_.end(), last,
                                      [&](int step, int index) { return step < item(index).first_step; });
    visit(1, 0, leaves_, static_cast<size_t>(end - order_.begin()), first, found);
  }

 private:
  static constexpr int never = INT32_MIN;
  const ArenaItem& item(int index) const { return items_[static_cast<size_t>(index)]; }

  // The depth of the recursion is the logarithm of the number of items.
  void visit(size_t node, size_t begin, size_t size, size_t end, int first, std::vector<int>& found) const {
    if (begin >= end || latest_[node] < first || latest_[node] == never) return;
    if (size == 1) {
      found.push_back(order_[begin]);
      return;
    }
    visit(2 * node, begin, size / 2, end, first, found);
    visit(2 * node + 1, begin + size / 2, size / 2, end, first, found);
  }

  std::span<const ArenaItem> items_;
  std::vector<int> order_;
  std::vector<size_t> position_;
  size_t leaves_ = 1;
  std::vector<int> latest_;
};

class Placer {
 public:
  explicit Placer(const Problem& problem)
      : problem_(problem),
        placed_(problem.items),
        offsets_(problem.items.size(), 0),
        is_placed_(problem.items.size(), 0) {}

  std::vector<int64_t> run() {
    std::vector<int> order(problem_.items.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return size(a) > size(b); });
    for (const int index : order) {
      if (size(index) == 0) break;
      const ArenaItem& item = problem_.items[static_cast<size_t>(index)];
      placed_.find_alive(item.first_step, item.last_step, alive_);
      std::sort(alive_.begin(), alive_.end(), [&](int a, int b) { return offset(a) < offset(b); });
      const std::optional<int64_t> shared = shared_place(index);
      offsets_[static_cast<size_t>(index)] = shared ? *shared : smallest_gap(size(index));
      is_placed_[static_cast<size_t>(index)] = 1;
      placed_.add(index);
    }
    return std::move(offsets_);
  }

 private:
  int64_t size(int index) const { return problem_.sizes[static_cast<size_t>(index)]; }
  int64_t offset(int index) const { return offsets_[static_cast<size_t>(index)]; }

  std::optional<int64_t> shared_place(int index) const {
    const std::vector<int>& partners = problem_.partners[static_cast<size_t>(index)];
    for (const int partner : partners) {
      if (!is_placed_[static_cast<size_t>(partner)]) continue;
      const int64_t begin = offset(partner);
      const int64_t end = begin + size(index);
      const bool fits = std::all_of(alive_.begin(), alive_.end(), [&](int other) {
        if (offset(other) >= end || offset(other) + size(other) <= begin) return true;
        return offset(other) == begin && std::find(partners.begin(), partners.end(), other) != partners.end();
      });
      if (fits) return begin;
    }
    return std::nullopt;
  }

  int64_t smallest_gap(int64_t bytes) const {
    int64_t end = 0;
    std::optional<int64_t> best;
    int64_t best_size = 0;
    for (const int other : alive_) {
      const int64_t gap = offset(other) - end;
      if (gap >= bytes && (!best || gap < best_size)) {
        best = end;
        best_size = gap;
      }
      end = std::max(end, offset(other) + size(other));
    }
    return best ? *best : end;
  }

  const Problem& problem_;
  PlacedItems placed_;
  std::vector<int64_t> offsets_;
  std::vector<uint8_t> is_placed_;
  std::vector<int> alive_;
};

}  // namespace

std::vector<int64_t> place_by_size(const Problem& problem) { return Placer(problem).run(); }

}  // namespace fusewise::memory_internal
