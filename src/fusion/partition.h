// A partition of the graph's work into clusters whose quotient stays acyclic: merged step by step, with a
// topological order of the clusters kept up to date.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fusion/context.h"
#include "fusion/order_list.h"

namespace fusewise::fusion {

class Partition {
 public:
  explicit Partition(const PlanContext& context);

  int cluster_of(NodeId node) const { return leaf_of_[node] < 0 ? -1 : find(leaf_of_[node]); }
  bool alive(int cluster) const { return forward_[static_cast<size_t>(cluster)] == cluster; }
  // Of a living cluster, sorted.
  std::span<const NodeId> nodes(int cluster) const;
  // Those of its nodes that read what another cluster computes, and those that another cluster reads, sorted.
  std::span<const NodeId> readers(int cluster) const;
  std::span<const NodeId> writers(int cluster) const;
  // Of any cluster, also of one that was merged into another.
  std::vector<NodeId> nodes_of_part(int cluster) const;
  // By number; those that are found first where there are more than `most`.
  std::vector<int> successors(int cluster, size_t most = SIZE_MAX) const;
  std::vector<int> predecessors(int cluster, size_t most = SIZE_MAX) const;
  // Is there a way from one to the other through a third, so that merging them would close a cycle? Also true where
  // finding out would take too long.
  bool would_cycle(int a, int b) const;
  // Merges and returns the new cluster; `would_cycle` must be false.
  int merge(int a, int b);
  // The two clusters that a merged one was made of, -1 for a single node.
  std::pair<int, int> parts(int cluster) const;
  // All living clusters, producers first.
  std::vector<int> order() const { return order_.members(); }
  // One more than the largest number of a cluster.
  int size() const { return static_cast<int>(forward_.size()); }
  // Steps that all searches for cycles took together.
  int64_t steps() const { return steps_; }

 private:
  struct Merged {
    int first, second;
    std::vector<NodeId> nodes, readers, writers;  // while it lives
  };
  class Walk;
  // Without a cycle: all clusters between two that the first one reaches, or else all that reach the second one.
  struct Between {
    bool from_first = false;
    std::vector<int> clusters;
  };

  const PlanContext& context_;
  std::vector<int> leaf_of_;          // per node: the cluster that it began as, -1 where it is no work
  std::vector<NodeId> leaves_;        // the first clusters are single nodes, by number
  std::vector<Merged> merged_;        // the others
  mutable std::vector<int> forward_;  // union-find: the cluster that a dead one went into
  OrderList order_;
  // A tree of ways in the graph: each node below its deepest input, numbered so that what lies below a node follows it.
  std::vector<uint32_t> tree_place_, tree_size_;
  mutable std::vector<int> stamp_;
  mutable int stamps_ = 0;
  mutable int64_t steps_ = 0;

  int find(int cluster) const;
  Merged& merged(int cluster) { return merged_[static_cast<size_t>(cluster) - leaves_.size()]; }
  const Merged& merged(int cluster) const { return merged_[static_cast<size_t>(cluster) - leaves_.size()]; }
  void build_tree();
  bool leads_down(NodeId from, NodeId to) const {
    return tree_place_[to] - tree_place_[from] < tree_size_[from];
  }
  // The members whose entries in `lists` (inputs or readers) lead to other clusters.
  std::span<const NodeId> border(int cluster, const NodeLists& lists) const {
    return &lists == &context_.inputs ? readers(cluster) : writers(cluster);
  }
  std::vector<NodeId> joint_border(int merged, int a, int b, const NodeLists& lists) const;
  std::vector<NodeId> neighbours(int cluster, int other, const NodeLists& lists) const;
  bool plainly_cycles(int low, int high) const;
  std::optional<Between> between(int low, int high) const;
  std::vector<int> adjacent(int cluster, const NodeLists& lists, size_t most) const;
};

}  // namespace fusewise::fusion
