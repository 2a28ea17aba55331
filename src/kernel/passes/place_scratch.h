// place_scratch: states how many bytes of private scratch one worker needs. The rule, which code generation follows
// when it gives each allocation its place: an allocation of scope scratch (or shared, where the threads of a block run
// one after the other) lies behind those alive when it comes into being, and its size is rounded up to 64 bytes; those
// of a finished block are gone. Last, so that it counts what is really there.
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

inline constexpr int64_t scratch_alignment = 64;

// Bytes over symbols named like the kernel's parameters.
Dim scratch_bytes(const Kernel& kernel);
Kernel place_scratch(Kernel kernel);

}  // namespace fusewise::kernel
