#include "fusion/legality/check.h"

namespace fusewise::fusion {

// A single-phase loop tree exists that the tile chooser finds.
Verdict schedulable(const Candidate& candidate, const LegalityContext& context) {
  const Evaluated& evaluated = context.evaluator.evaluate(candidate.region);
  Verdict verdict = evaluated.verdict;
  verdict.nodes.clear();  // of the first region with this structure
  return verdict;
}

}  // namespace fusewise::fusion
