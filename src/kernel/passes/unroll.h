// unroll: copies the bodies of loops of kind `unrolled` and of loops that run once, with the loop's variable replaced by
// its value. First of the passes: register tiles get constant indices by it, which everything later builds on. A loop
// whose copies would have more than `most_expressions` stays a loop.
//
// unroll_serial: runs up to `factor` iterations of an innermost serial loop that reduces (it stores to registers or assigns a
// variable) per trip, with a second loop for what remains. It amortises the loop's overhead, and lets loads of later
// iterations start early. After vectorize, before the passes that name shared values.
#pragma once

#include <cstdint>

#include "kernel/kernel.h"

namespace fusewise::kernel {

Kernel unroll(Kernel kernel, int64_t most_expressions = INT64_MAX);
Kernel unroll_serial(Kernel kernel, int factor = 4);

}  // namespace fusewise::kernel
