// A program whose kernels are OpenCL C, loaded onto a device: constants and once results stay there, each run brings
// its inputs, runs the steps in order, and takes its outputs back. Runs from several threads wait for each other.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "program/program.h"
#include "runtime/binding.h"
#include "runtime/executable.h"
#include "runtime/status.h"

namespace fusewise::runtime::opencl {

class DeviceExecutable {
 public:
  // Compiles the kernels for the first device that computes as IEEE 754 says; FUSEWISE_OPENCL_PLATFORM names a part of
  // the platform's name. Throws UserError where there is none, or where its driver does not compile them.
  // `poison`: what a run has not written yet holds 0xFF bytes (NaN).
  explicit DeviceExecutable(program::Program program, bool poison = false);
  ~DeviceExecutable();

  const program::Program& program() const;
  std::string device_name() const;
  int64_t resident_bytes() const;

  // As those of Executable; after_step sees copies.
  std::shared_ptr<const Binding> bind(std::span<const std::vector<int64_t>> input_shapes) const;
  Status run(const Binding& binding, std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunOptions& options = {}) const noexcept;
  program::Program with_once_results() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fusewise::runtime::opencl
