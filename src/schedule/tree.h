// The loop tree: a schedule checked against its region and completed with everything that follows from it. Cost
// and lowering read the tree, never the schedule.
#pragma once

#include <vector>

#include "base/verdict.h"
#include "schedule/region_forms.h"
#include "schedule/schedule.h"

namespace fusewise::schedule {

struct Stage : StageChoice {
  // Computed by the threads of a group together (roots of a schedule with threads, and what is attached outside of
  // thread loops); its scratch is shared.
  bool cooperative = false;
  // The position of the loop over a reduction axis, -1 if there is none.
  int reduction_loop = -1;
  // The loops in front of the threads'.
  int group_loops() const { return static_cast<int>(loops.size()) - thread_loops; }
  // Members computed in this stage's innermost body beside `node`, ascending.
  std::vector<NodeId> inlined;
  // Stages attached to this one, producers before consumers.
  std::vector<int> children;
  // All that this stage's subtree computes (its node, inlined ones, the same of its children), descending: the
  // order in which boxes propagate from consumers to producers.
  std::vector<NodeId> cone;
};

struct Tree {
  std::vector<Stage> stages;  // as in the schedule
  std::vector<int> stage_of;  // per position in region.nodes: its stage, or -1 when inlined
  int phases = 1;
  int threads = 1;
  ReductionOrder order;
  Layouts layouts;  // of the region's border and members
  // Values that live in memory although no reader outside the region needs them (read across phases), ascending.
  std::vector<Value> temporaries;
  int stage_index(const RegionForms& forms, NodeId node) const;
};

struct TreeResult {
  Verdict verdict = Verdict::allow();
  Tree tree;
};

// Refuses, with the reason, a schedule that would compute a wrong result or that no loop nest can carry out: reason
// codes "malformed" (not even a schedule of this region), "missing-stage", "not-visible", "not-owned", "registers",
// "phase", "slide", "threads", "code-size".
TreeResult build_tree(const RegionForms& forms, const Schedule& schedule, const Layouts& layouts);

// The axis of `consumer`'s form that runs along dimension `dim` of the value at `read`, one to one and with the
// same extent; -1 if there is none.
int identity_axis(const graph::Form& consumer, const graph::Read& read, int dim, const Dim& extent);

// `order` lists nodes from consumers to producers. For each of them that the first one reaches, and for every member
// that they read: for each of its parallel axes the axis of the first node that it equals on every path, -1 if none.
std::map<NodeId, std::vector<int>> equal_axes(const RegionForms& forms, const std::vector<NodeId>& order);

}  // namespace fusewise::schedule
