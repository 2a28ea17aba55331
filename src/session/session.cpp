#include "session/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <new>

#include "base/error.h"
#include "runtime/executable.h"
#include "session/compile.h"
#include "session/pinned_pool.h"

namespace fusewise::session {

using graph::Tensor;

struct Session::State {
  SessionInfo info;
  std::vector<StepInfo> steps;
  std::unique_ptr<runtime::Executable> executable;

  const program::Program& program() const { return executable->program(); }
};

struct PreparedRun::State {
  std::shared_ptr<const Session::State> session;
  std::shared_ptr<const runtime::Binding> binding;
  std::vector<Tensor> inputs, outputs;
  std::vector<const void*> input_pointers;
  std::vector<void*> output_pointers;

  void run(const runtime::RunOptions& options) {
    const runtime::Status status =
        session->executable->run(*binding, input_pointers, output_pointers, options);
    switch (status.code) {
      case runtime::StatusCode::ok:
        return;
      case runtime::StatusCode::cancelled:
        throw UserError("the run was cancelled");
      case runtime::StatusCode::bad_argument:
        throw UserError(status.message);
      case runtime::StatusCode::out_of_memory:
        throw std::bad_alloc();
      case runtime::StatusCode::failed:
        throw InternalError("the run failed: " + status.message);
    }
  }
};

namespace {

SessionInfo info_of(const Built& built, const runtime::Executable& executable) {
  const program::Program& program = executable.program();
  SessionInfo info;
  info.cache_hit = built.cache_hit;
  info.import_ms = built.import_ms;
  info.compile_ms = built.compile_ms;
  info.phases_ms = built.metadata.phases_ms;
  info.threads = executable.threads();
  info.machine = built.metadata.machine;
  info.symbols = program.symbols;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const program::Input& input = program.inputs[i];
    info.inputs.push_back({input.name, input.type, input.shape, {}});
    if (i < built.metadata.index_extents.size())
      info.inputs.back().index_extent = built.metadata.index_extents[i];
  }
  for (const program::Output& output : program.outputs)
    info.outputs.push_back({output.name, output.type, output.shape});
  for (const program::Step& step : program.run_steps) {
    if (step.kind == program::StepKind::copy) {
      ++info.copies;
    } else {
      ++info.kernels;
      info.phases += program.kernels[step.kernel].phases;
    }
  }
  info.weights_bytes = executable.resident_bytes();
  info.flops = built.metadata.flops;
  info.predicted_ms = built.metadata.predicted_ms;
  info.lower_bound_ms = built.metadata.lower_bound_ms;
  return info;
}

std::vector<StepInfo> steps_of(const Metadata& metadata, const program::Program& program) {
  std::vector<StepInfo> steps;
  for (const program::Step& step : program.run_steps) {
    StepInfo& info = steps.emplace_back();
    info.label = step.label;
    if (step.kind == program::StepKind::kernel) {
      info.kernel = program.kernels[step.kernel].name;
      info.phases = static_cast<int>(program.kernels[step.kernel].phases);
    }
    if (steps.size() <= metadata.predicted_step_ms.size())
      info.predicted_ms = metadata.predicted_step_ms[steps.size() - 1];
  }
  return steps;
}

void check_inputs(const program::Program& program, std::span<const Tensor> inputs) {
  if (inputs.size() != program.inputs.size())
    throw UserError(
        fmt::format("the model has {} inputs and {} are given", program.inputs.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].element != program.inputs[i].type)
      throw UserError(fmt::format("input '{}' is {} and the model needs {}", program.inputs[i].name,
                                  name_of(inputs[i].element), name_of(program.inputs[i].type)));
}

}  // namespace

Session::Session(const Model& model, const SessionOptions& given) {
  SessionOptions options = given;
  if (!options.warn) options.warn = [](const std::string&) {};
  // A dump shows the work of the compiler, which a cached program spares.
  const Cache cache = options.dump ? Cache() : cache_for(options, options.warn);
  Hash128 key;
  if (cache.enabled()) key = cache_key(model.content_hash(cache), compile_options_for(options));
  Built built = find_or_compile(model, options, cache, key);

  const auto start = std::chrono::steady_clock::now();
  auto state = std::make_shared<State>();
  runtime::ExecutableOptions executable;
  executable.threads = options.threads;
  if (options.pin) executable.pool = pinned_pool(options.threads);
  executable.poison = options.poison;
  executable.guard_pages = options.guard_pages;
  state->executable = std::make_unique<runtime::Executable>(std::move(built.program), executable);
  state->info = info_of(built, *state->executable);
  state->info.load_ms =
      built.read_ms +
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  state->steps = steps_of(built.metadata, state->program());
  if (cache.enabled() && !built.cache_hit) cache.store(key, state->executable->with_once_results());
  state_ = std::move(state);
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const SessionInfo& Session::info() const { return state_->info; }

const std::vector<StepInfo>& Session::steps() const { return state_->steps; }

PreparedRun Session::prepare(std::span<const Tensor> inputs) const {
  check_inputs(state_->program(), inputs);
  auto state = std::make_shared<PreparedRun::State>();
  state->session = state_;
  std::vector<std::vector<int64_t>> shapes;
  for (const Tensor& input : inputs) {
    state->inputs.push_back(input.aligned());
    state->input_pointers.push_back(state->inputs.back().bytes().data());
    shapes.push_back(input.shape);
  }
  state->binding = state_->executable->bind(shapes);
  for (size_t i = 0; i < state_->program().outputs.size(); ++i) {
    state->outputs.emplace_back(state_->program().outputs[i].type, state->binding->output_shapes[i]);
    state->output_pointers.push_back(state->outputs.back().mutable_bytes().data());
  }
  PreparedRun run;
  run.state_ = std::move(state);
  return run;
}

std::vector<Tensor> Session::run(std::span<const Tensor> inputs, const std::atomic<bool>* cancel) const {
  const PreparedRun prepared = prepare(inputs);
  runtime::RunOptions options;
  options.cancel = cancel;
  prepared.state_->run(options);
  return prepared.outputs();
}

void PreparedRun::run() { state_->run({}); }

void PreparedRun::run_with_timing(std::span<double> step_seconds) {
  runtime::RunOptions options;
  options.step_seconds = step_seconds;
  state_->run(options);
}

const std::vector<Tensor>& PreparedRun::outputs() const { return state_->outputs; }

int64_t PreparedRun::arena_bytes() const { return state_->binding->arena_bytes; }

int64_t PreparedRun::bytes_moved() const {
  int64_t total = 0;
  for (const program::Step& step : state_->session->program().run_steps)
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      const auto same =
          std::find(step.buffers.begin(), step.buffers.begin() + static_cast<int64_t>(i), step.buffers[i]);
      if (same == step.buffers.begin() + static_cast<int64_t>(i))
        total += state_->binding->buffer_bytes[step.buffers[i]];
    }
  return total;
}

int64_t PreparedRun::compulsory_bytes() const {
  int64_t total = state_->session->info.weights_bytes;
  for (const int64_t bytes : state_->binding->input_bytes) total += bytes;
  for (const int64_t bytes : state_->binding->output_bytes) total += bytes;
  return total;
}

int64_t PreparedRun::flops() const {
  const Dim& flops = state_->session->info.flops;
  const SymbolValues& symbols = state_->binding->symbols;
  for (const std::string& name : flops.symbols())
    if (!symbols.contains(name)) return 0;
  return flops.evaluate(symbols);
}

}  // namespace fusewise::session
