// plan.json: the plan as a document, schema "fusewise.plan/1". Nodes are keyed by the index of their model node, its
// name and operator, and their number among the primitives of that model node.
//
// As input it is a full plan or a set of constraints:
//   "replay": true                     every group is kept as it stands (what we write is such a plan)
//   "groups": [{"pin": true, ...}]     without replay: only groups with "pin" are kept, the rest is planned
//   "groups": [{"members": ["Conv#3", "relu_4"], "pin": true, "grid_tile": 16}]   by model nodes, tiles chosen anew
//   "forbid": [["A", "B"]]             edges between these model nodes stay cut
//   "barriers": ["tensor"]             stored, and fused with no reader
//   "max_fusions": 10
#pragma once

#include <string>
#include <string_view>

#include "fusion/planner.h"

namespace fusewise::fusion {

std::string to_json_text(const graph::Graph& graph, const FusionPlan& plan);

// UserError that names the group and the node when the text is no plan or does not fit the graph. Schedules chosen
// for another machine are dropped, which the notes say.
PlanConstraints constraints_from_json(const graph::Graph& graph, std::string_view text,
                                      const machine::Machine& machine);

}  // namespace fusewise::fusion
