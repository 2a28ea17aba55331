// The part of build_tree that is about threads: which stages a group computes together, and what they may look like.
#pragma once

#include "schedule/tree.h"

namespace fusewise::schedule {

// Marks the cooperative stages; refuses ("threads") what a group cannot carry out.
Verdict settle_threads(const RegionForms& forms, Tree& tree);

}  // namespace fusewise::schedule
