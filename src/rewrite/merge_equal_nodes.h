// Nodes that compute the same become one: equal operations on the same operands (in any order where the
// operation commutes), and constants with the same bytes. Deterministic: the first one stays. The bits of -0
// and +0 and of NaNs count. Runs after the canonical forms, which make more nodes equal.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten merge_equal_nodes(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
