// Checks what every graph must satisfy; run after every pass.
#pragma once

#include "graph/graph.h"

namespace fusewise::graph {

// Throws InternalError that names the node: operands come before their users, arity and attributes fit the
// operation, the stored types are the inferred ones, constants have their bytes, inputs and outputs exist.
void verify(const Graph& graph);

}  // namespace fusewise::graph
