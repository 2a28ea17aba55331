// The fusion plan: which nodes run together, how each kernel is scheduled, in which layout each value lies, and
// why. A document: written, edited and replayed as plan.json.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/region.h"
#include "schedule/schedule.h"

namespace fusewise::fusion {

// on: the planner decides; operators: one kernel per model operator; off: one per primitive.
enum class FusionMode : uint8_t { on, operators, off };

struct PlannedRegion {
  graph::Region region;
  schedule::Schedule schedule;
  double predicted_microseconds = 0;
  bool once = false;                 // depends on constants only: runs when the program is loaded (packing)
  bool pinned = false;               // kept as a plan file states it
  double measured_microseconds = 0;  // 0: not measured
};

// A value brought from one layout into another: an identity-map region that exists in the plan only.
struct Conversion {
  graph::Value value;
  schedule::Layout from, to;
  bool once = false;
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
  std::vector<Conversion> conversions;
  // The layout in which the value's producer (or the model) delivers it; row-major where none is given.
  schedule::Layouts layouts;
  // Readers that take a value in another layout than its producer's, through a conversion: (region, value).
  std::map<std::pair<int, graph::Value>, schedule::Layout> reader_layouts;
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
