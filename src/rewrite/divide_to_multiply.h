// x / c = x * (1 / c) for constants c whose reciprocals are normal numbers: a multiplication is several times
// faster. Changes rounding: the reciprocal is rounded once, the product once more. (Powers of two are exact,
// and simplify_algebra's.)
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten divide_to_multiply(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
