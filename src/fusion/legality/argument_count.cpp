#include <fmt/format.h>

#include <algorithm>

#include "fusion/legality/check.h"

namespace fusewise::fusion {

// More pointers than this no longer fit registers and cost a load each in every loop.
constexpr size_t most_arguments = 32;

Verdict argument_count(const Candidate& candidate, const LegalityContext& context) {
  const cost::GraphFacts& facts = context.plan.facts;
  std::vector<NodeId> read;
  for (NodeId node : candidate.region.nodes)
    for (NodeId operand : facts.operands(node))
      if (!facts.at(operand).literal && !graph::contains(candidate.region, operand)) read.push_back(operand);
  std::ranges::sort(read);
  read.erase(std::ranges::unique(read).begin(), read.end());
  const size_t arguments = candidate.region.outputs.size() + read.size();
  if (arguments <= most_arguments) return Verdict::allow();
  return Verdict::forbid(
      "arguments",
      fmt::format("the kernel would have {} arguments; at most {} are allowed", arguments, most_arguments));
}

}  // namespace fusewise::fusion
