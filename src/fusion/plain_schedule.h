// The simplest schedule: one stage, one element at a time along every axis but the vectors'. Right for whatever has
// a single stored result and computes the rest where it is used; what is left when the tile chooser's is refused.
#pragma once

#include <optional>

#include "machine/machine.h"
#include "schedule/region_forms.h"
#include "schedule/schedule.h"

namespace fusewise::fusion {

std::optional<schedule::Schedule> plain_schedule(const schedule::RegionForms& forms,
                                                 const machine::Machine& machine, const ReductionOrder& order,
                                                 const SymbolValues& usual);

}  // namespace fusewise::fusion
