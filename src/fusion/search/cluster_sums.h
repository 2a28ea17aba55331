// What a cluster adds up to while it grows: kept per cluster and joined from two, so that looking at a merge takes as
// long as the two have values at their borders, however many members they have.
#pragma once

#include <vector>

#include "cost/closed_form.h"
#include "fusion/context.h"

namespace fusewise::fusion {

struct ClusterSums {
  // A member's value that somebody outside reads.
  struct Output {
    NodeId node;
    uint32_t readers;  // outside; being an output of the graph counts as one
  };
  // A member's read of a value from outside.
  struct Read {
    NodeId input, reader;
    bool direct;  // as it lies, perhaps under another shape
  };
  std::vector<Output> outputs;  // sorted
  std::vector<Read> reads;      // sorted by input, then reader
  double cycles = 0;
  uint64_t signature = 0;  // the sum of the members': equal for equal clusters
  NodeId first = 0, last = 0;
  double elements = 0;     // of every member's result, -1 where they differ
  int held = 0;            // members that are not elementwise
  bool sequential = true;  // all those are sequential accumulations
  bool accumulates = false, contracts = false;
  double microseconds = 0;  // tier 0
};

class ClusterSummer {
 public:
  explicit ClusterSummer(const PlanContext& context) : context_(context) {}

  ClusterSums of_node(NodeId node) const;
  ClusterSums of_both(const ClusterSums& a, const ClusterSums& b) const;
  // The tier 0 price of both as one.
  double price_of_both(const ClusterSums& a, const ClusterSums& b) const;
  // True if the closed form says all there is to say about merging `reader` into `producer`: elementwise work over one
  // domain, or a contraction's elementwise epilogue.
  bool plain_merge(const ClusterSums& producer, const ClusterSums& reader) const;

 private:
  const PlanContext& context_;

  bool reads_directly(NodeId reader, NodeId producer) const;
};

}  // namespace fusewise::fusion
