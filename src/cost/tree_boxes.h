// The geometry of a loop tree at the usual sizes: boxes, trips, how often each stage runs. Shared by the parts of
// the tier 1 price.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "cost/closed_form.h"
#include "schedule/footprint.h"
#include "schedule/tree.h"

namespace fusewise::cost {

using graph::NodeId;
using graph::Value;
using schedule::Extents;

class TreeBoxes {
 public:
  TreeBoxes(const schedule::RegionForms& region_forms, const schedule::Tree& loop_tree,
            const SymbolValues& usual_values);

  const schedule::RegionForms& forms;
  const schedule::Tree& tree;
  const SymbolValues& usual;

  const schedule::Stage& stage(int s) const { return tree.stages[static_cast<size_t>(s)]; }
  int stages() const { return static_cast<int>(tree.stages.size()); }
  int loops(int s) const { return static_cast<int>(stage(s).loops.size()); }
  // The extents of stage `s`'s box inside its first `l` loops.
  const Extents& box(int s, int l) const { return boxes_[static_cast<size_t>(s)][static_cast<size_t>(l)]; }
  const Extents& tile(int s) const { return boxes_[static_cast<size_t>(s)].back(); }
  // Iterations of loop `l` counted in full tiles: extent / tile, not rounded up.
  double trips(int s, int l) const { return trips_[static_cast<size_t>(s)][static_cast<size_t>(l)]; }
  // How often the stage's nest is entered.
  double executions(int s) const { return executions_[static_cast<size_t>(s)]; }
  double body_executions(int s) const;
  // The boxes of all that stage `s`'s subtree computes, for one iteration of its first `l` loops.
  const std::map<NodeId, Extents>& needed(int s, int l) const;
  // Per member of the subtree and dimension, the axes of stage `s` that it moves with.
  const std::map<NodeId, std::vector<uint64_t>>& dependences(int s) const {
    return depends_[static_cast<size_t>(s)];
  }
  // Reductions that run over blocks within the first `l` loops of stage `s`, at the extents that are left there.
  schedule::ReducedBlocks reduced_blocks(int s, int l) const;
  // True if the node, in stage `s`, is computed inside a loop over blocks in which it only passes an operand on.
  bool passes_on(int s, NodeId node) const;
  // True if the stage combines the parts of a split reduction and reads none of its operands.
  bool combines_parts(int s) const;
  int phase(int s) const;
  // Nodes that the stage's subtree computes, descending.
  const std::vector<NodeId>& computed(int s) const { return computed_[static_cast<size_t>(s)]; }
  // Does the place of this read of `node` move with axis `axis` of stage `s`?
  bool read_moves(int s, NodeId node, const graph::Read& read, int axis) const;
  double extent(NodeId node, int axis) const;
  // Elements that one run of the stage's nest reduces for each element of its result.
  double reduction_points(int s) const;
  double whole_reduction_points(NodeId node) const;
  double whole_elements(Value value) const;
  // Elements of `read` that a box of its reader touches, per dimension.
  Extents image(NodeId node, const graph::Read& read, const Extents& box,
                const schedule::ReducedBlocks& blocks = {}) const;
  // Where a read finds its operand in memory, in elements from the operand's first one, if that is linear in the axes
  // of `node`: divisions by which a reshape splits or merges dimensions may undo each other. Null otherwise, and where
  // the operand does not lie in memory.
  const graph::LinearIndex* address_of(NodeId node, const graph::Read& read) const;
  // The extent of an axis of `node` for a box of it.
  int64_t axis_extent(NodeId node, int axis, const Extents& box, const schedule::ReducedBlocks& blocks) const;

 private:
  void place(int s);

  std::vector<std::vector<Extents>> boxes_;
  std::vector<std::vector<double>> trips_;
  std::vector<std::vector<int64_t>> reduced_;  // per loop: what is left of the block axis
  std::vector<double> executions_;
  std::vector<std::vector<NodeId>> computed_;
  std::vector<std::map<NodeId, std::vector<uint64_t>>> depends_;
  mutable std::map<std::pair<int, int>, std::map<NodeId, Extents>> needed_;
  mutable std::map<const graph::Read*, std::optional<graph::LinearIndex>> addresses_;
};

double volume(const Extents& extents);
bool divides(const graph::Read& read);  // some dimension's index is found by divisions

// How the address of what a stage reads changes from one lane to the next: by 0, 1, -1, another number that is the same
// for all, or in no such way.
enum class Access : uint8_t { uniform, contiguous, reversed, scattered, irregular };

// Per inlined node of stage `s` and the stage's own node: the steps of its axes when the lane advances by one;
// NaN where there is no fixed step.
std::map<NodeId, std::vector<double>> lane_steps(const TreeBoxes& boxes, int s, int lanes);
Access access_of(const TreeBoxes& boxes, int s, NodeId node, const graph::Read& read,
                 const std::map<NodeId, std::vector<double>>& steps, int lanes);

// Elements of memory from one lane to the next; NaN where that is not known.
double memory_step(const TreeBoxes& boxes, NodeId node, const graph::Read& read,
                   const std::map<NodeId, std::vector<double>>& steps);

// The parts of the price, each adding what one phase takes to the estimate.
void add_work(const TreeBoxes& boxes, int phase, const machine::Machine& machine, Estimate& estimate);
void add_traffic(const TreeBoxes& boxes, int phase, const machine::Machine& machine,
                 const CostOptions& options, Estimate& estimate);

}  // namespace fusewise::cost
