// A contraction whose operand is a reshape that merges dimensions into the contracted one contracts over those
// dimensions instead: they are read where they are (attention heads, flattened images), and no view is left that
// takes an index apart. The order of the sum stays the same.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten unmerge_contractions(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
