#include "stress/region_case.h"

#include "base/error.h"
#include "compiler/random_schedule.h"
#include "compiler/region_runner.h"
#include "fusion/tiles/choose_schedule.h"
#include "schedule/schedule_text.h"
#include "stress/graph_case.h"
#include "stress/shrink.h"

namespace fusewise::test {

using schedule::Schedule;

std::string wrong_with(const GraphCase& what, const Schedule& schedule) {
  for (const int bits : {256, 512}) {
    RegionRun how;
    how.compile = false;
    how.vector_bits = bits;
    const std::string words =
        check_region(what.graph, whole_region(what.graph), schedule, {}, what.inputs, how);
    if (!words.empty() && !words.starts_with("refused: ")) return words;
  }
  return {};
}

std::string outcome_of_region(const Case& text) {
  const std::string words = wrong_with(graph_of(text), schedule::parse_schedule(text.text("schedule")));
  return words.empty() ? "agrees" : words;
}

std::optional<Schedule> failing_schedule(const GraphCase& what) {
  const schedule::RegionForms forms = schedule::region_forms(what.graph, whole_region(what.graph));
  std::vector<Schedule> tried;
  for (const char* target : {"x86-64-v3", "x86-64-v4"})
    tried.push_back(fusion::choose_schedule(forms, {}, machine::host_machine(target), {}));
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    tried.push_back(random_schedule(forms, random));
  }
  for (const Schedule& schedule : tried)
    if (!wrong_with(what, schedule).empty()) return schedule;
  return std::nullopt;
}

namespace {

// Choices at their plainest, one at a time.
void simplify(const GraphCase& what, Schedule& schedule) {
  const auto attempt = [&](auto change) {
    Schedule simpler = schedule;
    change(simpler);
    if (simpler == schedule || wrong_with(what, simpler).empty()) return false;
    schedule = std::move(simpler);
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < schedule.stages.size(); ++i) {
      changed = attempt([&](Schedule& s) { s.stages[i].vector_axis = -1; }) || changed;
      changed = attempt([&](Schedule& s) { s.stages[i].grid_loops = 0; }) || changed;
      changed =
          attempt([&](Schedule& s) { std::sort(s.stages[i].storage.begin(), s.stages[i].storage.end()); }) ||
          changed;
      for (size_t k = schedule.stages[i].loops.size(); k-- > 0;)
        changed = attempt([&](Schedule& s) {
                    s.stages[i].loops.erase(s.stages[i].loops.begin() + static_cast<std::ptrdiff_t>(k));
                  }) ||
                  changed;
    }
  }
}

}  // namespace

std::optional<Case> shrunk_region(const std::string& name, GraphCase what) {
  if (!failing_schedule(what)) return std::nullopt;
  what = shrink(std::move(what), [](const GraphCase& c) { return failing_schedule(c).has_value(); }, {300});
  Schedule schedule = *failing_schedule(what);
  simplify(what, schedule);
  Case result = to_case(name, what, {});
  const std::string words = wrong_with(what, schedule);
  result.comments.push_back("# " + words.substr(0, words.find('\n')));
  result.blocks.push_back({"schedule", schedule::to_text(schedule)});
  result.blocks.push_back({"expect", "agrees\n"});
  return result;
}

}  // namespace fusewise::test
