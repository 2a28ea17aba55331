#include <algorithm>

#include "hostops/implementation.h"

namespace fusewise::hostops {

namespace {

template <class T>
struct Order {
  const T* row;
  bool largest;
  bool operator()(int64_t a, int64_t b) const {
    if (largest ? less(row[b], row[a]) : less(row[a], row[b])) return true;
    if (largest ? less(row[a], row[b]) : less(row[b], row[a])) return false;
    return a < b;
  }
};

template <class T>
void select(const Call& call) {
  const Operand& operand = call.operands[0];
  const int64_t n = operand.shape.back(), k = call.parameters[0];
  const bool largest = call.parameters[1] != 0, sorted = call.parameters[2] != 0;
  const int64_t rows = count_of(operand.shape.first(operand.shape.size() - 1));
  call.receiver.bind({});
  T* values = result<T>(call, 0);
  int64_t* indices = result<int64_t>(call, 1);
  if (k == 0) return;
  const std::span<int64_t> order = call.scratch.take<int64_t>(n);
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = elements<T>(operand) + r * n;
    for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
    const Order<T> first{row, largest};
    if (k < n) std::nth_element(order.begin(), order.begin() + (k - 1), order.end(), first);
    if (sorted)
      std::sort(order.begin(), order.begin() + k, first);
    else
      std::sort(order.begin(), order.begin() + k);
    for (int64_t i = 0; i < k; ++i) {
      indices[r * k + i] = order[static_cast<size_t>(i)];
      values[r * k + i] = row[order[static_cast<size_t>(i)]];
    }
  }
}

}  // namespace

void top_k(const Call& call) {
  const Operand& operand = call.operands[0];
  check(call.parameters.size() == 3 && !operand.shape.empty() && call.parameters[0] >= 0 &&
            call.parameters[0] <= operand.shape.back(),
        "top_k of more elements than there are");
  with_type(operand.type, [&](auto zero) { select<decltype(zero)>(call); });
}

}  // namespace fusewise::hostops
