// A graph as one region under a schedule, as a text case: blocks `graph`, `inputs` and `schedule`.
#pragma once

#include <optional>

#include "schedule/schedule.h"
#include "stress/graph_runner.h"
#include "support/case_file.h"

namespace fusewise::test {

// Interpreted as lowered and after the passes, for both widths of vectors. Empty if right, or if the schedule is refused.
std::string wrong_with(const GraphCase& what, const schedule::Schedule& schedule);
// "agrees", else what differs.
std::string outcome_of_region(const Case& text);

// Of the chooser's and many random schedules one that is wrong.
std::optional<schedule::Schedule> failing_schedule(const GraphCase& what);
// The graph of a failure made smaller, then its schedule plainer; nothing where no schedule of the whole graph fails.
std::optional<Case> shrunk_region(const std::string& name, GraphCase what);

}  // namespace fusewise::test
