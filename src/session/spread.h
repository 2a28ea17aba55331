// Whether errors are of the size that rounding explains. A propagated bound grows with depth until it says little of
// deep networks; but the interpreter in the model's types rounds as often as compiled code does, so its own distance
// from the exact result tells how large errors of that kind are.
#pragma once

#include "graph/graph.h"
#include "session/verify.h"

namespace fusewise::session {

// Whether a rounding may turn a decision: numbers that were rounded before are compared, or rounded to whole ones.
bool decides_on_rounded_numbers(const graph::Graph& graph);

// Completes a verdict: fails it when the error exceeds that of `reference` by more than chance explains. The errors'
// root mean squares are compared, and the largest errors with twice that leeway. Few elements are given more, because
// among them the reference may be right by chance; and so are models of which `decides` holds, whose errors come in
// leaps. Integers, and what is not finite on some side, say nothing.
void hold_to_spread(OutputVerdict& verdict, const graph::BoundedTensor& exact, const graph::Tensor& reference,
                    const graph::Tensor& actual, bool decides);

}  // namespace fusewise::session
