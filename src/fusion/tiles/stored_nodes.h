// Which members of a tree get storage of their own, by rules on reuse: the rest is computed where it is used.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "schedule/region_forms.h"
#include "schedule/schedule.h"

namespace fusewise::fusion {

struct StoredNodes {
  std::set<graph::NodeId> stages;                         // the root included
  std::map<graph::NodeId, graph::NodeId> register_owner;  // accumulators held in the body of that stage
  std::map<graph::NodeId, std::vector<int>> host_axes;    // of those: the owner's axis for each of their axes
  std::map<graph::NodeId, std::set<graph::NodeId>> readers;  // per stage: the stages that read it
  std::map<graph::NodeId, int> wanted_axis;  // per stage: the dimension its reader's vectors run along
  bool contracts = false;                    // some stage is or holds a contraction
};

// `cone` lists the tree's members, descending, the root first.
StoredNodes stored_nodes(const schedule::RegionForms& forms, const schedule::Layouts& layouts,
                         const std::vector<graph::NodeId>& cone, const SymbolValues& usual);

// The axes of a contraction or window that its register tile spans: columns run along the vectors of the operand
// `vector_operand` (a read), rows share that operand. Depthwise: every operand moves with the columns.
struct RowColumn {
  int row = -1, column = -1;
  int vector_operand = -1;
  bool depthwise = false;
  // So many neighbouring columns share what another operand is read at (the channels of a group); 0: all of them.
  int64_t span = 0;
};
RowColumn row_and_column(const schedule::RegionForms& forms, const schedule::Layouts& layouts,
                         graph::NodeId node, const SymbolValues& usual);

// The axis of `node`'s form along which this read moves by one element in memory, -1 if none; for a node: of the
// read with the highest rank.
int contiguous_axis(const schedule::RegionForms& forms, const schedule::Layouts& layouts, graph::NodeId node,
                    const graph::Read& read);
int contiguous_axis(const schedule::RegionForms& forms, const schedule::Layouts& layouts, graph::NodeId node);

// True if every dimension of `node` is an axis of the cone's root, unchanged and each another one, or is needed whole.
bool owned_axes(const schedule::RegionForms& forms, const std::vector<graph::NodeId>& cone,
                graph::NodeId node);

}  // namespace fusewise::fusion
