#include <fmt/format.h>

#include "fusion/legality/check.h"

namespace fusewise::fusion {

Verdict region_size(const Candidate& candidate, const LegalityContext&) {
  if (candidate.region.nodes.size() <= most_region_nodes) return Verdict::allow();
  return Verdict::forbid("region-size",
                         fmt::format("together they are {} primitives; a kernel holds at most {}",
                                     candidate.region.nodes.size(), most_region_nodes));
}

}  // namespace fusewise::fusion
