#include <fmt/format.h>

#include "fusion/legality/check.h"
#include "schedule/region_forms.h"

namespace fusewise::fusion {

// More pointers than this no longer fit registers and cost a load each in every loop.
constexpr size_t most_arguments = 32;

Verdict argument_count(const Candidate& candidate, const LegalityContext& context) {
  size_t arguments = candidate.region.outputs.size();
  for (Value v : graph::region_inputs(*context.plan.graph, candidate.region))
    if (!schedule::literal_of(*context.plan.graph, v)) ++arguments;
  if (arguments <= most_arguments) return Verdict::allow();
  return Verdict::forbid(
      "arguments",
      fmt::format("the kernel would have {} arguments; at most {} are allowed", arguments, most_arguments));
}

}  // namespace fusewise::fusion
