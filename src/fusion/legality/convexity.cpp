#include "fusion/legality/check.h"

namespace fusewise::fusion {

// The relation "reads what the other writes" between kernels must stay acyclic, through all other kernels.
Verdict convexity(const Candidate& candidate, const LegalityContext& context) {
  if (candidate.a < 0 || !context.partition.would_cycle(candidate.a, candidate.b)) return Verdict::allow();
  return Verdict::forbid(
      "cycle",
      "another kernel reads the result of one and is read by the other: each would wait for the other",
      {context.partition.nodes(candidate.a).back(), context.partition.nodes(candidate.b).front()});
}

}  // namespace fusewise::fusion
