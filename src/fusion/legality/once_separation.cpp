#include "fusion/legality/check.h"

namespace fusewise::fusion {

// What depends on constants only runs when the program is loaded, all else in every run.
Verdict once_separation(const Candidate& candidate, const LegalityContext& context) {
  const bool once = context.plan.is_once(candidate.nodes.front());
  for (NodeId node : candidate.nodes)
    if (context.plan.is_once(node) != once)
      return Verdict::forbid(
          "once", "one of them depends on constants only and is computed when the model is loaded", {node});
  return Verdict::allow();
}

}  // namespace fusewise::fusion
