// How long a tree's kernel will be, before it is lowered: tails repeat what is inside, register tiles are unrolled, and
// members that are computed where they are used appear once per place. Counted in expressions, roughly; the count
// stops a little above `most_code`.
#pragma once

#include "schedule/tree.h"

namespace fusewise::schedule {

// Compile time grows with it, and a longer kernel does not stay in the instruction cache anyway.
inline constexpr double most_code = 25000;

double code_size(const RegionForms& forms, const Tree& tree);

}  // namespace fusewise::schedule
