// Checks that a kernel keeps the rules of Kernel IR; run after lowering and after every pass.
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

// Throws InternalError with the rule that is broken and the text of the statement.
void verify(const Kernel& kernel);

}  // namespace fusewise::kernel
