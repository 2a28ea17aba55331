// Random schedules of a region: which members are stored, where each is attached, placements, reuse rules, loops and
// their tiles, vector axes, grid loops, phases. Most are legal; `build_tree` has the last word.
#pragma once

#include "schedule/region_forms.h"
#include "schedule/schedule.h"
#include "support/random.h"

namespace fusewise::test {

schedule::Schedule random_schedule(const schedule::RegionForms& forms, Random& random);

// The schedule with one of its reductions run over blocks or in parts of odd sizes, earlier ones of its chain carried
// along where they hang beside it. Nothing where there is no reduction.
bool draw_blocks(const schedule::RegionForms& forms, Random& random, schedule::Schedule& schedule);

}  // namespace fusewise::test
