// Folds what scales and shifts the result of a convolution or a dot product with constant weights into the
// weights and one bias: batch normalisation after import, for instance.
//
//   ((conv(x, W) - m) * s) + b = conv(x, W * s) + (b - m * s)
//
// with m, s, b constants along the output channel (a bias that the convolution has already is one more such
// step). Applies where neither the contraction, nor its weights, nor any value between has another use, and
// where every number stays well inside the range of its type: neither near overflow nor so small that it loses
// digits. Weights narrower than what sums are kept in (float16, bfloat16) are left alone: rounding them anew would
// cost more than the step that is saved. Changes rounding: weights and bias are computed in double precision and rounded once. Runs after
// fold_constants, which makes the constants, and divide_to_multiply.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten fold_scale_into_weights(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
