#include "rewrite/remove_dead_nodes.h"

#include "graph/dead_nodes.h"

namespace fusewise::rewrite {

Rewritten remove_dead_nodes(graph::Graph graph, const RewriteContext&) {
  const size_t nodes = graph.size(), constants = graph.constants.size();
  graph::Graph live = graph::without_dead_nodes(std::move(graph));
  const bool changed = live.size() != nodes || live.constants.size() != constants;
  return {std::move(live), changed};
}

}  // namespace fusewise::rewrite
