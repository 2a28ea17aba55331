#include "fusion/legality/check.h"

namespace fusewise::fusion {

// Steps that follow each other, and what no kernel computes, are never computed together with others.
Verdict standing_alone(const Candidate& candidate, const LegalityContext& context) {
  for (NodeId node : candidate.nodes)
    if (context.plan.stands_alone(node))
      return Verdict::forbid(
          "alone", "one of them is no expression over independent elements: it is a step of its own", {node});
  return Verdict::allow();
}

}  // namespace fusewise::fusion
