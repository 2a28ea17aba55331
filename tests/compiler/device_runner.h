// Runs regions as printed source on an OpenCL device: many kernels in one program, because a driver takes a third of a
// second to begin with one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/source/source.h"
#include "compiler/region_runner.h"
#include "runtime/drivers/opencl/device.h"

namespace fusewise::test {

// The device of a platform whose name contains the word; null, with a line that says so, where there is none.
const runtime::opencl::Device* device_of(const std::string& platform);

// A region lowered for a GPU, and the same ready to print.
struct PreparedKernel {
  schedule::LoweredKernel lowered;
  kernel::Kernel passed;
};
PreparedKernel prepare_kernel(const schedule::RegionForms& forms, const schedule::Tree& tree);

class DeviceBatch {
 public:
  // What became of one kernel.
  struct Result {
    std::string name;
    std::string wrong;   // empty if it is right
    double seconds = 0;  // that the driver took from its first launch to the last result
  };

  explicit DeviceBatch(const runtime::opencl::Device& device) : device_(device) {}
  // Prints the kernel; `about` goes into the words on a wrong result. The oracle's graph must stay alive. Throws
  // UnsupportedError.
  void add(std::shared_ptr<const RegionOracle> oracle, PreparedKernel kernel, std::string name,
           std::string about);
  // Compiles what was added and runs it, in order.
  std::vector<Result> run();
  size_t size() const { return jobs_.size(); }
  const std::string& platform() const { return device_.facts().platform; }

 private:
  struct Job {
    std::shared_ptr<const RegionOracle> oracle;
    PreparedKernel kernel;
    std::string name, about;
  };
  std::string run(const runtime::opencl::DeviceProgram& program, size_t job) const;

  const runtime::opencl::Device& device_;
  std::vector<Job> jobs_;
  std::vector<codegen::SourceKernel> printed_;
};

}  // namespace fusewise::test
