#include "rewrite/remove_dead_nodes.h"

#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

graph::Graph remove_dead_nodes(const graph::Graph& graph, const RewriteContext&) {
  return without_dead_nodes(graph);
}

}  // namespace fusewise::rewrite
