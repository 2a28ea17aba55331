// The physical layout of every value, decided before regions are formed: values around windowed contractions run
// channels last, constant operands of contractions lie in panels of register-tile columns. Values that the caller
// sees stay row-major.
#pragma once

#include <set>
#include <vector>

#include "graph/graph.h"
#include "machine/machine.h"
#include "schedule/schedule.h"

namespace fusewise::fusion {

// Per node: its value depends on constants only (sources of run-time values excluded).
std::vector<bool> constant_only(const graph::Graph& graph);

// Values without an entry are row-major.
schedule::Layouts assign_layouts(const graph::Graph& graph, const machine::Machine& machine,
                                 const SymbolValues& usual);

}  // namespace fusewise::fusion
