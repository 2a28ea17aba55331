#include "runtime/drivers/opencl/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "runtime/drivers/opencl/api.h"

namespace fusewise::runtime::opencl {

namespace {

void require(Result result, const char* what) {
  if (result != success) throw UserError(fmt::format("OpenCL: {} failed with error {}", what, result));
}

template <class Ask>
std::string text_of(Ask&& ask) {
  size_t size = 0;
  if (ask(0, nullptr, &size) != success || size == 0) return {};
  std::string text(size, '\0');
  if (ask(size, text.data(), nullptr) != success) return {};
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

template <class T>
T number_of(DeviceId device, Query query) {
  T value{};
  if (api()->get_device_info(device, query, sizeof(value), &value, nullptr) != success) return {};
  return value;
}

DeviceFacts facts_of(Platform platform, DeviceId device) {
  const Api& cl = *api();
  DeviceFacts facts;
  facts.platform = text_of([&](size_t room, void* value, size_t* size) {
    return cl.get_platform_info(platform, platform_name, room, value, size);
  });
  facts.name = text_of([&](size_t room, void* value, size_t* size) {
    return cl.get_device_info(device, device_name, room, value, size);
  });
  facts.shared_bytes = static_cast<int64_t>(number_of<uint64_t>(device, device_shared_bytes));
  facts.most_threads = static_cast<int64_t>(number_of<size_t>(device, device_most_threads));
  facts.has_double = number_of<uint64_t>(device, device_double_config) != 0;
  const uint64_t single = number_of<uint64_t>(device, device_single_config);
  constexpr uint64_t ieee = config_denormals | config_infinities | config_nearest | config_fma;
  facts.ieee = (single & ieee) == ieee;
  facts.exact_division = (single & config_exact_division) != 0;
  for (const char* wrong : {"Oclgrind", "Portable Computing Language"})
    facts.optimises_wrongly = facts.optimises_wrongly || facts.platform.find(wrong) != std::string::npos;
  return facts;
}

}  // namespace

struct Device::State {
  DeviceId device = nullptr;
  Context context = nullptr;
  Queue queue = nullptr;
  DeviceFacts facts;
  ~State() {
    if (queue != nullptr) api()->release_queue(queue);
    if (context != nullptr) api()->release_context(context);
  }
};

Device::Device(std::unique_ptr<State> state) : state_(std::move(state)) {}
Device::~Device() = default;

const DeviceFacts& Device::facts() const { return state_->facts; }

std::vector<std::unique_ptr<Device>> Device::all() {
  std::vector<std::unique_ptr<Device>> result;
  if (api() == nullptr) return result;
  const Api& cl = *api();
  uint32_t count = 0;
  if (cl.get_platforms(0, nullptr, &count) != success || count == 0) return result;
  std::vector<Platform> platforms(count);
  require(cl.get_platforms(count, platforms.data(), nullptr), "listing platforms");
  for (Platform platform : platforms) {
    uint32_t found = 0;
    if (cl.get_devices(platform, all_devices, 0, nullptr, &found) != success || found == 0) continue;
    std::vector<DeviceId> devices(found);
    if (cl.get_devices(platform, all_devices, found, devices.data(), nullptr) != success) continue;
    for (DeviceId device : devices) {
      auto state = std::make_unique<State>();
      state->device = device;
      state->facts = facts_of(platform, device);
      Result error = success;
      state->context = cl.create_context(nullptr, 1, &device, nullptr, nullptr, &error);
      if (state->context == nullptr) continue;
      state->queue = cl.create_queue(state->context, device, 0, &error);
      if (state->queue == nullptr) continue;
      result.push_back(std::unique_ptr<Device>(new Device(std::move(state))));
    }
  }
  return result;
}

DeviceProgram Device::compile(const std::string& text) const {
  const Api& cl = *api();
  const char* start = text.c_str();
  const size_t length = text.size();
  Result error = success;
  DeviceProgram program(cl.create_program(state_->context, 1, &start, &length, &error));
  require(error, "taking a program's text");
  const auto id = static_cast<ProgramId>(program.handle_);
  std::string options = "-cl-std=CL1.2";
  if (state_->facts.exact_division) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (state_->facts.optimises_wrongly) options += " -cl-opt-disable";
  if (cl.build_program(id, 1, &state_->device, options.c_str(), nullptr, nullptr) != success)
    throw UserError(fmt::format("OpenCL: {} does not compile the kernels: {}", state_->facts.name,
                                text_of([&](size_t room, void* value, size_t* size) {
                                  return cl.get_build_info(id, state_->device, program_log, room, value,
                                                           size);
                                })));
  return program;
}

// Drivers refuse memory of no size, and arguments that are no memory.
DeviceMemory Device::allocate(size_t bytes) const {
  DeviceMemory memory;
  memory.bytes_ = bytes;
  Result error = success;
  memory.handle_ =
      api()->create_buffer(state_->context, memory_read_write, std::max<size_t>(bytes, 1), nullptr, &error);
  require(error, "allocating memory");
  return memory;
}

void Device::write(const DeviceMemory& memory, const void* from) const {
  if (memory.bytes_ == 0) return;
  require(api()->write_buffer(state_->queue, static_cast<Memory>(memory.handle_), 1, 0, memory.bytes_, from,
                              0, nullptr, nullptr),
          "writing memory");
}

void Device::read(const DeviceMemory& memory, void* to) const {
  if (memory.bytes_ == 0) return wait();
  require(api()->read_buffer(state_->queue, static_cast<Memory>(memory.handle_), 1, 0, memory.bytes_, to, 0,
                             nullptr, nullptr),
          "reading memory");
}

void Device::copy(const DeviceMemory& from, const DeviceMemory& to) const {
  if (from.bytes_ == 0) return;
  require(api()->copy_buffer(state_->queue, static_cast<Memory>(from.handle_),
                             static_cast<Memory>(to.handle_), 0, 0, from.bytes_, 0, nullptr, nullptr),
          "copying memory");
}

void Device::wait() const { require(api()->finish(state_->queue), "waiting"); }

void Device::launch(const DeviceProgram& program, const std::string& function,
                    std::span<const DeviceMemory* const> memory, std::span<const int64_t> parameters,
                    int64_t groups, int threads) const {
  if (groups <= 0) return;
  const Api& cl = *api();
  Result error = success;
  KernelId kernel = cl.create_kernel(static_cast<ProgramId>(program.handle_), function.c_str(), &error);
  require(error, "finding a kernel");
  uint32_t index = 0;
  for (const DeviceMemory* m : memory) {
    if (error == success) error = cl.set_argument(kernel, index++, sizeof(m->handle_), &m->handle_);
  }
  for (const int64_t& p : parameters) {
    if (error == success) error = cl.set_argument(kernel, index++, sizeof(p), &p);
  }
  const auto local = static_cast<size_t>(threads);
  const size_t global = static_cast<size_t>(groups) * local;
  if (error == success)
    error = cl.launch(state_->queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr);
  cl.release_kernel(kernel);
  require(error, "launching a kernel");
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), bytes_(other.bytes_) {}
DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
DeviceMemory::~DeviceMemory() {
  if (handle_ != nullptr) api()->release_memory(static_cast<Memory>(handle_));
}

DeviceProgram::DeviceProgram(DeviceProgram&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)) {}
DeviceProgram::~DeviceProgram() {
  if (handle_ != nullptr) api()->release_program(static_cast<ProgramId>(handle_));
}

}  // namespace fusewise::runtime::opencl
