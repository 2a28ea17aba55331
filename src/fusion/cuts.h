// Why edges are cut: a verdict, or both prices.
#pragma once

#include "fusion/evaluate.h"
#include "fusion/partition.h"

namespace fusewise::fusion {

// Fills in the plan's cut edges, one for each edge between nodes that no region has in common.
void add_cuts(const PlanContext& context, const Partition& partition, Evaluator& evaluator, FusionPlan& plan);

}  // namespace fusewise::fusion
