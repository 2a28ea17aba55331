#include "session/compile.h"

#include <chrono>

#include "base/cpu_limits.h"
#include "graph/statistics.h"
#include "session/code_version.h"
#include "session/mapped_constants.h"

namespace fusewise::session {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// A plan's regions in the order of the steps that they become, bodies behind their node.
void add_regions(const fusion::FusionPlan& plan, std::vector<const fusion::PlannedRegion*>& regions) {
  for (const fusion::PlannedRegion& region : plan.regions) {
    if (region.once || region.assembled) continue;
    regions.push_back(&region);
    for (const fusion::FusionPlan& body : region.bodies) add_regions(body, regions);
  }
}

// By run step; what a body's step takes once, and a loop or a branch as a whole. Copies have no prediction of their own.
std::vector<std::optional<double>> predicted_steps(const compiler::Compiled& compiled) {
  std::vector<const fusion::PlannedRegion*> regions;
  add_regions(compiled.plan, regions);
  std::vector<std::optional<double>> predicted;
  size_t next = 0;
  for (const program::Step& step : compiled.program.run_steps) {
    std::optional<double>& entry = predicted.emplace_back();
    if (step.kind == program::StepKind::copy || next == regions.size()) continue;
    entry = regions[next++]->predicted_microseconds / 1e3;
  }
  return predicted;
}

Metadata metadata_of(const graph::Graph& original, const compiler::Compiled& compiled,
                     const machine::Machine& machine) {
  Metadata metadata;
  for (const InputInfo& input : inputs_of(original)) metadata.index_extents.push_back(input.index_extent);
  metadata.flops = graph::flops_of(original);
  metadata.phases_ms = compiled.milliseconds;
  metadata.predicted_ms = compiled.plan.predicted_microseconds / 1e3;
  metadata.lower_bound_ms = compiled.plan.lower_bound_microseconds / 1e3;
  metadata.predicted_step_ms = predicted_steps(compiled);
  metadata.machine = machine.name;
  metadata.compiler = compiled.program.metadata;
  return metadata;
}

}  // namespace

Cache cache_for(const SessionOptions& options, const Warn& warn) {
  if (!options.use_cache) return {};
  std::optional<std::filesystem::path> folder = default_cache_folder();
  if (options.cache_folder) folder = *options.cache_folder;
  if (!folder) return {};
  return Cache(*folder, cache_limit(warn), warn);
}

compiler::CompileOptions compile_options_for(const SessionOptions& options) {
  compiler::CompileOptions compile;
  compile.numerics = options.numerics;
  compile.fusion = options.fusion;
  compile.target = options.target;
  compile.machine = options.machine ? *options.machine : machine::host_machine();
  compile.threads = options.threads > 0 ? options.threads : default_thread_count();
  for (const auto& [name, value] : options.usual)
    if (value > 0) compile.usual[name] = value;  // of an empty run all plans are good
  compile.compile_threads = default_thread_count();
  compile.plan_text = options.plan_text;
  compile.disabled_passes = options.disabled_passes;
  compile.in_place = options.in_place;
  compile.progress = options.progress;
  compile.dump = options.dump;
  return compile;
}

Hash128 cache_key(const Hash128& model, const compiler::CompileOptions& compile) {
  Hasher hasher;
  hasher.add(code_version()).add(processor_version()).add(model);
  hasher.add(std::string_view(compile.target));
  hasher.add(compile.numerics).add(compile.fusion).add(compile.threads);
  hasher.add(std::string_view(machine::to_text(compile.machine)));
  hasher.add(compile.usual.size());
  for (const auto& [name, value] : compile.usual) hasher.add(std::string_view(name)).add(value);
  hasher.add(compile.plan_text.has_value()).add(std::string_view(compile.plan_text.value_or("")));
  hasher.add(compile.in_place.size());
  for (const std::string& wish : compile.in_place) hasher.add(std::string_view(wish));
  hasher.add(compile.disabled_passes.size());
  for (const std::string& pass : compile.disabled_passes) hasher.add(std::string_view(pass));
  return hasher.finish();
}

Built find_or_compile(const Model& model, const SessionOptions& options, const Cache& cache,
                      const Hash128& key) {
  Built built;
  const auto reading = Clock::now();
  if (auto program = cache.find(key)) {
    try {
      built.metadata = metadata_from(program->metadata);
      built.program = std::move(*program);
      built.cache_hit = true;
      built.read_ms = milliseconds_since(reading);
      return built;
    } catch (const UserError&) {
      // Damaged in a way that no checksum sees: made by something else. It is made anew.
    }
  }
  const graph::Graph& graph = model.graph();
  built.import_ms = model.import_ms();
  const compiler::CompileOptions compile = compile_options_for(options);
  const auto start = Clock::now();
  compiler::Compiled compiled = compiler::compile(graph, compile);
  built.compile_ms = milliseconds_since(start);
  built.metadata = metadata_of(graph, compiled, compile.machine);
  built.program = std::move(compiled.program);
  built.program.metadata = to_text(built.metadata);
  refer_to_mapped_files(built.program);
  return built;
}

}  // namespace fusewise::session
