// promote_registers: allocations of scope `registers` whose every index is a constant become mutable variables, vectors
// where they are stored and loaded as vectors. The accumulators of a register tile live in registers only by this
// (measured: 95 against 30 GFLOP/s). After unroll and vectorize, which make the indices constant. An allocation with
// any other index stays memory.
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

Kernel promote_registers(Kernel kernel);

}  // namespace fusewise::kernel
