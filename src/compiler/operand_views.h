// For targets whose threads share operands: every operand of a contraction becomes an identity view of its own, which a
// schedule can then store in shared memory, tile by tile. Runs after the rewrites, which would remove such a view.
#pragma once

#include "fusion/plan.h"
#include "graph/graph.h"

namespace fusewise::compiler {

graph::Graph view_operands(graph::Graph graph);

// Takes the views into the regions of the contractions that read them, also where the plan has computed them apart, and
// leaves out regions that nobody reads any more. The plan's schedules do not hold for what has changed.
void keep_views_inside(const graph::Graph& graph, fusion::FusionPlan& plan);

}  // namespace fusewise::compiler
