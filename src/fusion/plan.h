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

// A region of a node that stands alone has no schedule: there is one way to run it.
struct PlannedRegion {
  graph::Region region;
  schedule::Schedule schedule;
  double predicted_microseconds = 0;
  bool assembled = false;            // a concatenation put together in place: no kernel, copies at the most
  bool once = false;                 // depends on constants only: runs when the program is loaded (packing)
  bool pinned = false;               // kept as a plan file states it
  double measured_microseconds = 0;  // 0: not measured
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

}  // namespace fusewise::fusion
