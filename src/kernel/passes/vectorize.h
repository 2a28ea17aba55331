// vectorize: loops of kind `vector` become statements on vectors. The iterations of such a loop are independent, so each
// statement of the body is done for all of them before the next one: serial loops inside stay loops, around vectors.
// One iteration is a lane; `vector_bits` and the widest data of the body give the lanes of one vector, and a long loop
// takes several vectors per statement. An index that follows the loop's variable with a constant stride becomes a ramp,
// a condition on the variable a mask. What cannot be a vector (storage allocated inside, a result carried from one
// iteration to the next) runs as a serial loop: slow, never wrong.
// After unroll, so that rows of a register tile are separate statements; before the scalar functions are expanded, so
// that their definitions are built once, on vectors.
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

Kernel vectorize(Kernel kernel, int vector_bits);

}  // namespace fusewise::kernel
