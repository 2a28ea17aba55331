// What the cache must know of the code that made an entry: another build may compile the same model otherwise.
#pragma once

#include "base/hash.h"

namespace fusewise::session {

// Of the object that holds this code and of the compiler module beside it, by size and time.
Hash128 code_version();
// Of the processor: kernels for "native" use all that it has.
Hash128 processor_version();

}  // namespace fusewise::session
