// The loop tree: a schedule checked against its region and completed with everything that follows from it. Cost
// and lowering read the tree, never the schedule.
#pragma once

#include <vector>

#include "base/verdict.h"
#include "schedule/cascade.h"
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
  int chain = -1;  // into Tree::chains, of a stage that carries, runs or finishes a state
};

// A reduction over blocks of its axis, with the earlier ones that are carried along: a running state.
struct Chain {
  Cascade cascade;
  std::vector<int> stages;  // per member: where its result goes; the last is the stage that finishes
  int runner = -1;          // the stage with the loop over blocks
  int finisher = -1;        // the same, or the stage that combines the parts
  int depth = 0;            // of the loop over blocks among the runner's loops
  int part_loop = -1;       // split: the runner's grid loop over the parts
  bool split() const { return part_loop >= 0; }
};

struct Tree {
  std::vector<Stage> stages;  // as in the schedule
  std::vector<int> stage_of;  // per position in region.nodes: its stage, or -1 when inlined
  int phases = 1;
  int threads = 1;
  ReductionOrder order;
  Layouts layouts;  // of the region's border and members
  std::vector<Chain> chains;
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
// "phase", "slide", "threads", "code-size"; for running states "order" (the order of reductions is fixed), "carry" (a
// stage in the wrong place), and those of derive_cascade.
TreeResult build_tree(const RegionForms& forms, const Schedule& schedule, const Layouts& layouts);

// The part of build_tree that finds and checks the running states; stages have their inlined members and children.
Verdict find_chains(const RegionForms& forms, Tree& tree);

// The axis of `consumer`'s form that runs along dimension `dim` of the value at `read`, one to one and with the
// same extent; -1 if there is none.
int identity_axis(const graph::Form& consumer, const graph::Read& read, int dim, const Dim& extent);

// `order` lists nodes from consumers to producers. For each of them that the first one reaches, and for every member
// that they read: for each of its parallel axes the axis of the first node that it equals on every path, -1 if none.
std::map<NodeId, std::vector<int>> equal_axes(const RegionForms& forms, const std::vector<NodeId>& order);

}  // namespace fusewise::schedule
