#include "runtime/executable.h"

#include <fmt/core.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "base/cpu_limits.h"
#include "base/error.h"
#include "base/float_environment.h"
#include "runtime/dispatch.h"
#include "runtime/kernels.h"
#include "runtime/residents.h"
#include "runtime/step_runner.h"
#include "runtime/workspace.h"

namespace fusewise::runtime {
namespace {

std::optional<GuardedMemory::Side> side_of(GuardPages pages) {
  if (pages == GuardPages::off) return std::nullopt;
  return pages == GuardPages::after ? GuardedMemory::Side::after : GuardedMemory::Side::before;
}

std::shared_ptr<ThreadPool> pool_of(const ExecutableOptions& options) {
  if (options.pool) return options.pool;
  return std::make_shared<ThreadPool>(options.threads > 0 ? options.threads : default_thread_count());
}

program::Program verified(program::Program program) {
  verify(program);
  check_cpu(program);
  return program;
}

bool overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto begin_a = reinterpret_cast<uintptr_t>(a);
  const auto begin_b = reinterpret_cast<uintptr_t>(b);
  return begin_a < begin_b + static_cast<uintptr_t>(b_bytes) &&
         begin_b < begin_a + static_cast<uintptr_t>(a_bytes) && a_bytes > 0 && b_bytes > 0;
}

}  // namespace

struct Executable::State {
  State(program::Program given, ExecutableOptions given_options)
      : options(std::move(given_options)),
        pool(pool_of(options)),
        program(verified(std::move(given))),
        segments(segments_of(program)),
        kernels(program, options.resolver),
        residents(program, kernels, *pool, {side_of(options.guard_pages), options.copy_once_results}),
        plan(plan_workspaces(program, residents, kernels, segments, pool->size(), options.poison,
                             side_of(options.guard_pages))) {}

  std::unique_ptr<Workspace> take_workspace(uint64_t serial);
  void give_back(std::unique_ptr<Workspace> workspace) noexcept;
  Status check_arguments(const Binding& binding, std::span<const void* const> inputs,
                         std::span<void* const> outputs, const RunOptions& run_options) const;
  Status check_overlaps(const Binding& binding, std::span<const void* const> inputs,
                        std::span<void* const> outputs) const;
  Status run(const Binding& binding, std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunOptions& run_options);

  ExecutableOptions options;
  std::shared_ptr<ThreadPool> pool;
  program::Program program;
  Segments segments;
  Kernels kernels;
  Residents residents;
  WorkspacePlan plan;

  std::mutex bindings_mutex;
  std::list<std::shared_ptr<const Binding>> bindings;  // last used first
  uint64_t bindings_made = 0;

  std::mutex workspaces_mutex;
  std::vector<std::unique_ptr<Workspace>>
      idle;  // with capacity for all, so that giving back allocates nothing
  size_t workspaces_made = 0;
  std::atomic<int64_t> workspace_bytes{0};
};

// The one that ran this binding last, else the one that was used last, else a new one.
std::unique_ptr<Workspace> Executable::State::take_workspace(uint64_t serial) {
  const std::lock_guard lock(workspaces_mutex);
  if (idle.empty()) {
    idle.reserve(workspaces_made + 1);
    auto workspace = std::make_unique<Workspace>(plan);
    ++workspaces_made;
    return workspace;
  }
  const auto same = std::find_if(idle.rbegin(), idle.rend(),
                                 [&](const auto& workspace) { return workspace->serial() == serial; });
  if (same != idle.rend()) std::swap(*same, idle.back());
  auto workspace = std::move(idle.back());
  idle.pop_back();
  return workspace;
}

void Executable::State::give_back(std::unique_ptr<Workspace> workspace) noexcept {
  const std::lock_guard lock(workspaces_mutex);
  idle.push_back(std::move(workspace));
}

Status Executable::State::check_arguments(const Binding& binding, std::span<const void* const> inputs,
                                          std::span<void* const> outputs,
                                          const RunOptions& run_options) const {
  const auto bad = [](std::string message) {
    return Status::error(StatusCode::bad_argument, std::move(message));
  };
  if (binding.owner != this) return bad("the shapes were bound to another executable");
  if (inputs.size() != program.inputs.size() || outputs.size() != program.outputs.size())
    return bad(fmt::format("the program has {} inputs and {} outputs; {} and {} are given",
                           program.inputs.size(), program.outputs.size(), inputs.size(), outputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i] && binding.input_bytes[i] > 0)
      return bad(fmt::format("input '{}' is a null pointer", program.inputs[i].name));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (segments.of_output[i] > 0 && !run_options.output_memory)
      return bad(
          fmt::format("output '{}' has a size that only the run knows, and nothing gives memory for it",
                      program.outputs[i].name));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i] && binding.output_bytes[i] > 0)
      return bad(fmt::format("output '{}' is a null pointer", program.outputs[i].name));
  return check_overlaps(binding, inputs, outputs);
}

Status Executable::State::check_overlaps(const Binding& binding, std::span<const void* const> inputs,
                                         std::span<void* const> outputs) const {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const program::Output& output = program.outputs[i];
    for (size_t j = 0; j < i; ++j)
      if (overlap(outputs[i], binding.output_bytes[i], outputs[j], binding.output_bytes[j]))
        return Status::error(StatusCode::bad_argument, fmt::format("outputs '{}' and '{}' overlap",
                                                                   output.name, program.outputs[j].name));
    for (uint32_t j = 0; j < inputs.size(); ++j) {
      if (!overlap(outputs[i], binding.output_bytes[i], inputs[j], binding.input_bytes[j])) continue;
      const auto& allowed = output.may_alias_inputs;
      const bool declared = std::find(allowed.begin(), allowed.end(), j) != allowed.end();
      if (!declared || outputs[i] != inputs[j])
        return Status::error(StatusCode::bad_argument, fmt::format("output '{}' overlaps input '{}'",
                                                                   output.name, program.inputs[j].name));
      if (!output.capacity.symbol.empty() &&
          binding.symbols.at(output.capacity.symbol) != binding.symbols.at(program.inputs[j].capacity.symbol))
        return Status::error(
            StatusCode::bad_argument,
            fmt::format("output '{}' shares the array of input '{}', and the two are said to "
                        "have different capacities",
                        output.name, program.inputs[j].name));
    }
  }
  return Status::success();
}

Status Executable::State::run(const Binding& binding, std::span<const void* const> inputs,
                              std::span<void* const> outputs, const RunOptions& run_options) {
  if (Status status = check_arguments(binding, inputs, outputs, run_options); !status.ok()) return status;
  if (!run_options.step_seconds.empty() && run_options.step_seconds.size() != program.run_steps.size())
    return Status::error(StatusCode::bad_argument, "the times are not as many as the steps");
  if (run_options.trace && run_options.trace->pieces.size() < static_cast<size_t>(pool->size()))
    return Status::error(StatusCode::bad_argument, "the trace is for fewer workers than there are");
  const DefaultFloatEnvironment environment;
  std::unique_ptr<Workspace> workspace = take_workspace(binding.serial);
  struct GiveBack {
    State& state;
    std::unique_ptr<Workspace>& workspace;
    ~GiveBack() { state.give_back(std::move(workspace)); }
  } const give_back_at_end{*this, workspace};

  const int64_t before = workspace->bytes();
  workspace->prepare(binding);
  workspace->begin(inputs, outputs, run_options.output_memory);
  const bool complete =
      StepRunner(program, kernels, *pool, *workspace, run_options).run(0, program.run_steps.size());
  Status status =
      complete ? Status::success() : Status::error(StatusCode::cancelled, "the run was cancelled");
  const std::optional<program::BufferId> damaged = workspace->end();
  workspace_bytes.fetch_add(workspace->bytes() - before, std::memory_order_relaxed);
  if (damaged && status.ok())
    return Status::error(StatusCode::failed,
                         "a kernel wrote beyond the end of " + describe_buffer(program, *damaged));
  return status;
}

Executable::Executable(program::Program program, ExecutableOptions options)
    : state_(std::make_unique<State>(std::move(program), std::move(options))) {}
Executable::~Executable() = default;

const program::Program& Executable::program() const { return state_->program; }
int Executable::threads() const { return state_->pool->size(); }
bool Executable::is_late(size_t output) const { return state_->segments.of_output[output] > 0; }
int64_t Executable::resident_bytes() const { return state_->residents.bytes(); }
double Executable::once_seconds() const { return state_->residents.once_seconds(); }
int64_t Executable::workspace_bytes() const {
  return state_->workspace_bytes.load(std::memory_order_relaxed);
}

std::shared_ptr<const Binding> Executable::bind(std::span<const std::vector<int64_t>> input_shapes,
                                                const Capacities& capacities) const {
  State& state = *state_;
  const auto same = [&](const std::shared_ptr<const Binding>& binding) {
    return binding->capacities == capacities &&
           std::equal(binding->input_shapes.begin(), binding->input_shapes.end(), input_shapes.begin(),
                      input_shapes.end());
  };
  const std::lock_guard lock(state.bindings_mutex);
  const auto known = std::find_if(state.bindings.begin(), state.bindings.end(), same);
  if (known != state.bindings.end()) {
    state.bindings.splice(state.bindings.begin(), state.bindings, known);
    return state.bindings.front();
  }
  const std::vector<program::Step>& steps = state.program.run_steps;
  auto binding =
      std::make_shared<Binding>(bind_shapes(state.program, state.segments, input_shapes, capacities));
  binding->steps = lay_out_steps(state.program, steps);
  bind_steps(state.program, steps, 0, state.segments.end_of(0), state.kernels, binding->symbols,
             binding->steps);
  binding->serial = ++state.bindings_made;
  binding->owner = &state;
  if (state.options.kept_bindings == 0) return binding;
  if (state.bindings.size() >= state.options.kept_bindings) state.bindings.pop_back();
  state.bindings.push_front(binding);
  return binding;
}

Status Executable::run(const Binding& binding, std::span<const void* const> inputs,
                       std::span<void* const> outputs, const RunOptions& options) const noexcept {
  try {
    return state_->run(binding, inputs, outputs, options);
  } catch (const UserError& error) {
    return Status::error(StatusCode::bad_data, error.what());
  } catch (const std::bad_alloc&) {
    return {StatusCode::out_of_memory, "out of memory"};  // short enough to need none
  } catch (const std::exception& error) {
    return Status::error(StatusCode::failed, error.what());
  } catch (...) {
    return Status::error(StatusCode::failed, "a kernel failed");
  }
}

program::Program Executable::with_once_results() const {
  program::Program program = state_->program;
  for (program::BufferId id = 0; id < program.buffers.size(); ++id)
    if (program.buffers[id].kind == program::BufferKind::once)
      program.buffers[id].content = state_->residents.content(state_->program, id);
  return program;
}

}  // namespace fusewise::runtime
