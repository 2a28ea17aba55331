// Sizes and extents that a kernel states as expressions, as dimensions.
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

// An int64 expression over constants and parameters, with the kernel's parameters as symbols; InternalError for
// anything else.
Dim size_of(const Kernel& kernel, ExprId id);

// Bytes of memory that the threads of a group share, of the phase that has most; nothing where a size is no constant.
std::optional<int64_t> shared_bytes(const Kernel& kernel);

}  // namespace fusewise::kernel
