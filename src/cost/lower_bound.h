// What no plan of a graph can undercut, in the model's own prices.
#pragma once

#include <set>

#include "cost/closed_form.h"

namespace fusewise::cost {

// All arithmetic at peak, and each input, constant and output moved once, from the level of the caches in which prices
// find it. Counted is what the outputs need, walking the index maps backwards: of what readers slice the slice, of a
// table that is looked up nothing. Loops count as often as they run for certain, branches as the cheaper body. `grown`:
// outputs of which only what is new is written.
double lower_bound_microseconds(const GraphFacts& facts, const machine::Machine& machine,
                                const CostOptions& options, const std::set<graph::Value>& grown = {});

}  // namespace fusewise::cost
