#include <algorithm>

#include "fusion/legality/check.h"

namespace fusewise::fusion {

// What is put together in place has no kernel: each part is complete in memory before a reader of the whole begins.
Verdict assembled_parts(const Candidate& candidate, const LegalityContext& context) {
  const Assemblies& assemblies = context.plan.options->assemblies;
  if (assemblies.wholes.empty() || candidate.nodes.size() < 2) return Verdict::allow();
  for (NodeId whole : candidate.nodes) {
    if (!assemblies.wholes.count(whole)) continue;
    for (Value part : context.plan.graph->node(whole).operands) {
      if (!std::binary_search(candidate.nodes.begin(), candidate.nodes.end(), part.node)) continue;
      if (const PartCopy* copy = assemblies.copy_of(part, whole))
        return Verdict::forbid(copy->reason, "it is copied into the concatenation: " + copy->detail,
                               {part.node});
      return Verdict::forbid("in-place", "it is written straight into its part of the concatenation",
                             {part.node, whole});
    }
    return Verdict::forbid(
        "assembled", "the concatenation is put together in place, by the kernels of its parts", {whole});
  }
  return Verdict::allow();
}

}  // namespace fusewise::fusion
