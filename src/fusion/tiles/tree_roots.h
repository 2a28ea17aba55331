// The trees that a region becomes: their roots, the members that each computes, and the phases they run in.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "schedule/region_forms.h"

namespace fusewise::fusion {

// Root node -> phase. Outputs that can be stored from inside another output's tree are no roots; what every block of
// a tree would compute again in full is one. `separate`: nodes that must be roots.
std::map<graph::NodeId, int> tree_roots(const schedule::RegionForms& forms, const SymbolValues& usual,
                                        const std::set<graph::NodeId>& separate);

// The members that the tree of `root` computes: everything upstream up to the other roots. Descending.
std::vector<graph::NodeId> tree_cone(const schedule::RegionForms& forms, graph::NodeId root,
                                     const std::set<graph::NodeId>& others);

}  // namespace fusewise::fusion
