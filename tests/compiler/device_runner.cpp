#include "compiler/device_runner.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "base/error.h"
#include "kernel/passes/pipeline.h"

namespace fusewise::test {

using runtime::opencl::Device;
using runtime::opencl::DeviceMemory;

const Device* device_of(const std::string& platform) {
  // Never freed: at the end of the program the driver's own objects may be gone before.
  static const auto& devices = *[] {
    // Mesa's driver offers the processor only on request.
    ::setenv("RUSTICL_ENABLE", "swrast", 0);
    return new std::vector<std::unique_ptr<Device>>(Device::all());
  }();
  for (const auto& device : devices)
    if (device->facts().platform.find(platform) != std::string::npos) return device.get();
  fmt::print("left out: there is no OpenCL platform named {}\n", platform);
  return nullptr;
}

PreparedKernel prepare_kernel(const schedule::RegionForms& forms, const schedule::Tree& tree) {
  PreparedKernel result;
  result.lowered = schedule::lower(forms, tree, {1});
  result.passed = kernel::run_passes(result.lowered.kernel, codegen::source_passes());
  return result;
}

void DeviceBatch::add(std::shared_ptr<const RegionOracle> oracle, PreparedKernel kernel, std::string name,
                      std::string about) {
  kernel.passed.name = fmt::format("k{}", jobs_.size());
  codegen::SourceKernel printed =
      codegen::print_source(kernel.passed, codegen::opencl_dialect(), machine::plain_gpu());
  if (printed.uses_double && !device_.facts().has_double)
    throw UnsupportedError("float64, which the device has not");
  printed_.push_back(std::move(printed));
  jobs_.push_back({std::move(oracle), std::move(kernel), std::move(name), std::move(about)});
}

std::vector<DeviceBatch::Result> DeviceBatch::run() {
  if (jobs_.empty()) return {};
  const codegen::Dialect& dialect = codegen::opencl_dialect();
  const auto program = device_.compile(codegen::source_module(printed_, dialect));
  std::vector<Result> results;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string words = run(program, i);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    results.push_back({jobs_[i].name, {}, took.count()});
    if (!words.empty())
      results.back().wrong = fmt::format("{}: {}: {}\n{}\n{}", device_.facts().platform, jobs_[i].name, words,
                                         jobs_[i].about, printed_[i].text);
  }
  jobs_.clear();
  printed_.clear();
  return results;
}

std::string DeviceBatch::run(const runtime::opencl::DeviceProgram& program, size_t number) const {
  const RegionOracle& oracle = *jobs_[number].oracle;
  const auto& [lowered, passed] = jobs_[number].kernel;
  const std::vector<int64_t> parameters = oracle.parameters(lowered);
  SymbolValues named;
  for (size_t i = 0; i < parameters.size(); ++i) named[passed.parameters[i]] = parameters[i];
  std::vector<std::vector<char>> bytes = argument_bytes(oracle, lowered);
  std::vector<DeviceMemory> memory;
  std::vector<const DeviceMemory*> arguments;
  for (const std::vector<char>& b : bytes) {
    memory.push_back(device_.allocate(b.size()));
    device_.write(memory.back(), b.data());
  }
  for (const DeviceMemory& m : memory) arguments.push_back(&m);
  for (const codegen::Launch& launch : printed_[number].launches)
    device_.launch(program, launch.function, arguments, parameters, launch.blocks.evaluate(named),
                   launch.threads);
  std::vector<const char*> results;
  for (size_t i = 0; i < bytes.size(); ++i) {
    device_.read(memory[i], bytes[i].data());
    results.push_back(bytes[i].data());
  }
  return compare_arguments(oracle, lowered, results);
}

}  // namespace fusewise::test
