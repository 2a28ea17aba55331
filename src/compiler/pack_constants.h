// Gives every constant that a contraction streams through its vectors a copy of its own (an identity view), whose
// layout the plan is free to choose; the constant itself stays as the file has it. Runs after the rewrites, which
// would remove such a view, and before layouts are assigned.
#pragma once

#include "graph/graph.h"

namespace fusewise::compiler {

graph::Graph pack_constants(graph::Graph graph);

}  // namespace fusewise::compiler
