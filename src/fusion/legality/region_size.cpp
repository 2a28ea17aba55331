#include <fmt/format.h>

#include "fusion/legality/check.h"

namespace fusewise::fusion {

// Kernels beyond this size take longer to compile than they can save.
constexpr size_t most_nodes = 128;

Verdict region_size(const Candidate& candidate, const LegalityContext&) {
  if (candidate.region.nodes.size() <= most_nodes) return Verdict::allow();
  return Verdict::forbid("region-size",
                         fmt::format("together they are {} primitives; a kernel holds at most {}",
                                     candidate.region.nodes.size(), most_nodes));
}

}  // namespace fusewise::fusion
