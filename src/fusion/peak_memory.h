// How much memory the stored values of a plan take at once, run in its order: what no placement in an arena can go
// below. The caller's inputs and outputs and what is made when the model is loaded do not count.
#pragma once

#include "cost/facts.h"
#include "fusion/plan.h"

namespace fusewise::fusion {

// Bytes at the usual sizes. A value that lies inside of another one is a part of its host, which lives from the first
// write to a part until the last reader of one is done.
double peak_bytes(const graph::Graph& graph, const FusionPlan& plan, const cost::GraphFacts& facts);

}  // namespace fusewise::fusion
