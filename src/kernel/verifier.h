// Checks that a kernel keeps the rules of Kernel IR; run after lowering and after every pass.
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

enum class Stage : uint8_t {
  lowered,  // passes have not unrolled and vectorised yet: such loops may have any extent
  final,    // ready for code: unrolled and vector loops that are left have constant extents
};

// Throws InternalError with the rule that is broken and the text of the statement.
void verify(const Kernel& kernel, Stage stage = Stage::lowered);

}  // namespace fusewise::kernel
