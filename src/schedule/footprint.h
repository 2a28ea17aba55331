// Numbers about a region for those who choose: how large each member's box is when the root's tile has a given size.
// Extents only, at stated values of the symbols; the exact boxes are lowering's.
#pragma once

#include <map>
#include <vector>

#include "schedule/region_forms.h"

namespace fusewise::schedule {

using Extents = std::vector<int64_t>;

// The value of a dimension when symbols have their usual values: those given, else 1 for a name that says batch,
// else 128; at least 1.
int64_t usual_value(const Dim& dim, const SymbolValues& values);
// The same of an index's constant or coefficient, which may be negative or zero, unlike an extent.
int64_t usual_offset(const Dim& dim, const SymbolValues& values);

// Reductions that run over blocks of one of their axes, and the extent of a block.
struct ReducedBlock {
  int axis = -1;
  int64_t extent = 1;
};
using ReducedBlocks = std::map<NodeId, ReducedBlock>;

// Per node of `cone` (descending ids, the first is the root), the extents of the box that computing a box of
// `root_tile` at the root needs; whole dimensions where a reader needs them whole.
std::map<NodeId, Extents> needed_extents(const RegionForms& forms, const std::vector<NodeId>& cone,
                                         const Extents& root_tile, const SymbolValues& values,
                                         const ReducedBlocks& blocks = {});

// Per node of `cone` and per dimension, the root's axes on which the position of its box depends, as a bit set. A
// reduction in `blocks` moves with the root's axis of the same number as its block axis has at the root.
std::map<NodeId, std::vector<uint64_t>> root_dependences(const RegionForms& forms,
                                                         const std::vector<NodeId>& cone,
                                                         const ReducedBlocks& blocks = {});

}  // namespace fusewise::schedule
