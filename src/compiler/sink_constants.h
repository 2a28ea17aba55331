// What constants alone determine and a body captures is computed in the body, so that the layout is its readers' to
// choose, as for any weight. It still runs once only, when the program is loaded. Runs after the rewrites, which would
// take it out of the loop again.
#pragma once

#include "graph/graph.h"

namespace fusewise::compiler {

graph::Graph sink_constants(graph::Graph graph);

}  // namespace fusewise::compiler
