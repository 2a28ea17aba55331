// The price of clusters while they grow: the closed form always, the loop tree's where the closed form cannot see
// what matters (recomputation, refetched operands, lost parallelism).
#pragma once

#include <unordered_map>

#include "cost/closed_form.h"
#include "fusion/evaluate.h"
#include "fusion/legality/check.h"

namespace fusewise::fusion {

class ClusterPrice {
 public:
  ClusterPrice(const PlanContext& context, Evaluator& evaluator) : context_(context), evaluator_(evaluator) {}

  // Tier 0, of any set of nodes (sorted).
  double closed_form(const std::vector<NodeId>& nodes);
  // Tier 1; negative when it is no legal region.
  double tree(const graph::Region& region);
  // True if the closed form says all there is to say about merging these two: elementwise work over one domain, or
  // a contraction's elementwise epilogue.
  bool plain_merge(const std::vector<NodeId>& a, const std::vector<NodeId>& b) const;

 private:
  const PlanContext& context_;
  Evaluator& evaluator_;
  std::vector<NodeId> border_;  // reused

  bool reads_directly(NodeId reader, NodeId producer) const;
};

}  // namespace fusewise::fusion
