#include "cli/measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace fusewise::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// At least 5 runs, else as many as there is time for.
std::vector<StepTime> profile(session::PreparedRun& run, size_t steps, double milliseconds) {
  std::vector<StepTime> times(steps);
  std::vector<double> seconds(steps);
  const auto start = Clock::now();
  int64_t runs = 0;
  for (; runs < 5 || (milliseconds_since(start) < milliseconds && runs < 1000); ++runs) {
    std::fill(seconds.begin(), seconds.end(), 0);
    run.run_with_timing(seconds);
    for (size_t i = 0; i < steps; ++i) {
      const double ms = seconds[i] * 1e3;
      times[i].mean_ms += ms;
      times[i].min_ms = runs == 0 ? ms : std::min(times[i].min_ms, ms);
    }
  }
  for (StepTime& time : times) time.mean_ms /= static_cast<double>(runs);
  return times;
}

}  // namespace

Measurement measure(session::PreparedRun& run, size_t steps, const MeasureOptions& options,
                    Console& console) {
  Measurement result;
  auto start = Clock::now();
  run.run();
  result.first_run_ms = milliseconds_since(start);
  const double warmup_ms = options.warmup_seconds * 1e3, seconds_ms = options.seconds * 1e3;
  console.progress("warm-up");
  for (start = Clock::now(); milliseconds_since(start) < warmup_ms;) run.run();
  console.progress("measure");
  start = Clock::now();
  const auto more = [&] {
    const auto done = static_cast<int64_t>(result.times_ms.size());
    // Times that are wanted in number are wanted exactly; otherwise at least one.
    return options.iterations ? done < *options.iterations
                              : done == 0 || milliseconds_since(start) < seconds_ms;
  };
  while (more()) {
    const auto begin = Clock::now();
    run.run();
    result.times_ms.push_back(milliseconds_since(begin));
  }
  if (options.profile) result.steps = profile(run, steps, seconds_ms / 2);
  return result;
}

double percentile(const std::vector<double>& sorted, double percent) {
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::clamp(rank, 1.0, static_cast<double>(sorted.size()))) - 1];
}

Json latency_json(const std::vector<double>& sorted, const std::vector<double>& percents) {
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  Json json = {{"min", sorted.front()}, {"mean", mean}, {"median", percentile(sorted, 50)}};
  for (const double percent : percents) json[fmt::format("p{:g}", percent)] = percentile(sorted, percent);
  json["max"] = sorted.back();
  return json;
}

}  // namespace fusewise::cli
