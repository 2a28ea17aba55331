#include <fmt/format.h>

#include <algorithm>

#include "hostops/implementation.h"

namespace fusewise::hostops {

void read_sizes(const Call& call) {
  const Operand& operand = call.operands[0];
  const int64_t count = count_of(operand.shape);
  const std::span<int64_t> sizes = call.scratch.take<int64_t>(count);
  const int bytes = bytes_of(operand.type);
  for (int64_t i = 0; i < count; ++i) {
    sizes[static_cast<size_t>(i)] = load_scalar(operand.data + i * bytes, operand.type).i;
    if (sizes[static_cast<size_t>(i)] < 0)
      throw UserError(fmt::format("a size that the run computes is {}", sizes[static_cast<size_t>(i)]));
  }
  call.receiver.bind(sizes);
  std::copy(sizes.begin(), sizes.end(), result<int64_t>(call, 0));
}

}  // namespace fusewise::hostops
