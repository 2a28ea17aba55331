#include <fmt/format.h>

#include "fusion/legality/check.h"

namespace fusewise::fusion {

// Scratch is private to a worker and meant to stay in its cache.
Verdict scratch_limit(const Candidate& candidate, const LegalityContext& context) {
  const double scratch = context.evaluator.evaluate(candidate.region).estimate.scratch_bytes;
  const auto most = static_cast<double>(context.plan.options->machine.l2_bytes);
  if (scratch <= most) return Verdict::allow();
  return Verdict::forbid(
      "scratch", fmt::format("a tile would keep {:.0f} KiB between them; a worker's cache holds {:.0f} KiB",
                             scratch / 1024, most / 1024));
}

}  // namespace fusewise::fusion
