// share_loads: what a sequence of statements computes or loads more than once is bound to a variable at its first use,
// as long as no store, assignment or barrier between can change it. It makes the size of what back ends print linear
// (expressions share parts, text does not), and a register tile loads each operand once. Index sums of scalars stay as
// they are: they belong into the addresses. Last of the passes that change expressions.
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

Kernel share_loads(Kernel kernel);

}  // namespace fusewise::kernel
