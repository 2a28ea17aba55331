// The contract of all searches: a partition is refined in place, merging where it pays.
#pragma once

#include "fusion/legality/list.h"

namespace fusewise::fusion {

struct SearchResult {
  int64_t candidates = 0;  // merges that were looked at
  int64_t merges = 0;
  bool complete = true;  // false: the budget ended it
};

// Merges whatever gains most by the model until nothing gains. `fixed` clusters take no part.
SearchResult search_greedy(Partition& partition, const LegalityContext& context,
                           const std::vector<bool>& fixed_nodes);

// One cluster per model operator; operators that are no legal single region become several. Returns how many were.
int group_operators(Partition& partition, const LegalityContext& context,
                    const std::vector<bool>& fixed_nodes);

}  // namespace fusewise::fusion
