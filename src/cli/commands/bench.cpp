#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "base/text_table.h"
#include "cli/chrome_trace.h"
#include "cli/commands/commands.h"
#include "cli/measure.h"
#include "cli/process_memory.h"
#include "cli/session_options.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

struct Options {
  CompileFlags compile;
  std::optional<double> seconds, warmup;
  std::optional<int64_t> iterations;
  std::vector<std::string> percentiles, data_shapes;
  std::string trace_file;
  bool profile = false;
};

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

// What no kernel runs, in the order of the run.
Json host_functions(const session::Session& session) {
  Json names = Json::array();
  for (const session::StepInfo& step : session.steps())
    if (!step.host_function.empty()) names.push_back(step.host_function);
  return names;
}

// --data-shape NAME=1x16,1x128: the shapes of inputs, by the number of the measurement. Those with a single shape keep
// it in all of them.
using DataShapes = std::vector<std::vector<std::pair<std::string, std::vector<int64_t>>>>;

DataShapes data_shapes_of(const Options& options) {
  std::vector<std::pair<std::string, std::vector<std::vector<int64_t>>>> lists;
  size_t count = 1;
  for (const std::string& text : options.data_shapes) {
    const auto [name, value] = split_assignment("--data-shape", text);
    lists.emplace_back(name, std::vector<std::vector<int64_t>>());
    for (const std::string& shape : split(value, ","))
      lists.back().second.push_back(parse_shape("--data-shape", shape));
    count = std::max(count, lists.back().second.size());
  }
  for (const auto& [name, shapes] : lists)
    if (shapes.size() != 1 && shapes.size() != count)
      throw UsageError(fmt::format("--data-shape: '{}' has {} shapes and another input has {}", name,
                                   shapes.size(), count));
  DataShapes result(count);
  for (size_t i = 0; i < count; ++i)
    for (const auto& [name, shapes] : lists) result[i].emplace_back(name, shapes[shapes.size() == 1 ? 0 : i]);
  return result;
}

// One measurement: inputs of some shapes, bound to the session, and the times of its runs.
struct Measured {
  std::vector<graph::Tensor> inputs;
  session::PreparedRun run;
  Measurement times;
  std::vector<double> sorted_ms = {};
  double roofline_ms = 0;

  double median_ms() const { return percentile(sorted_ms, 50); }
};

std::string inputs_text(const session::SessionInfo& info, const Measured& measured) {
  std::string text;
  for (const auto& [name, type] : input_types(info, measured.inputs))
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, type);
  return text;
}

Json measured_json(const session::SessionInfo& info, const Measured& measured, const Options& options) {
  Json inputs = Json::object();
  for (const auto& [name, type] : input_types(info, measured.inputs)) inputs[name] = type;
  return {{"inputs", inputs},
          {"first_run_ms", measured.times.first_run_ms},
          {"latency_ms", latency_json(measured.sorted_ms, percents_of(options))},
          {"arena_bytes", measured.run.arena_bytes()},
          {"flops", measured.run.flops()},
          {"bytes_moved", measured.run.bytes_moved()},
          {"compulsory_bytes", measured.run.compulsory_bytes()},
          {"roofline_ms", json_number(measured.roofline_ms)},
          {"times_ms", measured.times.times_ms}};
}

// What holds for all shapes, then the first measurement.
Json report_json(const Prepared& prepared, const Measured& measured, const Options& options,
                 const MemoryUse& before) {
  const session::SessionInfo& info = prepared.session.info();
  const MemoryUse now = memory_use();
  Json json = {{"model", options.compile.model},
               {"target", options.compile.target},
               {"machine", info.machine},
               {"threads", info.threads},
               {"numerics", options.compile.numerics},
               {"fusion", options.compile.fusion},
               {"cache_hit", info.cache_hit},
               {"import_ms", info.import_ms},
               {"compile_ms", info.compile_ms},
               {"compile_phases_ms", info.phases_ms},
               {"load_ms", info.load_ms},
               {"kernels", info.kernels},
               {"phases", info.phases},
               {"host_steps", info.host_steps},
               {"control_steps", info.control_steps},
               {"host_functions", host_functions(prepared.session)},
               {"copies", info.copies},
               {"weights_bytes", info.weights_bytes},
               {"predicted_ms", json_number(info.predicted_ms)},
               {"lower_bound_ms", json_number(info.lower_bound_ms)},
               {"peak_rss_bytes", now.peak},
               {"growth_rss_bytes", now.peak - before.resident}};
  json.update(measured_json(info, measured, options));
  return json;
}

std::string report_words(const Prepared& prepared, const Measured& measured, const Options& options) {
  const session::SessionInfo& info = prepared.session.info();
  const std::vector<double>& sorted = measured.sorted_ms;
  const double median = measured.median_ms();
  TextTable table({{""}, {""}});
  const auto row = [&](const char* name, const std::string& text) { table.add_row({name, text}); };
  std::string latency = fmt::format("{:.4g} ms median, {:.4g} min, {:.4g} mean", median, sorted.front(),
                                    latency_json(sorted, {})["mean"].get<double>());
  for (const double percent : percents_of(options))
    latency += fmt::format(", {:.4g} p{:g}", percentile(sorted, percent), percent);
  row("latency", latency + fmt::format(", {:.4g} max  ({} runs)", sorted.back(), sorted.size()));
  row("first run",
      fmt::format("{:.4g} ms; import {:.4g}, compile {:.4g}, load {:.4g}{}", measured.times.first_run_ms,
                  info.import_ms, info.compile_ms, info.load_ms, info.cache_hit ? " (cached)" : ""));
  row("rate", fmt::format("{:.4g} GFLOP/s, {:.4g} GB/s, {:.0f}% of the roofline",
                          static_cast<double>(measured.run.flops()) / median / 1e6,
                          static_cast<double>(measured.run.bytes_moved()) / median / 1e6,
                          100 * measured.roofline_ms / median));
  row("kernels", fmt::format("{} with {} phases, {} copies, {} host steps, {} loops and branches",
                             info.kernels, info.phases, info.copies, info.host_steps, info.control_steps));
  row("memory", fmt::format("{:.1f} MB arena, {:.1f} MB weights, {:.1f} MB peak of the process",
                            static_cast<double>(measured.run.arena_bytes()) / 1e6,
                            static_cast<double>(info.weights_bytes) / 1e6,
                            static_cast<double>(memory_use().peak) / 1e6));
  row("run on", fmt::format("{}, {} thread{}", info.machine, info.threads, info.threads == 1 ? "" : "s"));
  return table.to_string();
}

std::string shapes_table(const session::SessionInfo& info, const std::vector<Measured>& all) {
  TextTable table({{"median ms", Align::right},
                   {"min", Align::right},
                   {"p90", Align::right},
                   {"runs", Align::right},
                   {"GFLOP/s", Align::right},
                   {"roofline", Align::right},
                   {"inputs"}});
  for (const Measured& m : all)
    table.add_row({fmt::format("{:.4g}", m.median_ms()), fmt::format("{:.4g}", m.sorted_ms.front()),
                   fmt::format("{:.4g}", percentile(m.sorted_ms, 90)), fmt::format("{}", m.sorted_ms.size()),
                   fmt::format("{:.4g}", static_cast<double>(m.run.flops()) / m.median_ms() / 1e6),
                   fmt::format("{:.0f}%", 100 * m.roofline_ms / m.median_ms()), inputs_text(info, m)});
  return table.to_string();
}

Measured measure_on(const Prepared& prepared, std::vector<graph::Tensor> inputs, const Options& options,
                    Console& console) {
  session::PreparedRun run = prepared.session.prepare(inputs);
  MeasureOptions how;
  how.seconds = options.seconds.value_or(how.seconds);
  how.warmup_seconds = options.warmup.value_or(how.warmup_seconds);
  how.iterations = options.iterations;
  how.profile = options.profile;
  Measurement times = measure(run, prepared.session.steps().size(), how, console);
  Measured measured{std::move(inputs), std::move(run), std::move(times)};
  measured.sorted_ms = measured.times.times_ms;
  std::sort(measured.sorted_ms.begin(), measured.sorted_ms.end());
  const machine::Machine machine = target_machine(options.compile.target, options.compile.machine_file);
  measured.roofline_ms = roofline_ms(measured.run, machine, prepared.session.info().threads);
  return measured;
}

// One executable for all of the shapes.
std::vector<Measured> measure_all(const Prepared& prepared, const Options& options, const DataShapes& shapes,
                                  Console& console) {
  std::vector<Measured> all;
  for (const auto& of_inputs : shapes) {
    std::vector<graph::Tensor> inputs = prepared.inputs;
    if (!of_inputs.empty()) {
      session::InputRequest request = options.compile.inputs.request();
      request.shapes.insert(request.shapes.end(), of_inputs.begin(), of_inputs.end());
      inputs = session::prepare_inputs(prepared.session.info().inputs, request, [&](const std::string& text) {
                 console.warn(text);
               }).tensors;
    }
    all.push_back(measure_on(prepared, std::move(inputs), options, console));
  }
  return all;
}

void check_usage(const Options& options) {
  percents_of(options);
  if (options.iterations && *options.iterations < 1)
    throw UsageError(fmt::format("--iterations: {} is not positive", *options.iterations));
  if (!options.data_shapes.empty() && options.compile.static_shapes)
    throw UsageError("--data-shape: an executable for several shapes is not --static");
}

int bench(const Options& options, Console& console) {
  check_usage(options);  // wrong usage is said before anything is done
  const DataShapes shapes = data_shapes_of(options);
  const MemoryUse before = memory_use();
  CompileFlags flags = options.compile;
  // The first of the shapes serves what needs inputs before there is an executable.
  for (const std::string& text : options.data_shapes)
    flags.inputs.shapes.push_back(text.substr(0, text.find(',')));
  const Prepared prepared = prepare(flags, console);
  std::vector<Measured> all = measure_all(prepared, options, shapes, console);
  Json json = report_json(prepared, all.front(), options, before);
  console.print(report_words(prepared, all.front(), options));
  if (!options.data_shapes.empty()) {
    console.print("\n" + shapes_table(prepared.session.info(), all));
    json["shapes"] = Json::array();
    for (const Measured& m : all)
      json["shapes"].push_back(measured_json(prepared.session.info(), m, options));
  }
  if (options.profile) {
    const std::vector<ProfileRow> rows = profile_rows(prepared.session, all.front().times);
    console.print("\n" + profile_table(rows));
    json["profile"] = profile_json(rows);
  }
  if (!options.trace_file.empty()) {
    constexpr int64_t traced_runs = 3;
    const auto pieces = all.front().run.run_with_trace(traced_runs);
    write_file_atomically(options.trace_file,
                          std::string_view(chrome_trace(options.compile.model, prepared.session, pieces)));
    json["trace"] = options.trace_file;
  }
  console.finish("bench", json);
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
  parser.option("--trace", options->trace_file, "FILE.json",
                "write what each worker thread did in three runs, for chrome://tracing or ui.perfetto.dev");
  parser.list(
      "--data-shape", options->data_shapes, "NAME=1x16,1x128",
      "measure several shapes of an input with one executable; of several inputs together, where it is "
      "given again");
  return [options](Console& console) { return bench(*options, console); };
}

}  // namespace

Command bench_command() {
  return {"bench", "measures how fast a model runs",
          "fusewise bench model.onnx --threads 8 --seconds 5 --profile\n"
          "  fusewise bench model.onnx --data-shape input_ids=1x16,1x128 --trace trace.json",
          declare};
}

}  // namespace fusewise::cli
