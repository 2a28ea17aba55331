// A partition of the graph's work into clusters whose quotient stays acyclic: merged step by step, with a
// topological order of the clusters kept up to date.
#pragma once

#include <vector>

#include "fusion/context.h"

namespace fusewise::fusion {

class Partition {
 public:
  explicit Partition(const PlanContext& context);

  int cluster_of(NodeId node) const;
  bool alive(int cluster) const { return clusters_[static_cast<size_t>(cluster)].alive; }
  const std::vector<NodeId>& nodes(int cluster) const {
    return clusters_[static_cast<size_t>(cluster)].nodes;
  }
  std::vector<int> successors(int cluster) const;
  std::vector<int> predecessors(int cluster) const;
  // Is there a way from one to the other through a third, so that merging them would close a cycle?
  bool would_cycle(int a, int b) const;
  // Merges and returns the new cluster; `would_cycle` must be false.
  int merge(int a, int b);
  // The two clusters that a merged one was made of, -1 for a single node.
  std::pair<int, int> parts(int cluster) const;
  // All living clusters, producers first.
  std::vector<int> order() const;

 private:
  struct Cluster {
    std::vector<NodeId> nodes;
    std::vector<int> next, previous;  // may name dead clusters: find() leads on
    int position = 0;
    int first = -1, second = -1;
    bool alive = true;
  };
  std::vector<Cluster> clusters_;
  mutable std::vector<int> forward_;  // union-find: the cluster that a dead one went into
  std::vector<int> cluster_of_;
  std::vector<int> at_position_;
  mutable std::vector<int> stamp_;
  mutable int stamps_ = 0;

  int find(int cluster) const;
  // Clusters before `high` that `low` reaches, other than by the direct edge; true if it reaches `high` so.
  bool reach(int low, int high, std::vector<int>& reached) const;
  std::vector<int> live(const std::vector<int>& clusters, int self) const;
};

}  // namespace fusewise::fusion
