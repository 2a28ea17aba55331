// Schedules for a GPU: plain ones, by fixed sizes and without prices. The first of three forms that is legal and keeps
// within the machine's limits:
//   1. a contraction with an elementwise epilogue: 32 x 32 results a group, 4 x 4 a thread, operands that the region
//      computes (or copies) brought to shared memory in steps of 16 along the reduction;
//   2. everything in one loop nest: groups over rows that all stages have in common, what is stored is shared;
//   3. one phase after the other, everything that is stored in global memory; at last every member of the region.
// The threads of a group reduce long rows in teams, in the order that is fixed: a thread for each lane of a block.
#pragma once

#include "machine/machine.h"
#include "schedule/region_forms.h"
#include "schedule/tree.h"

namespace fusewise::fusion {

struct GroupSchedule {
  Verdict verdict = Verdict::allow();  // of the last form, where none is possible
  schedule::Schedule schedule;
  schedule::Tree tree;
};

GroupSchedule choose_group_schedule(const schedule::RegionForms& forms, const schedule::Layouts& layouts,
                                    const machine::Machine& machine, ReductionOrder order);

}  // namespace fusewise::fusion
