#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text_table.h"
#include "cli/commands/commands.h"
#include "cli/process_memory.h"
#include "cli/session_options.h"

namespace fusewise::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

struct Options {
  CompileFlags compile;
  std::optional<double> seconds, warmup;
  std::optional<int64_t> iterations;
  std::vector<std::string> percentiles;
  bool profile = false;
};

struct StepTime {
  double mean_ms = 0, min_ms = 0;
};
struct Measurement {
  double first_run_ms = 0;
  std::vector<double> times_ms;
  std::vector<StepTime> steps;  // with --profile
};

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

Measurement measure(session::PreparedRun& run, size_t steps, const Options& options, Console& console) {
  Measurement result;
  auto start = Clock::now();
  run.run();
  result.first_run_ms = milliseconds_since(start);
  const double warmup_ms = options.warmup.value_or(0.2) * 1e3, seconds_ms = options.seconds.value_or(2) * 1e3;
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

// The smallest time that at least that share of the runs does not exceed.
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

// What the machine could do at best: its arithmetic, or the memory traffic that no plan avoids.
double roofline_ms(const session::PreparedRun& run, const machine::Machine& machine, int threads) {
  const double cycles_per_ms = machine.gigahertz * 1e6;
  const double flops_per_cycle = 2 * machine.fma_per_cycle() * threads;
  const auto bytes = static_cast<double>(run.compulsory_bytes());
  const bool cached = bytes <= static_cast<double>(machine.l3_bytes);
  const double bytes_per_cycle = (cached ? machine.l3_bandwidth : machine.memory_bandwidth) * threads;
  return std::max(static_cast<double>(run.flops()) / flops_per_cycle, bytes / bytes_per_cycle) /
         cycles_per_ms;
}

std::vector<double> percents_of(const Options& options) {
  std::vector<double> percents = {90, 95, 99};
  for (const std::string& list : options.percentiles)
    for (const std::string& text : split(list, ",")) {
      const double percent = parse_number("--percentile", text);
      if (!(percent > 0 && percent <= 100))
        throw UsageError(fmt::format("--percentile: {} is not between 0 and 100", text));
      percents.push_back(percent);
    }
  std::sort(percents.begin(), percents.end());
  percents.erase(std::unique(percents.begin(), percents.end()), percents.end());
  return percents;
}

struct ProfileRow {
  const session::StepInfo* step;
  StepTime time;
};
std::vector<ProfileRow> profile_rows(const session::Session& session, const Measurement& measured) {
  std::vector<ProfileRow> rows;
  for (size_t i = 0; i < measured.steps.size(); ++i) rows.push_back({&session.steps()[i], measured.steps[i]});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.time.mean_ms > b.time.mean_ms; });
  return rows;
}

std::string profile_table(const std::vector<ProfileRow>& rows) {
  double total = 0;
  for (const ProfileRow& row : rows) total += row.time.mean_ms;
  TextTable table({{"us", Align::right},
                   {"min us", Align::right},
                   {"share", Align::right},
                   {"predicted us", Align::right},
                   {"kernel"},
                   {"nodes"}});
  for (const ProfileRow& row : rows)
    table.add_row({fmt::format("{:.1f}", row.time.mean_ms * 1e3),
                   fmt::format("{:.1f}", row.time.min_ms * 1e3),
                   fmt::format("{:.1f}%", total > 0 ? 100 * row.time.mean_ms / total : 0),
                   row.step->predicted_ms ? fmt::format("{:.1f}", *row.step->predicted_ms * 1e3) : "",
                   row.step->kernel.empty() ? "copy" : row.step->kernel, row.step->label});
  return table.to_string();
}

Json profile_json(const std::vector<ProfileRow>& rows) {
  Json list = Json::array();
  for (const ProfileRow& row : rows) {
    Json json = {{"kernel", row.step->kernel},
                 {"nodes", row.step->label},
                 {"ms", row.time.mean_ms},
                 {"min_ms", row.time.min_ms},
                 {"phases", row.step->phases}};
    if (row.step->predicted_ms) json["predicted_ms"] = json_number(*row.step->predicted_ms);
    list.push_back(json);
  }
  return list;
}

struct Report {
  Json json;
  std::string words;
};

Report report_of(const Prepared& prepared, const session::PreparedRun& run, const Measurement& measured,
                 const Options& options, const MemoryUse& before) {
  const session::SessionInfo& info = prepared.session.info();
  std::vector<double> sorted = measured.times_ms;
  std::sort(sorted.begin(), sorted.end());
  const MemoryUse now = memory_use();
  const machine::Machine machine = target_machine(options.compile.target, options.compile.machine_file);
  const double best_ms = roofline_ms(run, machine, info.threads), median = percentile(sorted, 50);
  Json inputs = Json::object();
  for (const auto& [name, type] : input_types(info, prepared.inputs)) inputs[name] = type;
  Json json = {{"model", options.compile.model},
               {"target", options.compile.target},
               {"machine", info.machine},
               {"threads", info.threads},
               {"numerics", options.compile.numerics},
               {"fusion", options.compile.fusion},
               {"inputs", inputs},
               {"cache_hit", info.cache_hit},
               {"import_ms", info.import_ms},
               {"compile_ms", info.compile_ms},
               {"compile_phases_ms", info.phases_ms},
               {"load_ms", info.load_ms},
               {"first_run_ms", measured.first_run_ms},
               {"latency_ms", latency_json(sorted, percents_of(options))},
               {"kernels", info.kernels},
               {"phases", info.phases},
               {"host_steps", info.host_steps},
               {"copies", info.copies},
               {"arena_bytes", run.arena_bytes()},
               {"weights_bytes", info.weights_bytes},
               {"flops", run.flops()},
               {"bytes_moved", run.bytes_moved()},
               {"compulsory_bytes", run.compulsory_bytes()},
               {"roofline_ms", json_number(best_ms)},
               {"predicted_ms", json_number(info.predicted_ms)},
               {"lower_bound_ms", json_number(info.lower_bound_ms)},
               {"peak_rss_bytes", now.peak},
               {"growth_rss_bytes", now.peak - before.resident},
               {"times_ms", measured.times_ms}};
  TextTable table({{""}, {""}});
  const auto row = [&](const char* name, const std::string& text) { table.add_row({name, text}); };
  std::string latency = fmt::format("{:.4g} ms median, {:.4g} min, {:.4g} mean", median, sorted.front(),
                                    json["latency_ms"]["mean"].get<double>());
  for (const double percent : percents_of(options))
    latency += fmt::format(", {:.4g} p{:g}", percentile(sorted, percent), percent);
  row("latency", latency + fmt::format(", {:.4g} max  ({} runs)", sorted.back(), sorted.size()));
  row("first run",
      fmt::format("{:.4g} ms; import {:.4g}, compile {:.4g}, load {:.4g}{}", measured.first_run_ms,
                  info.import_ms, info.compile_ms, info.load_ms, info.cache_hit ? " (cached)" : ""));
  row("rate", fmt::format("{:.4g} GFLOP/s, {:.4g} GB/s, {:.0f}% of the roofline",
                          static_cast<double>(run.flops()) / median / 1e6,
                          static_cast<double>(run.bytes_moved()) / median / 1e6, 100 * best_ms / median));
  row("kernels", fmt::format("{} with {} phases, {} copies, {} host steps", info.kernels, info.phases,
                             info.copies, info.host_steps));
  row("memory",
      fmt::format("{:.1f} MB arena, {:.1f} MB weights, {:.1f} MB peak of the process",
                  static_cast<double>(run.arena_bytes()) / 1e6, static_cast<double>(info.weights_bytes) / 1e6,
                  static_cast<double>(now.peak) / 1e6));
  row("run on", fmt::format("{}, {} thread{}", info.machine, info.threads, info.threads == 1 ? "" : "s"));
  return {json, table.to_string()};
}

int bench(const Options& options, Console& console) {
  percents_of(options);  // wrong usage is said before anything is done
  if (options.iterations && *options.iterations < 1)
    throw UsageError(fmt::format("--iterations: {} is not positive", *options.iterations));
  const MemoryUse before = memory_use();
  const Prepared prepared = prepare(options.compile, console);
  session::PreparedRun run = prepared.session.prepare(prepared.inputs);
  const Measurement measured = measure(run, prepared.session.steps().size(), options, console);
  Report report = report_of(prepared, run, measured, options, before);
  console.print(report.words);
  if (options.profile) {
    const std::vector<ProfileRow> rows = profile_rows(prepared.session, measured);
    console.print("\n" + profile_table(rows));
    report.json["profile"] = profile_json(rows);
  }
  console.finish("bench", report.json);
  return exit_done;
}

Action declare(Parser& parser) {
  auto options = std::make_shared<Options>();
  options->compile.declare(parser);
  parser.option("--seconds", options->seconds, "S", "how long to measure (2)");
  parser.option("--iterations", options->iterations, "N", "how many runs to measure, whatever the time");
  parser.option("--warmup", options->warmup, "S", "how long to run before measuring (0.2)");
  parser.list("--percentile", options->percentiles, "P,...", "further percentiles of the latency");
  parser.flag("--profile", options->profile, "list the kernels by time");
  return [options](Console& console) { return bench(*options, console); };
}

}  // namespace

Command bench_command() {
  return {"bench", "measures how fast a model runs",
          "fusewise bench model.onnx --threads 8 --seconds 5 --profile", declare};
}

}  // namespace fusewise::cli
