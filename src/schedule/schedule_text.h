// The text form of a schedule, printed and parsed; parse_schedule(to_text(s)) == s. One line per stage, in order:
//
//   order block=512 lanes=16
//   stage %9 root phase=0 memory loops=[0:64 1:16] grid=1 vector=1 storage=[0 1]
//   stage %7 in=0 depth=2 scratch slide=1 loops=[] vector=-1 storage=[1 0]
//
// `in` is the number of the stage it is attached to; after the placement come `partial` and the rule of reuse.
#pragma once

#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace fusewise::schedule {

std::string to_text(const Schedule& schedule);
std::string to_text(const StageChoice& stage);
// UserError with the line for whatever is no schedule. Blank lines and lines that begin with # are skipped.
Schedule parse_schedule(std::string_view text);

}  // namespace fusewise::schedule
