// The planner's entry: from a graph to a fusion plan.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cost/closed_form.h"
#include "fusion/plan.h"
#include "machine/machine.h"

namespace fusewise::fusion {

// Nodes that belong into one region whatever the price says.
struct GroupConstraint {
  std::string name;                            // for messages
  std::vector<graph::NodeId> nodes;            // sorted; views between them may be missing
  bool pin = true;                             // nothing else joins it
  std::optional<schedule::Schedule> schedule;  // used as it is; chosen anew where there is none
  int64_t grid_tile = 0;                       // rows of a tile; 0: chosen
  double measured_microseconds = 0;
};

struct PlanConstraints {
  std::vector<GroupConstraint> groups;
  std::set<std::pair<graph::NodeId, graph::NodeId>> forbidden;  // edges that stay cut
  std::set<graph::NodeId> barriers;      // nodes whose result is stored and fused with no reader
  std::optional<int64_t> most_merges;    // stop after so many fusions (to bisect)
  std::set<graph::NodeId> stored_views;  // views that get a kernel of their own
  std::set<graph::NodeId>
      assembled;  // concatenations put together in place; with `groups`, these and no others
  std::map<graph::NodeId, std::vector<PlanConstraints>> bodies;  // of loops and branches
  std::vector<std::string> notes;                                // handed on to the plan
};

struct PlanOptions {
  FusionMode mode = FusionMode::on;
  machine::Machine machine;
  int threads = 1;
  ReductionOrder order;
  schedule::Layouts layouts;    // decided before: the layout of each value that is stored
  std::vector<Append> appends;  // of outputs that grow in the caller's arrays
  Assemblies assemblies;        // the planner's own: what `layouts` say of parts comes from here
  bool assemble = true;         // concatenations may be put together in place
  SymbolValues usual;           // values of symbols to reckon with
  PlanConstraints constraints;
  int64_t budget = 4000;  // regions whose tiles may be searched, structurally equal ones once
};

// Settles layouts, before regions: fills in `layouts`, and the views by which constants are packed.
void settle_layouts(const graph::Graph& graph, PlanOptions& options);

// Bodies of loops and branches are planned as graphs of their own, with the same options but for layouts and constraints.
// UserError when a group of the constraints cannot be one region (with the verdict's reason), UnsupportedError for a
// node that no kernel can compute. The result does not depend on names nor on the order of independent nodes.
FusionPlan make_plan(const graph::Graph& graph, const PlanOptions& options);

}  // namespace fusewise::fusion
