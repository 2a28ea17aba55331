// One form for views that do the same: what only adds or removes dimensions of 1 is a reshape; a broadcast
// reads the tensor before such a reshape; views of a single repeated element are broadcasts of it. So equal
// views become equal nodes, and reshapes meet and cancel. Exact: no element is computed anew. Runs after
// simplify_algebra has composed views of one kind.
#pragma once

#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

Rewritten canonicalize_views(graph::Graph graph, const RewriteContext& context);

}  // namespace fusewise::rewrite
