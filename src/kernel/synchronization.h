// Whether barriers stand where the threads of a block need them, told from the text of the kernel alone.
//
// Between two barriers a thread must not read what another one stores, in memory that they share or in an argument. Two
// accesses count as one thread's own if they have the same index, made of the same values, that is another one for each
// thread (a multiple of its number, and what is the same for all). That two stores do not meet is for the interpreter to
// see. Any other pair of a store and a load of one buffer, in either order, with a way from one to the other on which no barrier stands,
// is refused, loops around both included. (That all threads reach a barrier is the verifier's rule.)
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

// Of a valid kernel (verifier.h) whose loops over threads are not nested; run on every kernel for a GPU. Throws
// InternalError with the text of the second statement.
void verify_synchronization(const Kernel& kernel);

}  // namespace fusewise::kernel
