#include "rewrite/remove_dead_nodes.h"

#include "graph/dead_nodes.h"

namespace fusewise::rewrite {

graph::Graph remove_dead_nodes(const graph::Graph& graph, const RewriteContext&) {
  return graph::without_dead_nodes(graph);
}

}  // namespace fusewise::rewrite
