// Which input's memory an output of a kernel may take over while the kernel runs: where the element that a store
// overwrites has been read before, by the same store's own computation, and by nothing else.
#pragma once

#include <utility>
#include <vector>

#include "schedule/tree.h"

namespace fusewise::schedule {

// Pairs (output or temporary, input). Lifetimes are not looked at: the caller knows who else reads the input.
std::vector<std::pair<Value, Value>> overwritable(const RegionForms& forms, const Tree& tree);

}  // namespace fusewise::schedule
