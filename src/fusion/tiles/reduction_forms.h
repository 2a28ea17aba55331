// Other forms of a schedule's reductions than closing each in a pass of its own: one pass over blocks with a running
// state, and parts on several threads with a combining phase. They are proposals: build_tree refuses what is wrong,
// the price decides.
#pragma once

#include "fusion/tiles/choose_schedule.h"

namespace fusewise::fusion {

// Reductions that are the last of their chain and long enough to have another form, the latest first.
std::vector<graph::NodeId> chain_ends(const schedule::RegionForms& forms, const SymbolValues& usual);

// Other schedules, in which the chain that ends at `last` has another form; none of a `base` that build_tree refuses.
std::vector<schedule::Schedule> reduction_forms(const schedule::RegionForms& forms,
                                                const schedule::Layouts& layouts,
                                                const machine::Machine& machine, const TileOptions& options,
                                                const schedule::Schedule& base, graph::NodeId last);

}  // namespace fusewise::fusion
