// The fusion plan: which nodes run together, how each kernel is scheduled, in which layout each value lies, and
// why. A document: written, edited and replayed as plan.json.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fusion/assemblies.h"
#include "graph/region.h"
#include "schedule/schedule.h"

namespace fusewise::fusion {

// on: the planner decides; operators: one kernel per model operator; off: one per primitive.
enum class FusionMode : uint8_t { on, operators, off };

struct FusionPlan;

// A region of a node that stands alone has no schedule: there is one way to run it.
struct PlannedRegion {
  // A loop or a branch is a region by itself, with the results that somebody reads.
  graph::Region region;
  schedule::Schedule schedule;
  double predicted_microseconds = 0;
  bool assembled = false;  // a concatenation put together in place: no kernel, copies at the most
  // Elements of its outputs; fewer are computed sooner by one thread. So many are worth what it takes to wake and join
  // several.
  double parallel_from = 0, fork_join_microseconds = 0;
  bool once = false;                 // depends on constants only: runs when the program is loaded (packing)
  bool pinned = false;               // kept as a plan file states it
  double measured_microseconds = 0;  // 0: not measured
  std::vector<FusionPlan> bodies;    // of a loop or a branch, whose price is theirs
};

// Why an edge between two nodes is not inside one region.
struct CutEdge {
  graph::NodeId from, to;
  std::string reason;  // code of the verdict, or "cost"
  std::string detail;
  double fused_microseconds = 0, now_microseconds = 0;
};

struct FusionPlan {
  FusionMode mode = FusionMode::on;
  std::vector<PlannedRegion> regions;  // in execution order
  // The layout in which each value lies, row-major where none is given. A constant in another layout than the file's
  // is the result of an identity view, computed by a once region.
  schedule::Layouts layouts;
  Assemblies assemblies;
  std::vector<Append> appends;
  std::vector<CutEdge> cuts;
  std::string search = "greedy";
  bool search_complete = true;
  int64_t candidates = 0;
  double predicted_microseconds = 0, lower_bound_microseconds = 0;
  // Mode operators: model operators that are no legal single region and became several.
  int operators_split = 0;
  std::string machine;             // for which the schedules were chosen
  std::vector<std::string> notes;  // what the reader should know: tiles chosen anew, budget ended, ...
};

// Groups that something is done for, kernels that runs launch and those that run once, and the former's phases. Bodies
// count once, however often they run.
struct KernelCounts {
  int64_t groups = 0, kernels = 0, once = 0, phases = 0;
};
KernelCounts count_kernels(const FusionPlan& plan);

}  // namespace fusewise::fusion
