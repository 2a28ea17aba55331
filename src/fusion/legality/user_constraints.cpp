#include <algorithm>

#include "fusion/legality/check.h"

namespace fusewise::fusion {

// What the user asked to keep apart: barriers and forbidden edges.
Verdict user_constraints(const Candidate& candidate, const LegalityContext& context) {
  const PlanConstraints& constraints = context.plan.options->constraints;
  if (constraints.barriers.empty() && constraints.forbidden.empty()) return Verdict::allow();
  const auto inside = [&](NodeId node) {
    return std::binary_search(candidate.nodes.begin(), candidate.nodes.end(), node);
  };
  for (NodeId node : candidate.nodes)
    for (NodeId input : context.plan.inputs[node]) {
      if (!inside(input)) continue;
      if (constraints.barriers.count(input))
        return Verdict::forbid("barrier", "the tensor between them was asked to be stored", {input});
      if (constraints.forbidden.count({input, node}))
        return Verdict::forbid("forbidden", "this edge was asked to stay cut", {input, node});
    }
  return Verdict::allow();
}

}  // namespace fusewise::fusion
