// hoist_invariants: what a loop computes anew though it stays the same (the reciprocal of a row's deviation, a scale of
// scales) is bound to a variable in front of the loop. Sums of indices stay (hoist_addresses), and so do bare loads
// and broadcasts, which cost nothing where they are. A load that goes along is masked by "the loop runs at all".
// After hoist_addresses; before share_loads, which binds what is left inside.
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

Kernel hoist_invariants(Kernel kernel);

}  // namespace fusewise::kernel
