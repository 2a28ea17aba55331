// legalize_halves: arithmetic and comparisons on float16 and bfloat16 are done in float32, and results rounded back
// after each operation, as the strict meaning of the operations has it. Selects, loads, stores and casts stay, and so
// does fma, whose single rounding float32 cannot give. After expand_functions; before share_loads, which then shares
// the casts too.
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

Kernel legalize_halves(Kernel kernel);

}  // namespace fusewise::kernel
