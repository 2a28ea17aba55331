// Drops the nodes that no output needs, and the constants that only they read.
#pragma once

#include "graph/graph.h"

namespace fusewise::onnx {

graph::Graph without_dead_nodes(graph::Graph graph);

}  // namespace fusewise::onnx
