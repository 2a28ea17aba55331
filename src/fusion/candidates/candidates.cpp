#include "fusion/candidates/candidates.h"

#include <algorithm>

namespace fusewise::fusion {

namespace {

// A value that many read (a mask, a position table) proposes each reader to its next few only: all pairs would be
// quadratic.
constexpr size_t most_siblings = 6;
// A cluster that grows is proposed to so many of its neighbours each time, for the same reason.
constexpr size_t most_neighbours = 256;

void add_siblings(const PlanContext& context, const Partition& partition, int cluster,
                  std::vector<int>& found) {
  for (NodeId node : partition.readers(cluster))
    for (NodeId input : context.inputs[node]) {
      // Who else reads a member is a neighbour.
      if (context.is_source(input) || partition.cluster_of(input) == cluster) continue;
      const std::span<const NodeId> readers = context.readers[input];
      auto at = std::lower_bound(readers.begin(), readers.end(), node);
      for (size_t n = 0; at != readers.end() && n < most_siblings; ++at, ++n)
        found.push_back(partition.cluster_of(*at));
      at = std::lower_bound(readers.begin(), readers.end(), node);
      for (size_t n = 0; at != readers.begin() && n < most_siblings; ++n)
        found.push_back(partition.cluster_of(*--at));
    }
}

}  // namespace

std::vector<Proposal> proposals_of(const PlanContext& context, const Partition& partition, int cluster,
                                   bool few) {
  std::vector<Proposal> result;
  const size_t most = few ? most_neighbours : SIZE_MAX;
  const std::vector<int> before = partition.predecessors(cluster, most),
                         behind = partition.successors(cluster, most);
  const auto is_neighbour = [&](int c) {
    if (std::binary_search(before.begin(), before.end(), c) ||
        std::binary_search(behind.begin(), behind.end(), c))
      return true;
    if (before.size() < most && behind.size() < most) return false;
    const std::vector<int> own = partition.predecessors(c), next = partition.successors(c);
    return std::binary_search(own.begin(), own.end(), cluster) ||
           std::binary_search(next.begin(), next.end(), cluster);
  };
  for (int c : before) result.push_back({CandidateKind::vertical, c, cluster});
  for (int c : behind) result.push_back({CandidateKind::vertical, cluster, c});
  std::vector<int> siblings;
  add_siblings(context, partition, cluster, siblings);
  std::sort(siblings.begin(), siblings.end());
  siblings.erase(std::unique(siblings.begin(), siblings.end()), siblings.end());
  for (int c : siblings)
    if (c != cluster && !is_neighbour(c))
      result.push_back({CandidateKind::sibling, std::min(c, cluster), std::max(c, cluster)});
  return result;
}

}  // namespace fusewise::fusion
