// The pieces of a concat, a pad or a split in an elementwise stage: where lowering cuts a loop so that each part reads
// one of them.
#pragma once

#include <cstdint>
#include <set>

#include "schedule/tree.h"

namespace fusewise::schedule {

// The coordinates along `axis` of the stage's node at which a guard of a read of its body changes, in one place for
// all other axes; empty for stages that reduce. Too many to write the body out for each are none.
std::set<int64_t> piece_borders(const RegionForms& forms, const Stage& stage, int axis);

// Operations of one element of an elementwise stage, inlined members included; a function counts for the many that it
// is expanded to.
int64_t body_operations(const RegionForms& forms, const Stage& stage);

}  // namespace fusewise::schedule
