// Times of runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "cli/console.h"
#include "session/session.h"

namespace fusewise::cli {

struct MeasureOptions {
  double seconds = 2, warmup_seconds = 0.2;
  std::optional<int64_t> iterations;  // so many runs, whatever the time
  bool profile = false;
};

struct StepTime {
  double mean_ms = 0, min_ms = 0;
};
struct Measurement {
  double first_run_ms = 0;
  std::vector<double> times_ms;
  std::vector<StepTime> steps;  // with a profile
};

Measurement measure(session::PreparedRun& run, size_t steps, const MeasureOptions& options, Console& console);

// The smallest time that at least that share of the runs does not exceed.
double percentile(const std::vector<double>& sorted, double percent);
// min, mean, median, the percentiles and max.
nlohmann::ordered_json latency_json(const std::vector<double>& sorted, const std::vector<double>& percents);

}  // namespace fusewise::cli
