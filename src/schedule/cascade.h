// Chains of reductions over one axis as one running state: derived from the region's expressions by the identities of
// numerics/cascade.h.
//
// The summand of a later reduction may depend on an earlier one through a reference (it is reckoned against the
// running value and rebased when that moves) or through factors and divisors that are constant along the axis (left
// out while the sum runs: they read as 1, and are applied at the end). Everything else is evaluated as it stands.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "base/verdict.h"
#include "numerics/cascade.h"
#include "schedule/region_forms.h"

namespace fusewise::schedule {

// For each dimension of the value that is read: the axis of the reader's form, -1: its only element.
using ConstantCoordinates = std::vector<int>;

struct CascadeMember {
  NodeId node = graph::no_node;

  // The earlier member whose running value the summand is reckoned against, -1: none.
  int reference = -1;
  CascadeIdentity identity = CascadeIdentity::shifted_exponential;
  double scale = 1;
  ConstantCoordinates reference_at;

  struct Factor {
    NodeId node = graph::no_node;  // reads as 1 while the sum runs
    bool divides = false;
    ConstantCoordinates at;
  };
  std::vector<Factor> factors;  // applied at the end, in this order
};

struct Cascade {
  std::vector<CascadeMember> members;  // ascending, the one that was asked for last
  // The nodes whose value is the reference while the sum runs, with the member that it is the reference of: that
  // member itself (a maximum) or the node that makes a mean of it.
  std::map<NodeId, int> reference_nodes;
  int member_of(NodeId node) const;
};

struct CascadeResult {
  Verdict verdict = Verdict::allow();
  Cascade cascade;
};

// The axis along which a reduction is cut into blocks: the first reduction axis with more than one element; -1 for a
// node that reduces nothing.
int block_axis(const graph::Form& form);

// The state of `last` and of the members of `carried` that it depends on; nothing of `carried` may be left over.
// Without `carried`: of all reductions that its summand depends on through values that are constant along its axes.
// Refusals: "cascade-axis" (the members do not reduce over the same axes), "cascade-function" (nothing can be pulled
// out of what depends on an earlier member), "cascade-reference" (a shift that is no maximum or mean of the same
// values), "cascade-range" (a divisor that may be 0, a factor that may be infinite), "cascade-type" (a rounding to a
// narrower type lies in between).
CascadeResult derive_cascade(const RegionForms& forms, NodeId last,
                             const std::optional<std::set<NodeId>>& carried);

// True if all that the node does is to apply a factor or divisor that reads as 1 while the state runs.
bool only_applies_factor(const RegionForms& forms, const Cascade& cascade, NodeId node);

}  // namespace fusewise::schedule
