// Tier 1 of the price: reads a loop tree. Boxes, trip counts, refetches, access patterns, register tiles, tails and
// recomputation all follow from it; nothing here knows an operation by name.
#pragma once

#include "cost/closed_form.h"
#include "schedule/tree.h"

namespace fusewise::cost {

Estimate price_tree(const schedule::RegionForms& forms, const schedule::Tree& tree,
                    const machine::Machine& machine, const CostOptions& options);

}  // namespace fusewise::cost
