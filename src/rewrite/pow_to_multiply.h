// Powers with a constant exponent become the operations that they are:
//
//   x^1 = x    x^2 = x * x    x^3 = x * x * x    x^4 = (x * x)^2    x^-1 = 1 / x
//   x^0.5 = sqrt(x)    x^-0.5 = 1 / sqrt(x)      where x is provably neither negative nor -0
//
// (-inf)^0.5 is inf and (-0)^0.5 is 0, where sqrt says NaN and -0: hence the condition. Changes rounding: the
// function pow has an error of its own.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten pow_to_multiply(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
