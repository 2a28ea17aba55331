// What is put in place: concatenations and views whose neighbours, as they read and write at strides, cost no more than
// the kernels that would move the elements.
#pragma once

#include <set>

#include "fusion/context.h"

namespace fusewise::fusion {

// `plan` was made by `options`, with no others in place than `always`, which belong to the result. Both prices of each
// node that was thought of are in `prices`.
std::set<NodeId> choose_in_place(const graph::Graph& graph, const PlanOptions& options,
                                 const std::set<NodeId>& always, const FusionPlan& plan,
                                 const cost::GraphFacts& facts, MovePrices& prices);

// The options (which have none in place yet) with these nodes put in place.
PlanOptions with_in_place(const graph::Graph& graph, const PlanOptions& options,
                          const std::set<NodeId>& nodes);

// Of the copies that putting this one together takes.
double copy_microseconds(const PlanContext& context, NodeId whole);

}  // namespace fusewise::fusion
