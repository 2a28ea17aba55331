#include "fusion/order_list.h"

#include <cmath>

namespace fusewise::fusion {

namespace {

constexpr int label_bits = 62;
constexpr uint64_t end_label = uint64_t{1} << label_bits;
// A range of labels of 2^i holds up to (2 / growth)^i members before it is given up for a larger one.
constexpr double growth = 1.4;
constexpr uint64_t least_distance = 4;

}  // namespace

OrderList::OrderList(int count)
    : labels_(static_cast<size_t>(count) + 1),
      next_(static_cast<size_t>(count) + 1),
      previous_(static_cast<size_t>(count) + 1) {
  const uint64_t distance = end_label / (static_cast<uint64_t>(count) + 1);
  for (int e = 0; e <= count; ++e) {
    label_at(e) = distance * static_cast<uint64_t>(e);
    next(e) = e == count ? 0 : e + 1;
    previous(e) = e == 0 ? count : e - 1;
  }
}

void OrderList::replace(int member) {
  const int old = member + 1, fresh = static_cast<int>(labels_.size());
  labels_.push_back(label_at(old));
  next_.push_back(next(old));
  previous_.push_back(previous(old));
  next(previous(fresh)) = fresh;
  previous(next(fresh)) = fresh;
}

void OrderList::remove(int member) {
  const int entry = member + 1;
  next(previous(entry)) = next(entry);
  previous(next(entry)) = previous(entry);
}

void OrderList::insert_behind(int place, int number) { link(number + 1, place + 1); }

void OrderList::insert_before(int place, int number) { link(number + 1, previous(place + 1)); }

void OrderList::link(int entry, int behind) {
  const auto end = [&] { return next(behind) == 0 ? end_label : label_at(next(behind)); };
  if (end() - label_at(behind) < 2) make_room(behind);
  label_at(entry) = label_at(behind) + (end() - label_at(behind)) / 2;
  next(entry) = next(behind);
  previous(entry) = behind;
  next(behind) = entry;
  previous(next(entry)) = entry;
}

void OrderList::make_room(int entry) {
  int first = entry, last = entry;
  uint64_t count = 1;
  for (int bits = 1; bits <= label_bits; ++bits) {
    const uint64_t size = uint64_t{1} << bits, low = label_at(entry) & ~(size - 1), high = low + size;
    while (first != 0 && label_at(previous(first)) >= low) {
      first = previous(first);
      ++count;
    }
    while (next(last) != 0 && label_at(next(last)) < high) {
      last = next(last);
      ++count;
    }
    const bool sparse = static_cast<double>(count) <= std::pow(2 / growth, bits);
    if (bits < label_bits && (!sparse || size / count < least_distance)) continue;
    // The entry before all members keeps label 0: it is the first of any range that it is in.
    uint64_t at = low;
    for (int e = first;; e = next(e)) {
      label_at(e) = at;
      at += size / count;
      if (e == last) return;
    }
  }
}

std::vector<int> OrderList::members() const {
  std::vector<int> result;
  for (int e = next_[0]; e != 0; e = next_[static_cast<size_t>(e)]) result.push_back(e - 1);
  return result;
}

}  // namespace fusewise::fusion
