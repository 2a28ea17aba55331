// expand_functions: scalar functions (exp, tanh, ...) become the basic operations of their one definition in numerics,
// in the order that the definition has, so that kernels, folding and interpreter agree bit for bit. Functions of the
// half types are evaluated in float32 and rounded. After vectorize (the definition is built on vectors), before all
// that shares or hoists: the definitions hold many common parts.
#pragma once

#include "kernel/kernel.h"

namespace fusewise::kernel {

Kernel expand_functions(Kernel kernel);

}  // namespace fusewise::kernel
