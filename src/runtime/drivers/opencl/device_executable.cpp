#include "runtime/drivers/opencl/device_executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "runtime/drivers/opencl/device.h"

namespace fusewise::runtime::opencl {

using program::BufferKind;
using program::Step;
using program::StepKind;

namespace {

// What a program may need of a device (program.h).
struct Feature {
  std::string_view name;
  bool DeviceFacts::* present;
  std::string_view words;
};
constexpr Feature features[] = {
    {"double", &DeviceFacts::has_double, "has float64"},
    {"exact_division", &DeviceFacts::exact_division, "divides exactly, as strict needs"},
};

std::unique_ptr<Device> chosen_device(const program::Program& program) {
  std::vector<const Feature*> needed;
  std::string needs;
  for (const Feature& feature : features) {
    if (std::ranges::find(program.cpu_features, feature.name) == program.cpu_features.end()) continue;
    needed.push_back(&feature);
    needs += fmt::format(" and {}", feature.words);
  }
  const char* wanted = std::getenv("FUSEWISE_OPENCL_PLATFORM");
  std::string seen;
  for (std::unique_ptr<Device>& device : Device::all()) {
    const DeviceFacts& facts = device->facts();
    const bool named = wanted == nullptr || facts.platform.find(wanted) != std::string::npos;
    const bool fits = std::ranges::all_of(needed, [&](const Feature* f) { return facts.*f->present; });
    if (named && facts.ieee && fits) return std::move(device);
    seen += fmt::format("{}{} ({})", seen.empty() ? "" : ", ", facts.name, facts.platform);
  }
  throw UserError(
      seen.empty() ? "there is no OpenCL device"
                   : fmt::format("no OpenCL device computes as IEEE 754 says{}; there are: {}", needs, seen),
      {.file = {},
       .node = {},
       .op = {},
       .hint = "install a driver (pocl-opencl-icd runs on the processor), or use --target cpu"});
}

std::string source_of(const program::Program& program) {
  const auto bytes = program.library.bytes.span;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

struct DeviceExecutable::State {
  State(program::Program given, bool poisoned)
      : program(std::move(given)),
        poison(poisoned),
        device(chosen_device(program)),
        kernels(device->compile(source_of(program))) {
    load();
  }

  void load();
  DeviceMemory filled(size_t bytes, char with) const;
  void show_step(const Step& step, size_t index, const std::vector<const DeviceMemory*>& memory,
                 const RunOptions& options) const;
  void run_steps(const std::vector<Step>& steps, const std::vector<const DeviceMemory*>& memory,
                 const SymbolValues& symbols, const RunOptions& options) const;
  void run_step(const Step& step, const std::vector<const DeviceMemory*>& memory,
                const SymbolValues& symbols) const;
  Status run(const Binding& binding, std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunOptions& options);

  program::Program program;
  bool poison;
  std::unique_ptr<Device> device;
  DeviceProgram kernels;
  std::map<program::BufferId, DeviceMemory> residents;
  int64_t resident_bytes = 0;
  std::mutex mutex;
};

DeviceMemory DeviceExecutable::State::filled(size_t bytes, char with) const {
  DeviceMemory memory = device->allocate(bytes);
  device->write(memory, std::vector<char>(bytes, with).data());
  return memory;
}

// Constants are written and once steps run.
void DeviceExecutable::State::load() {
  for (const Step& step : program.run_steps) {
    if (step.kind == StepKind::host)
      throw UnsupportedError("not supported yet: the host function '" +
                             program.host_calls[step.kernel].function +
                             "', and sizes that only the run knows, on an OpenCL device; use --target cpu");
    if (step.kind == StepKind::loop || step.kind == StepKind::branch)
      throw UnsupportedError("not supported yet: loops and branches on an OpenCL device; use --target cpu");
  }
  std::vector<const DeviceMemory*> memory(program.buffers.size(), nullptr);
  for (program::BufferId id = 0; id < program.buffers.size(); ++id) {
    const program::Buffer& buffer = program.buffers[id];
    if (buffer.kind == BufferKind::view)
      throw UnsupportedError("not supported yet: parts of buffers on an OpenCL device");
    if (buffer.kind != BufferKind::constant && buffer.kind != BufferKind::once) continue;
    const auto bytes = static_cast<size_t>(buffer.bytes.value());
    const bool fill = buffer.kind == BufferKind::once && (buffer.zero_fill || poison);
    DeviceMemory& place =
        residents.emplace(id, fill ? filled(bytes, buffer.zero_fill ? 0 : '\xFF') : device->allocate(bytes))
            .first->second;
    if (buffer.kind == BufferKind::constant)
      device->write(place, program.constants[buffer.index].bytes.span.data());
    memory[id] = &place;
    resident_bytes += static_cast<int64_t>(bytes);
  }
  run_steps(program.once_steps, memory, {}, {});
}

void DeviceExecutable::State::run_step(const Step& step, const std::vector<const DeviceMemory*>& memory,
                                       const SymbolValues& symbols) const {
  std::vector<const DeviceMemory*> arguments;
  for (program::BufferId id : step.buffers) arguments.push_back(memory[id]);
  if (step.kind == StepKind::copy) return device->copy(*arguments[0], *arguments[1]);
  const program::Kernel& kernel = program.kernels[step.kernel];
  std::vector<int64_t> parameters;
  SymbolValues named;
  for (size_t i = 0; i < step.parameters.size(); ++i) {
    parameters.push_back(step.parameters[i].evaluate(symbols));
    named[kernel.parameters[i]] = parameters.back();
  }
  for (const program::Launch& launch : kernel.launches)
    device->launch(kernels, launch.function, arguments, parameters, launch.blocks.evaluate(named),
                   launch.threads);
}

void DeviceExecutable::State::run_steps(const std::vector<Step>& steps,
                                        const std::vector<const DeviceMemory*>& memory,
                                        const SymbolValues& symbols, const RunOptions& options) const {
  using Clock = std::chrono::steady_clock;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Clock::time_point start = Clock::now();
    run_step(steps[i], memory, symbols);
    if (options.after_step) show_step(steps[i], i, memory, options);
    if (options.step_seconds.empty()) continue;
    device->wait();
    options.step_seconds[i] += std::chrono::duration<double>(Clock::now() - start).count();
  }
}

void DeviceExecutable::State::show_step(const Step& step, size_t index,
                                        const std::vector<const DeviceMemory*>& memory,
                                        const RunOptions& options) const {
  std::vector<std::vector<char>> copies;
  std::vector<void*> pointers;
  for (program::BufferId id : step.buffers) {
    copies.emplace_back(std::max<size_t>(memory[id]->bytes(), 1));
    device->read(*memory[id], copies.back().data());
    pointers.push_back(copies.back().data());
  }
  options.after_step(index, pointers);
}

Status DeviceExecutable::State::run(const Binding& binding, std::span<const void* const> inputs,
                                    std::span<void* const> outputs, const RunOptions& options) {
  if (inputs.size() != program.inputs.size() || outputs.size() != program.outputs.size())
    return Status::error(StatusCode::bad_argument, "inputs or outputs are not as many as the program's");
  if (options.cancel && options.cancel->load(std::memory_order_relaxed))
    return Status::error(StatusCode::cancelled, "the run was cancelled");
  const std::lock_guard lock(mutex);
  std::vector<DeviceMemory> own(program.buffers.size());
  std::vector<const DeviceMemory*> memory(program.buffers.size(), nullptr);
  for (program::BufferId id = 0; id < program.buffers.size(); ++id) {
    const program::Buffer& buffer = program.buffers[id];
    if (const auto resident = residents.find(id); resident != residents.end()) {
      memory[id] = &resident->second;
      continue;
    }
    const auto bytes = static_cast<size_t>(binding.buffer_bytes[id]);
    own[id] = poison ? filled(bytes, '\xFF') : device->allocate(bytes);
    memory[id] = &own[id];
    if (buffer.kind == BufferKind::input) device->write(own[id], inputs[buffer.index]);
    if (buffer.kind == BufferKind::dims) device->write(own[id], binding.dims_values[id].data());
  }
  run_steps(program.run_steps, memory, binding.symbols, options);
  for (size_t i = 0; i < outputs.size(); ++i) device->read(*memory[program.outputs[i].buffer], outputs[i]);
  return Status::success();
}

DeviceExecutable::DeviceExecutable(program::Program program, bool poison)
    : state_(std::make_unique<State>(std::move(program), poison)) {}
DeviceExecutable::~DeviceExecutable() = default;

const program::Program& DeviceExecutable::program() const { return state_->program; }
std::string DeviceExecutable::device_name() const { return state_->device->facts().name; }
int64_t DeviceExecutable::resident_bytes() const { return state_->resident_bytes; }

program::Program DeviceExecutable::with_once_results() const {
  program::Program result = state_->program;
  for (program::BufferId id = 0; id < result.buffers.size(); ++id) {
    program::Buffer& buffer = result.buffers[id];
    if (buffer.kind != BufferKind::once) continue;
    const DeviceMemory& memory = state_->residents.at(id);
    std::vector<std::byte> bytes(memory.bytes());
    state_->device->read(memory, bytes.data());
    buffer.content = program::own_bytes(std::move(bytes));
  }
  return result;
}

std::shared_ptr<const Binding> DeviceExecutable::bind(
    std::span<const std::vector<int64_t>> input_shapes) const {
  auto binding =
      std::make_shared<Binding>(bind_shapes(state_->program, segments_of(state_->program), input_shapes));
  binding->owner = state_.get();
  return binding;
}

Status DeviceExecutable::run(const Binding& binding, std::span<const void* const> inputs,
                             std::span<void* const> outputs, const RunOptions& options) const noexcept {
  try {
    return state_->run(binding, inputs, outputs, options);
  } catch (const std::bad_alloc&) {
    return {StatusCode::out_of_memory, "out of memory"};
  } catch (const std::exception& error) {
    return Status::error(StatusCode::failed, error.what());
  } catch (...) {
    return Status::error(StatusCode::failed, "a kernel failed");
  }
}

}  // namespace fusewise::runtime::opencl
