// Takes away two transposes that undo each other around elementwise operations:
//
//   transpose(f(transpose(x, p), c), p^-1) = f(x, c')
//
// where the values between them have no other use, and c is a single element or a broadcast along one
// dimension. Models that were converted from another layout are full of them. Exact. Runs after
// simplify_algebra, which composes transposes that meet directly.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten cancel_transposes(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
