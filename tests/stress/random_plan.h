// Random plans: legal ones that no planner would choose. Any groups with an acyclic quotient, nodes computed again in
// several of them, schedules of every kind, anything that can be put in place put there.
#pragma once

#include <cstdint>

#include "compiler/compiler.h"

namespace fusewise::test {

// Replaces the plan. UnsupportedError where a node cannot be scheduled on its own.
void take_random_plan(compiler::Planned& planned, const SymbolValues& symbols, uint64_t seed);

}  // namespace fusewise::test
