// join_rows: where the innermost loop holds more row pointers than a processor has registers for, three rows that lie
// the same distance apart share one: p[k], p[k + d], p[k + 2 d] are one x86 address each, with d in a register, once
// `p at k` is a pointer of the loop's body. A tile of 14 rows needs 5 pointers then, not 14. After hoist_addresses,
// which made the pointers.
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

Kernel join_rows(Kernel kernel, int most_pointers = 10);

}  // namespace fusewise::kernel
