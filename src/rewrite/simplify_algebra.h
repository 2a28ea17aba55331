// Applies the exact algebraic rules of algebra/ to every node, operands first, so that one pass simplifies
// whole chains. Runs after fold_constants, which turns operands into the constants that rules look for.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten simplify_algebra(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
