// Moves broadcasts and reshapes below elementwise operations:
//
//   f(broadcast(x), broadcast(y)) = broadcast(f(x, y))      computes fewer elements
//   f(reshape(x), reshape(y))     = reshape(f(x, y))        chains keep one shape, reshapes cancel
//
// where the other operands are constants, single elements, or broadcasts along dimensions that the reshape
// keeps. Exact: the same operation on the same numbers. Runs after canonicalize_views, so that equal views
// look equal; again after it, since what sinks may merge with the view below.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten sink_views(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
