// Many random graphs through the compiler, and a summary of what they were, what was refused and what was wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stress/graph_runner.h"

namespace fusewise::test {

struct StressOptions {
  int64_t count = 1000;
  uint64_t seed = 1;
  bool compile = false;                // machine code instead of the kernel interpreter
  std::optional<GraphOptions> graphs;  // how they are composed; nothing: by stress_graphs
  double seconds = 0;                  // stop after so long; 0: never
  int64_t most_failures = 5;           // stop after so many
  bool progress = false;               // say on standard error how far it is, every 30 seconds
};

struct StressFailure {
  uint64_t seed = 0;
  GraphSettings settings;
  std::string words;
};

struct StressSummary {
  int64_t graphs = 0, runs = 0, unfit = 0, refused = 0;
  Counts coverage, settings, plans, refusals;
  std::vector<StressFailure> failures;
  double slowest = 0;
  uint64_t slowest_seed = 0;
};

// How the graph of a seed is composed: small or large, wide or deep, with and without promises.
GraphOptions stress_graphs(uint64_t seed);

StressSummary run_stress(const StressOptions& options);
std::string to_text(const StressSummary& summary);

// Makes a fatal signal print which graph it was, and an interruption end the run with what it has found.
void handle_signals();

}  // namespace fusewise::test
