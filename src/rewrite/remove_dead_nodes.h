// Drops the nodes that no output needs, and the constants that only they read. Every rewrite cleans up after
// itself; this one is for what comes in, so that uses that do not count do not keep others from applying.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten remove_dead_nodes(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
