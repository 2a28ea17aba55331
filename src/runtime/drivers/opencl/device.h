// A device that OpenCL reaches: kernels compiled from text, memory, launches one after the other. What fails throws
// UserError with the driver's own words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fusewise::runtime::opencl {

struct DeviceFacts {
  std::string platform, name;
  int64_t shared_bytes = 0;  // that the threads of a group share
  int64_t most_threads = 1;  // of a group
  bool has_double = false;
  bool ieee = false;            // denormals, infinities, rounding to nearest, fma
  bool exact_division = false;  // correctly rounded division and square root on request
  // Results are wrong where the driver's optimiser runs: it is left out. pocl (seen in 3.1) moves code over barriers that
  // stand in branches and loops; Oclgrind (seen in 21.10) compares what became 16 bits wrongly.
  bool optimises_wrongly = false;
};

// Bytes of the device's memory, freed with this.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();
  size_t bytes() const { return bytes_; }

 private:
  friend class Device;
  void* handle_ = nullptr;
  size_t bytes_ = 0;
};

// Compiled kernels, by name.
class DeviceProgram {
 public:
  DeviceProgram(DeviceProgram&& other) noexcept;
  DeviceProgram& operator=(DeviceProgram&&) = delete;
  ~DeviceProgram();

 private:
  friend class Device;
  explicit DeviceProgram(void* handle) : handle_(handle) {}
  void* handle_;
};

class Device {
 public:
  // All devices of all platforms; none where there is no OpenCL.
  static std::vector<std::unique_ptr<Device>> all();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceFacts& facts() const;
  // OpenCL C 1.2, with the options that keep IEEE arithmetic and those that the driver needs to be right.
  DeviceProgram compile(const std::string& text) const;
  DeviceMemory allocate(size_t bytes) const;
  void write(const DeviceMemory& memory, const void* from) const;
  void read(const DeviceMemory& memory, void* to) const;
  void copy(const DeviceMemory& from, const DeviceMemory& to) const;  // of equal size
  void wait() const;                                                  // until all is done
  // The function on its memory arguments, then its int64 parameters, in `groups` groups of `threads` threads; nothing
  // where there is no group. Returns when it has been handed over; read waits for it.
  void launch(const DeviceProgram& program, const std::string& function,
              std::span<const DeviceMemory* const> memory, std::span<const int64_t> parameters,
              int64_t groups, int threads) const;

 private:
  struct State;
  explicit Device(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fusewise::runtime::opencl
