#include <algorithm>
#include <array>

#include "hostops/implementation.h"

namespace fusewise::hostops {

namespace {

template <class T>
struct Rows {
  const T* from;
  int64_t length;
  // Below, above or at 0, as memcmp.
  int compare(int64_t a, int64_t b) const {
    for (int64_t i = 0; i < length; ++i) {
      const T x = from[a * length + i], y = from[b * length + i];
      if (less(x, y)) return -1;
      if (less(y, x)) return 1;
    }
    return 0;
  }
};

template <class T>
void find(const Call& call) {
  const Operand& operand = call.operands[0];
  const int64_t n = operand.shape[0];
  const Rows<T> rows{elements<T>(operand), count_of(operand.shape.subspan(1))};
  // Equal rows become neighbours, each group in the order of its members.
  const std::span<int64_t> order = call.scratch.take<int64_t>(n), group = call.scratch.take<int64_t>(n),
                           first = call.scratch.take<int64_t>(n), number = call.scratch.take<int64_t>(n);
  const auto at = [](std::span<int64_t> list, int64_t i) -> int64_t& { return list[static_cast<size_t>(i)]; };
  for (int64_t i = 0; i < n; ++i) at(order, i) = i;
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int compared = rows.compare(a, b);
    return compared != 0 ? compared < 0 : a < b;
  });
  int64_t groups = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || rows.compare(at(order, i - 1), at(order, i)) != 0) at(first, groups++) = at(order, i);
    at(group, at(order, i)) = groups - 1;
  }
  // The number under which each group is delivered.
  if (call.parameters[0] != 0) {
    for (int64_t g = 0; g < groups; ++g) at(number, g) = g;
  } else {
    int64_t next = 0;
    for (int64_t i = 0; i < n; ++i)
      if (at(first, at(group, i)) == i) at(number, at(group, i)) = next++;
  }
  call.receiver.bind(std::array{groups});
  int64_t* firsts = result<int64_t>(call, 0);
  int64_t* inverse = result<int64_t>(call, 1);
  int64_t* counts = result<int64_t>(call, 2);
  std::fill_n(counts, groups, 0);
  for (int64_t g = 0; g < groups; ++g) firsts[at(number, g)] = at(first, g);
  for (int64_t i = 0; i < n; ++i) {
    inverse[i] = at(number, at(group, i));
    ++counts[inverse[i]];
  }
}

}  // namespace

void unique(const Call& call) {
  check(call.parameters.size() == 1 && !call.operands[0].shape.empty(), "unique of a tensor without rows");
  with_type(call.operands[0].type, [&](auto zero) { find<decltype(zero)>(call); });
}

}  // namespace fusewise::hostops
