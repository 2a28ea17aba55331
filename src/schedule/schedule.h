// A schedule: the serialisable choices by which a region becomes a loop tree. `build_tree` (tree.h) is its only
// reader.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "graph/graph.h"
#include "numerics/reduction_order.h"
#include "schedule/layout.h"

namespace fusewise::schedule {

using graph::NodeId;
using graph::Value;

// Where the result of a stage lives until its last reader is done.
enum class Placement : uint8_t {
  registers,  // the register tile of the stage it is attached to
  scratch,    // private memory of the worker, allocated where the stage is attached
  memory,     // global memory: an output of the region, or what a later phase reads
};

// What happens to the overlap of the boxes that successive iterations need.
enum class Reuse : uint8_t {
  keep,       // attached outside every loop that it does not depend on: nothing is computed twice
  recompute,  // overlaps are computed again
  slide,      // a ring buffer along one axis: only what the last iteration did not compute
  carry,  // a reduction inside its reader's loop over blocks of the reduced axis: its state runs along (cascade.h)
};

// One loop over an axis of the stage's node in steps of `tile` elements. An axis may be cut several times, with
// falling tiles; what remains after the last loop is the register tile. Two loops may run over an axis that is reduced:
// - One serial loop over blocks of it (`block_axis`), of a schedule without threads: what is attached inside computes
//   one block at a time, and the reduction keeps a running state.
// - Where threads share a block, the last loop before those of the threads may be over the first reduction axis of a
//   contraction or window: the reduction then goes on from one of its steps to the next, and what is attached in it is
//   computed for one step.
struct LoopChoice {
  int axis = 0;
  int64_t tile = 1;
  friend bool operator==(const LoopChoice&, const LoopChoice&) = default;
};

// A node whose result is stored (in registers, scratch or memory) with the loop nest that computes it. Nodes
// without a stage are computed where they are used.
struct StageChoice {
  NodeId node = graph::no_node;
  int parent = -1;  // the stage it is attached to (an earlier entry), -1 for a root
  int depth = 0;    // attached inside that many loops of the parent
  int phase = 0;    // roots only: a barrier over all tiles lies between phases
  // A root that stores the state of every part of the reduced axis: one of its grid loops cuts it into parts of a
  // fixed size. The other stage of the same node, in a later phase, combines the parts in order and finishes.
  bool partial = false;
  Placement placement = Placement::memory;
  Reuse reuse = Reuse::keep;
  int slide_axis = -1;  // slide: the axis of this node along which the box moves
  std::vector<LoopChoice> loops;
  int grid_loops = 0;  // roots only: the first loops, spread over workers (or, on a GPU, over groups)
  int thread_loops =
      0;  // the last loops, spread over the threads of a group, each one register tile at a time
  // So many threads reduce each result together: the lanes of the order, times the blocks that are done at a time. 1:
  // each thread its own results.
  int team = 1;
  int vector_axis = -1;      // a parallel axis, or a reduction axis (lanes of the reduction), -1: scalar
  std::vector<int> storage;  // scratch and registers: dimensions, outermost first
  friend bool operator==(const StageChoice&, const StageChoice&) = default;
};

// Blocks of at least so many elements fix no order among themselves: sums may be split and carried (cascade.h). So many
// are still added up in lanes; of more, each chain of additions would round more often than it has to.
inline constexpr int64_t free_block = 4096;

// With more than one thread, a block is the work of a group of threads (of a GPU). What is attached outside of thread
// loops is computed by all threads of the group together and, in scratch, shared by them; what is attached inside
// belongs to one thread. Without thread loops a single thread does the work.
struct Schedule {
  std::vector<StageChoice> stages;
  int threads = 1;
  ReductionOrder order;  // of every reduction that is not sequential
  friend bool operator==(const Schedule& a, const Schedule& b) {
    return a.stages == b.stages && a.threads == b.threads && a.order.block == b.order.block &&
           a.order.lanes == b.order.lanes;
  }
};

// The layouts of the values that cross the region's border; row-major where none is given.
using Layouts = std::map<Value, Layout>;

}  // namespace fusewise::schedule
