// The passes from the kernels that the schedule writes to those that a back end can emit, in order.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"

namespace fusewise::kernel {

struct PassOptions {
  int vector_bits = 256;                        // of the target; 0: leave vector loops as serial loops
  int unroll_factor = 4;                        // of innermost reduction loops; 1: none
  int64_t most_unrolled = INT64_MAX;            // expressions; a longer sequence of copies stays a loop
  std::set<std::string, std::less<>> disabled;  // names of passes to skip
  // Called after each pass that ran.
  std::function<void(std::string_view pass, const Kernel& kernel)> dump;
};

struct Pass {
  std::string_view name;
  std::string_view reason;
  Kernel (*run)(Kernel kernel, const PassOptions& options);
};

const std::vector<Pass>& passes();

// Runs them all; UserError names an unknown pass in `disabled`.
Kernel run_passes(Kernel kernel, const PassOptions& options);

}  // namespace fusewise::kernel
