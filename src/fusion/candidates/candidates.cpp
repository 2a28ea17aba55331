#include "fusion/candidates/candidates.h"

#include <algorithm>

namespace fusewise::fusion {

namespace {

// A value that many read (a mask, a position table) proposes each reader to its next few only: all pairs would be
// quadratic.
constexpr size_t most_siblings = 6;

void add_siblings(const PlanContext& context, const Partition& partition, int cluster,
                  std::vector<int>& found) {
  for (NodeId node : partition.nodes(cluster))
    for (NodeId input : context.inputs[node]) {
      if (context.is_source(input)) continue;
      const std::vector<NodeId>& readers = context.readers[input];
      auto at = std::lower_bound(readers.begin(), readers.end(), node);
      for (size_t n = 0; at != readers.end() && n < most_siblings; ++at, ++n)
        found.push_back(partition.cluster_of(*at));
      at = std::lower_bound(readers.begin(), readers.end(), node);
      for (size_t n = 0; at != readers.begin() && n < most_siblings; ++n)
        found.push_back(partition.cluster_of(*--at));
    }
}

}  // namespace

std::vector<Proposal> proposals_of(const PlanContext& context, const Partition& partition, int cluster) {
  std::vector<Proposal> result;
  const std::vector<int> before = partition.predecessors(cluster), behind = partition.successors(cluster);
  for (int c : before) result.push_back({CandidateKind::vertical, c, cluster});
  for (int c : behind) result.push_back({CandidateKind::vertical, cluster, c});
  std::vector<int> siblings;
  add_siblings(context, partition, cluster, siblings);
  std::sort(siblings.begin(), siblings.end());
  siblings.erase(std::unique(siblings.begin(), siblings.end()), siblings.end());
  for (int c : siblings) {
    if (c == cluster || std::binary_search(before.begin(), before.end(), c) ||
        std::binary_search(behind.begin(), behind.end(), c))
      continue;
    result.push_back({CandidateKind::sibling, std::min(c, cluster), std::max(c, cluster)});
  }
  return result;
}

}  // namespace fusewise::fusion
