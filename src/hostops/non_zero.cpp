#include <array>

#include "hostops/implementation.h"

namespace fusewise::hostops {

namespace {

template <class T>
bool is_zero(T value) {
  return comparable(value) == 0;
}

template <class T>
void find(const Call& call, const Operand& operand) {
  const int64_t count = count_of(operand.shape);
  const T* from = elements<T>(operand);
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) found += is_zero(from[i]) ? 0 : 1;
  call.receiver.bind(std::array{found});
  int64_t* to = result<int64_t>(call, 0);
  const size_t rank = operand.shape.size();
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (is_zero(from[i])) continue;
    int64_t rest = i;
    for (size_t d = rank; d-- > 0;) {
      to[static_cast<int64_t>(d) * found + at] = rest % operand.shape[d];
      rest /= operand.shape[d];
    }
    ++at;
  }
}

}  // namespace

void non_zero(const Call& call) {
  with_type(call.operands[0].type, [&](auto zero) { find<decltype(zero)>(call, call.operands[0]); });
}

}  // namespace fusewise::hostops
