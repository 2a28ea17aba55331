// How much memory this process holds.
#pragma once

#include <cstdint>

namespace fusewise::cli {

struct MemoryUse {
  int64_t resident = 0, peak = 0;  // bytes
};
MemoryUse memory_use();

}  // namespace fusewise::cli
