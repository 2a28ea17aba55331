// Where merges are proposed: pairs of clusters that may gain by becoming one. Knows neither cost nor legality.
#pragma once

#include <utility>
#include <vector>

#include "fusion/partition.h"

namespace fusewise::fusion {

enum class CandidateKind : uint8_t {
  vertical,  // one reads what the other writes: epilogues, prologues, reduction chains, several contractions
  sibling,   // both read the same value: one pass over it, one dispatch
};

struct Proposal {
  CandidateKind kind = CandidateKind::vertical;
  int a = -1, b = -1;
};

// Proposals that `cluster` is part of, each pair once, by cluster number: all of them, or `few` where it has very many
// neighbours.
std::vector<Proposal> proposals_of(const PlanContext& context, const Partition& partition, int cluster,
                                   bool few);

}  // namespace fusewise::fusion
