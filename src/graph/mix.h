// What a node computes, mixed into a hash: for tables of nodes that compute the same.
#pragma once

#include "graph/graph.h"
#include "numerics/mixer.h"

namespace fusewise::graph {

void mix(Mixer& mixer, const Shape& shape);
void mix(Mixer& mixer, const TensorType& type);
// What the result type gives is left out. Of a constant it is the number among the graph's constants.
void mix(Mixer& mixer, const Attributes& attributes);

}  // namespace fusewise::graph
