// Random plans: legal ones that no planner would choose. Any groups with an acyclic quotient, nodes computed again in
// several of them, schedules of every kind.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/compiler.h"

namespace fusewise::test {

// UnsupportedError where a node cannot be scheduled on its own.
std::vector<fusion::PlannedRegion> random_regions(const compiler::Planned& planned,
                                                  const SymbolValues& symbols, uint64_t seed);

}  // namespace fusewise::test
