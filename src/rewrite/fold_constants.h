// Computes at compile time what depends on constants alone, by the reference interpreter: the same bits as at
// run time. Never makes the program much larger: a broadcast is not stored (an operation on a constant and a
// broadcast one is computed), and a result that is larger than its operands by more than the context allows
// stays a computation, and so does a large constant that only moves. Runs before the rewrites that look for constants.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten fold_constants(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
