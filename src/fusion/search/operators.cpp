// One kernel per model operator: the fair baseline of fusion.
#include <algorithm>
#include <map>

#include "fusion/search/search.h"

namespace fusewise::fusion {

namespace {

// Joins the operator's nodes in topological order as long as the result is legal; otherwise the next kernel begins.
int join(Partition& partition, const LegalityContext& context, const std::vector<NodeId>& nodes) {
  int kernels = 0;
  std::vector<int> open;
  for (NodeId node : nodes) {
    const int own = partition.cluster_of(node);
    bool joined = std::find(open.begin(), open.end(), own) != open.end();
    for (size_t i = open.size(); i-- > 0 && !joined;) {
      const Candidate candidate = make_candidate(context.plan, partition, open[i], own);
      if (!is_legal(candidate, context)) continue;
      open[i] = partition.merge(open[i], own);
      joined = true;
    }
    if (joined) continue;
    open.push_back(own);
    ++kernels;
  }
  // A later node may have made two of them mergeable.
  for (size_t i = 0; i < open.size(); ++i)
    for (size_t j = i + 1; j < open.size();) {
      const Candidate candidate = make_candidate(context.plan, partition, open[i], open[j]);
      if (is_legal(candidate, context)) {
        open[i] = partition.merge(open[i], open[j]);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(j));
        --kernels;
      } else {
        ++j;
      }
    }
  return kernels;
}

// All at once, if the operator is one legal region as a whole.
bool join_whole(Partition& partition, const LegalityContext& context, const std::vector<NodeId>& nodes) {
  Candidate whole;
  whole.nodes = nodes;
  whole.region = region_of(context.plan, nodes);
  if (!is_legal(whole, context)) return false;
  // Cycles show only step by step; neighbours first, so that what lies between is inside by then.
  std::vector<int> rest;
  for (NodeId node : nodes) rest.push_back(partition.cluster_of(node));
  for (size_t i = 1; i < rest.size(); ++i)
    if (partition.would_cycle(rest[0], rest[i]))
      return false;
    else
      rest[0] = partition.merge(rest[0], rest[i]);
  return true;
}

}  // namespace

int group_operators(Partition& partition, const LegalityContext& context,
                    const std::vector<bool>& fixed_nodes) {
  const graph::Graph& graph = *context.plan.graph;
  std::map<std::pair<bool, uint32_t>, std::vector<NodeId>> groups;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (context.plan.is_work(id) && !fixed_nodes[id] && !graph.node(id).sources.empty())
      groups[{context.plan.is_once(id), graph.node(id).sources[0]}].push_back(id);
  int split = 0;
  for (const auto& [key, nodes] : groups) {
    if (nodes.size() < 2) continue;
    if (join_whole(partition, context, nodes)) continue;
    const bool several = join(partition, context, nodes) > 1;
    if (several && !key.first) ++split;
  }
  return split;
}

}  // namespace fusewise::fusion
