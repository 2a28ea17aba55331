// The list of legality checks, cheap ones first.
#pragma once

#include <span>
#include <string_view>

#include "fusion/legality/check.h"

namespace fusewise::fusion {

struct LegalityCheck {
  std::string_view name;
  Verdict (*check)(const Candidate&, const LegalityContext&);
  bool dear;  // searches tiles
};

std::span<const LegalityCheck> legality_checks();

// The first refusal, or allow. `dear` false leaves out the checks that search tiles.
Verdict is_legal(const Candidate& candidate, const LegalityContext& context, bool dear = true);

}  // namespace fusewise::fusion
