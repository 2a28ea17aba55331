// Work in a loop's body that is the same in every iteration moves in front of the loop: what depends on captures and
// constants alone and computes something (views cost nothing where they are). Its values are captured. Exact: the same
// operations on the same values. Runs on the canonical form, after captured constants went into the bodies, which stay
// there: they are computed once anyway.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten hoist_invariants(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
