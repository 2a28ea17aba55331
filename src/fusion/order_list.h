// A list of numbers whose order can be asked for in constant time while it changes: every member has a label, and where
// two neighbours leave no label between them, the members around are labelled anew. As many of them as it takes until
// labels are sparse enough, so that an insertion costs a logarithm of steps on average, wherever it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusewise::fusion {

class OrderList {
 public:
  // 0, 1, ..., count - 1.
  explicit OrderList(int count);

  bool before(int a, int b) const { return label(a) < label(b); }
  // The number that follows the largest one so far takes the place of a member.
  void replace(int member);
  void remove(int member);
  // A number that was a member once comes back.
  void insert_behind(int place, int number);
  void insert_before(int place, int number);
  std::vector<int> members() const;

 private:
  // Entry 0 stands before all members; number i is entry i + 1.
  std::vector<uint64_t> labels_;
  std::vector<int> next_, previous_;

  uint64_t label(int number) const { return labels_[static_cast<size_t>(number) + 1]; }
  int& next(int entry) { return next_[static_cast<size_t>(entry)]; }
  int& previous(int entry) { return previous_[static_cast<size_t>(entry)]; }
  uint64_t& label_at(int entry) { return labels_[static_cast<size_t>(entry)]; }
  void link(int entry, int behind);
  void make_room(int entry);
};

}  // namespace fusewise::fusion
