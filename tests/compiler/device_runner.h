// Runs regions as printed source on an OpenCL device: many kernels in one program, because a driver takes a third of a
// second to begin with one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/source/source.h"
#include "region_runner.h"
#include "runtime/drivers/opencl/device.h"

namespace fusewise::test {

// The device of a platform whose name contains the word; null, with a line that says so, where there is none.
const runtime::opencl::Device* device_of(const std::string& platform);

class DeviceBatch {
 public:
  explicit DeviceBatch(const runtime::opencl::Device& device) : device_(device) {}
  // Prints the kernel; `passed` is `lowered` after the kernel passes. Throws UnsupportedError.
  void add(std::shared_ptr<const RegionOracle> oracle, schedule::LoweredKernel lowered, kernel::Kernel passed,
           std::string what);
  // Compiles what was added and runs it; a line for each that is wrong.
  std::vector<std::string> run();
  const std::string& platform() const { return device_.facts().platform; }

 private:
  struct Job {
    std::shared_ptr<const RegionOracle> oracle;
    schedule::LoweredKernel lowered;
    kernel::Kernel passed;
    std::string what;
  };
  std::string run(const runtime::opencl::DeviceProgram& program, size_t job) const;

  const runtime::opencl::Device& device_;
  std::vector<Job> jobs_;
  std::vector<codegen::SourceKernel> printed_;
};

}  // namespace fusewise::test
