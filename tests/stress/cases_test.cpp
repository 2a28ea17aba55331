// Graphs on which the compiler once was wrong, as small as they came.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "stress/graph_case.h"
#include "stress/region_case.h"

namespace fusewise::test {
namespace {

std::string outcome(const Case& text) {
  if (text.has("schedule")) return outcome_of_region(text);
  const GraphCase what = graph_of(text);
  const GraphOracle oracle(what);
  for (const GraphSettings& settings : settings_of(text)) {
    const bool compiled =
        settings.execution == Execution::compiled || settings.execution == Execution::guarded;
    if (compiled && !codegen::host_runs(settings.target)) continue;
    const GraphOutcome outcome = run_graph(what, oracle, settings);
    if (outcome.kind == GraphOutcome::Kind::refused) return "refused: " + outcome.words;
    if (outcome.kind == GraphOutcome::Kind::wrong) return to_text(settings) + ": " + outcome.words;
  }
  return "agrees";
}

TEST(Cases, AreRight) { run_cases("stress", outcome); }

}  // namespace
}  // namespace fusewise::test
