// Which file, and where in it, holds the bytes of a constant: a program in the cache then refers to the model's own
// files instead of keeping a second copy of its weights.
#pragma once

#include "program/program.h"

namespace fusewise::session {

// For every constant of some size whose bytes lie in a mapped file that is still what its name stands for.
void refer_to_mapped_files(program::Program& program);

}  // namespace fusewise::session
