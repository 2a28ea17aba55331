// Which concatenations are put together in place: those whose kernels, as the plan has them, cost no less than the
// kernels and copies that would be left.
#pragma once

#include <set>

#include "fusion/context.h"

namespace fusewise::fusion {

// `plan` was made by `options`, with no others in place than `always`, which belong to the result.
std::set<NodeId> choose_wholes(const graph::Graph& graph, const PlanOptions& options,
                               const std::set<NodeId>& always, const FusionPlan& plan,
                               const cost::GraphFacts& facts);

// The options (which have none in place yet) with these concatenations put together in place.
PlanOptions with_wholes(const graph::Graph& graph, const PlanOptions& options,
                        const std::set<NodeId>& wholes);

// Of the copies that putting this one together takes.
double copy_microseconds(const PlanContext& context, NodeId whole);

}  // namespace fusewise::fusion
