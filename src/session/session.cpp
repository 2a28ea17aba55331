#include "session/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "base/error.h"
#include "runtime/drivers/opencl/device_executable.h"
#include "runtime/executable.h"
#include "session/compile.h"
#include "session/pinned_pool.h"

namespace fusewise::session {

using graph::Tensor;

struct Session::State {
  SessionInfo info;
  std::vector<StepInfo> steps;
  // One of the two: the processor's, or a device's.
  std::unique_ptr<runtime::Executable> executable;
  std::unique_ptr<runtime::opencl::DeviceExecutable> on_device;

  const program::Program& program() const {
    return executable ? executable->program() : on_device->program();
  }
  // A device has no outputs whose size only the run knows.
  bool is_late(size_t output) const { return executable && executable->is_late(output); }
  std::shared_ptr<const runtime::Binding> bind(const std::vector<std::vector<int64_t>>& shapes,
                                               const runtime::Capacities& capacities = {}) const {
    return executable ? executable->bind(shapes, capacities) : on_device->bind(shapes);
  }
  runtime::Status run(const runtime::Binding& binding, std::span<const void* const> inputs,
                      std::span<void* const> outputs, const runtime::RunOptions& options) const {
    return executable ? executable->run(binding, inputs, outputs, options)
                      : on_device->run(binding, inputs, outputs, options);
  }
};

struct PreparedRun::State final : runtime::OutputMemory {
  std::shared_ptr<const Session::State> session;
  std::shared_ptr<const runtime::Binding> binding;
  std::vector<Tensor> inputs, outputs;
  std::vector<const void*> input_pointers;
  std::vector<void*> output_pointers;

  // The same shape as in the run before needs no new memory.
  void* place(uint32_t output, std::span<const int64_t> shape) override {
    if (!std::ranges::equal(outputs[output].shape, shape))
      outputs[output] = Tensor(outputs[output].element, {shape.begin(), shape.end()});
    return outputs[output].mutable_bytes().data();
  }

  void run(runtime::RunOptions options) {
    options.output_memory = this;
    const runtime::Status status = session->run(*binding, input_pointers, output_pointers, options);
    switch (status.code) {
      case runtime::StatusCode::ok:
        return;
      case runtime::StatusCode::cancelled:
        throw UserError("the run was cancelled");
      case runtime::StatusCode::bad_argument:
      case runtime::StatusCode::bad_data:
        throw UserError(status.message);
      case runtime::StatusCode::out_of_memory:
        throw std::bad_alloc();
      case runtime::StatusCode::failed:
        throw InternalError("the run failed: " + status.message);
    }
  }
};

namespace {

std::vector<Growth> growing_of(const program::Program& program) {
  std::vector<Growth> growing;
  for (size_t o = 0; o < program.outputs.size(); ++o)
    for (const uint32_t input : program.outputs[o].may_alias_inputs)
      if (!program.outputs[o].capacity.symbol.empty())
        growing.push_back({o, input, static_cast<int>(program.outputs[o].capacity.axis)});
  return growing;
}

// The array of a growing output with its input at the start of it.
void fill_array(Tensor& array, const Tensor& input, int axis) {
  const auto last = input.shape.begin() + axis;
  const int64_t outer = graph::element_count(std::span(input.shape).first(static_cast<size_t>(axis)));
  const auto inner = static_cast<size_t>(graph::element_count(std::span(last + 1, input.shape.end()))) *
                     static_cast<size_t>(bytes_of(input.element));
  const size_t from = static_cast<size_t>(*last) * inner;
  const size_t to = static_cast<size_t>(array.shape[static_cast<size_t>(axis)]) * inner;
  std::byte* place = array.mutable_bytes().data();
  for (int64_t i = 0; i < outer && from > 0; ++i)
    std::memcpy(place + static_cast<size_t>(i) * to, input.bytes().data() + static_cast<size_t>(i) * from,
                from);
}

SessionInfo info_of(const Built& built, const program::Program& program) {
  SessionInfo info;
  info.cache_hit = built.cache_hit;
  info.import_ms = built.import_ms;
  info.compile_ms = built.compile_ms;
  info.phases_ms = built.metadata.phases_ms;
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
  info.growing = growing_of(program);
  for (const program::Step& step : program.run_steps) {
    switch (step.kind) {
      case program::StepKind::kernel:
        ++info.kernels;
        info.phases += program.kernels[step.kernel].phases;
        break;
      case program::StepKind::copy:
        ++info.copies;
        break;
      case program::StepKind::host:
        ++info.host_steps;
        break;
      case program::StepKind::loop:
      case program::StepKind::branch:
        ++info.control_steps;
        break;
    }
  }
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
    if (step.kind == program::StepKind::host) info.host_function = program.host_calls[step.kernel].function;
    if (steps.size() <= metadata.predicted_step_ms.size())
      info.predicted_ms = metadata.predicted_step_ms[steps.size() - 1];
  }
  return steps;
}

void check_count(const char* what, size_t wanted, size_t given) {
  if (given != wanted)
    throw UserError(fmt::format("the model has {} {} and {} are given", wanted, what, given));
}

void check_inputs(const program::Program& program, std::span<const Tensor> inputs) {
  check_count("inputs", program.inputs.size(), inputs.size());
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
  if (built.program.target == "opencl") {
    state->on_device =
        std::make_unique<runtime::opencl::DeviceExecutable>(std::move(built.program), options.poison);
    state->info = info_of(built, state->program());
    state->info.machine = state->on_device->device_name();
    state->info.weights_bytes = state->on_device->resident_bytes();
  } else {
    runtime::ExecutableOptions executable;
    executable.threads = options.threads;
    if (options.pin) executable.pool = pinned_pool(options.threads);
    executable.poison = options.poison;
    executable.guard_pages = options.guard_pages;
    state->executable = std::make_unique<runtime::Executable>(std::move(built.program), executable);
    state->info = info_of(built, state->program());
    state->info.threads = state->executable->threads();
    state->info.weights_bytes = state->executable->resident_bytes();
  }
  state->info.load_ms =
      built.read_ms +
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  state->steps = steps_of(built.metadata, state->program());
  if (cache.enabled() && !built.cache_hit)
    cache.store(key, state->executable ? state->executable->with_once_results() : state->program());
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
  state->binding = state_->bind(shapes);
  for (size_t i = 0; i < state_->program().outputs.size(); ++i) {
    const DataType type = state_->program().outputs[i].type;
    // A late output is of no elements until a run says more.
    const std::vector<int64_t> unknown(state_->program().outputs[i].shape.size(), 0);
    const bool late = state_->is_late(i);
    state->outputs.emplace_back(type, late ? unknown : state->binding->output_shapes[i]);
    state->output_pointers.push_back(state->outputs.back().mutable_bytes().data());
  }
  if (!state_->info.growing.empty()) {
    runtime::Capacities capacities{std::vector<int64_t>(inputs.size(), 0), {}};
    for (const Growth& growth : state_->info.growing) {
      Tensor& array = state->outputs[growth.output];
      fill_array(array, state->inputs[growth.input], growth.axis);
      capacities.inputs[growth.input] = array.shape[static_cast<size_t>(growth.axis)];
      state->input_pointers[growth.input] = array.bytes().data();
    }
    state->binding = state_->bind(shapes, capacities);
  }
  PreparedRun run;
  run.state_ = std::move(state);
  return run;
}

PreparedRun Session::prepare(std::span<const CallerArray> inputs,
                             std::span<const CallerArray> outputs) const {
  check_count("inputs", state_->program().inputs.size(), inputs.size());
  check_count("outputs", state_->program().outputs.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (state_->is_late(i))
      throw UnsupportedError("not supported yet: only the run knows the size of output '" +
                             state_->program().outputs[i].name +
                             "', and it cannot be put into an array of the caller's; run with tensors");
  auto state = std::make_shared<PreparedRun::State>();
  state->session = state_;
  std::vector<std::vector<int64_t>> shapes;
  runtime::Capacities capacities;
  for (const CallerArray& input : inputs) {
    shapes.push_back(input.shape);
    capacities.inputs.push_back(input.capacity);
    state->input_pointers.push_back(input.data);
  }
  for (const CallerArray& output : outputs) {
    capacities.outputs.push_back(output.capacity);
    state->output_pointers.push_back(output.data);
  }
  state->binding = state_->bind(shapes, capacities);
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

std::vector<TracedPiece> PreparedRun::run_with_trace(int64_t runs) {
  if (!state_->session->executable)
    throw UnsupportedError(
        "not supported yet: traces of runs on a device (leave --trace out, or use --target cpu)");
  std::vector<TracedPiece> pieces;
  const auto start = std::chrono::steady_clock::now();
  const auto since_start = [&](std::chrono::steady_clock::time_point time) {
    return std::chrono::duration<double, std::micro>(time - start).count();
  };
  for (int64_t number = 0; number < runs; ++number) {
    runtime::Trace trace(state_->session->executable->threads());
    runtime::RunOptions options;
    options.trace = &trace;
    state_->run(options);
    for (size_t worker = 0; worker < trace.pieces.size(); ++worker)
      for (const runtime::TracePiece& p : trace.pieces[worker])
        pieces.push_back({number, p.step, static_cast<int>(p.phase), static_cast<int>(worker), p.first_block,
                          p.end_block, since_start(p.begin), since_start(p.end)});
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const TracedPiece& a, const TracedPiece& b) { return a.begin_us < b.begin_us; });
  return pieces;
}

const std::vector<Tensor>& PreparedRun::outputs() const { return state_->outputs; }

int64_t PreparedRun::arena_bytes() const { return state_->binding->arena_bytes; }

int64_t PreparedRun::bytes_moved() const {
  int64_t total = 0;
  const program::Program& program = state_->session->program();
  // A part that the caller keeps where the copy would bring it.
  const auto there = [&](const program::Step& step) {
    if (step.kind != program::StepKind::copy) return false;
    const program::Buffer& from = program.buffers[root_of(program, step.buffers[0])];
    const program::Buffer& to = program.buffers[root_of(program, step.buffers[1])];
    return from.kind == program::BufferKind::input && to.kind == program::BufferKind::output &&
           state_->input_pointers[from.index] == state_->output_pointers[to.index];
  };
  for (const program::Step& step : program.run_steps)
    for (size_t i = 0; i < step.buffers.size() && !there(step); ++i) {
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
