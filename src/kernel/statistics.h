// Sizes of a kernel, for reports: how much text it is and what it holds. Counts are static: a loop body counts once.
#pragma once

#include <cstdint>

#include "kernel/kernel.h"

namespace fusewise::kernel {

struct Statistics {
  int64_t phases = 0;
  int64_t statements = 0;   // reachable, blocks not counted
  int64_t expressions = 0;  // reachable and distinct
  int64_t loops = 0;
  int64_t loads = 0;  // distinct load expressions
  int64_t stores = 0;
  int64_t barriers = 0;
  int64_t functions = 0;  // distinct scalar functions that remain to be expanded

  friend bool operator==(const Statistics&, const Statistics&) = default;
};

Statistics count(const Kernel& kernel);

}  // namespace fusewise::kernel
