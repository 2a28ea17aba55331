// Many random regions under the schedules chosen for a GPU: through the kernel interpreter, and as printed source on an
// OpenCL device, to the bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/region_stress.h"
#include "runtime/drivers/opencl/device.h"

namespace fusewise::test {

struct DeviceStress {
  const runtime::opencl::Device* device = nullptr;  // null: the interpreter alone
  int64_t regions = 1000;
  uint64_t seed = 1;
  int64_t print_every = 1;  // of the regions that the interpreter finds right
  int64_t batch = 32;       // kernels of one program
  double seconds = 0;       // stop after so long; 0: never
  bool is_verbose = false;  // a line for each kernel that the driver takes more than a second for
};

struct DeviceTally {
  Counts outcomes;  // of every region: the number of phases, or why it was refused
  std::vector<std::string> wrong;
  int64_t regions = 0, interpreted = 0, launched = 0, barriers = 0, sharing = 0;
  double interpreting = 0, driving = 0;  // seconds
  double slowest = 0;                    // kernel for the driver, in seconds
  std::string slowest_name;
};

DeviceTally run_stress(const DeviceStress& options);
std::string to_text(const DeviceTally& tally);

}  // namespace fusewise::test
