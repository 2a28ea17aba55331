#include "fusion/legality/list.h"

#include <algorithm>
#include <array>

namespace fusewise::fusion {

namespace {

constexpr std::array checks = {
    LegalityCheck{"standing_alone", standing_alone, false},
    LegalityCheck{"region_size", region_size, false},
    LegalityCheck{"once_separation", once_separation, false},
    LegalityCheck{"assembled_parts", assembled_parts, false},
    LegalityCheck{"user_constraints", user_constraints, false},
    LegalityCheck{"argument_count", argument_count, false},
    LegalityCheck{"gathered_operand", gathered_operand, false},
    LegalityCheck{"convexity", convexity, false},
    LegalityCheck{"schedulable", schedulable, true},
    LegalityCheck{"scratch_limit", scratch_limit, true},
};

}  // namespace

std::span<const LegalityCheck> legality_checks() { return checks; }

Verdict is_legal(const Candidate& candidate, const LegalityContext& context, bool dear) {
  for (const LegalityCheck& check : checks) {
    if (check.dear && !dear) continue;
    if (Verdict verdict = check.check(candidate, context); !verdict) return verdict;
  }
  return Verdict::allow();
}

Candidate make_candidate(const PlanContext& context, const Partition& partition, int a, int b) {
  Candidate candidate;
  candidate.a = a;
  candidate.b = b;
  const std::span<const NodeId> first = partition.nodes(a), second = partition.nodes(b);
  std::merge(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(candidate.nodes));
  candidate.region = region_of(context, candidate.nodes);
  return candidate;
}

}  // namespace fusewise::fusion
