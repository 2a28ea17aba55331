// Loops and branches with less at their borders: a captured constant (or a view of one number) becomes a constant of the
// bodies, where folding and packing see it; a carried value that no iteration changes is captured instead; captures,
// carried and stacked values that nobody reads disappear; a branch on a constant gives way to the body that it takes, and
// a loop that runs once to its body. Runs after folding, which finds the constants.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten simplify_control(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
