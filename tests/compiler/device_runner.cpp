#include "device_runner.h"

#include <fmt/format.h>

#include <cstdlib>

namespace fusewise::test {

using runtime::opencl::Device;
using runtime::opencl::DeviceMemory;

const Device* device_of(const std::string& platform) {
  static const std::vector<std::unique_ptr<Device>> devices = [] {
    // Mesa's driver offers the processor only on request.
    ::setenv("RUSTICL_ENABLE", "swrast", 0);
    return Device::all();
  }();
  for (const auto& device : devices)
    if (device->facts().platform.find(platform) != std::string::npos) return device.get();
  fmt::print("left out: there is no OpenCL platform named {}\n", platform);
  return nullptr;
}

void DeviceBatch::add(std::shared_ptr<const RegionOracle> oracle, schedule::LoweredKernel lowered,
                      kernel::Kernel passed, std::string what) {
  passed.name = fmt::format("k{}", jobs_.size());
  machine::Machine machine = machine::plain_gpu();
  printed_.push_back(codegen::print_source(passed, codegen::opencl_dialect(), machine));
  jobs_.push_back({std::move(oracle), std::move(lowered), std::move(passed), std::move(what)});
}

std::vector<std::string> DeviceBatch::run() {
  if (jobs_.empty()) return {};
  const codegen::Dialect& dialect = codegen::opencl_dialect();
  std::string options(dialect.options);
  if (device_.facts().exact_division) options += " " + std::string(dialect.exact_division_option);
  const auto program = device_.compile(codegen::source_module(printed_, dialect), options);
  std::vector<std::string> wrong;
  for (size_t i = 0; i < jobs_.size(); ++i)
    if (const std::string words = run(program, i); !words.empty())
      wrong.push_back(
          fmt::format("{}: {}\n{}\n{}", device_.facts().platform, words, jobs_[i].what, printed_[i].text));
  jobs_.clear();
  printed_.clear();
  return wrong;
}

std::string DeviceBatch::run(const runtime::opencl::DeviceProgram& program, size_t number) const {
  const Job& job = jobs_[number];
  const std::vector<int64_t> parameters = job.oracle->parameters(job.lowered);
  SymbolValues named;
  for (size_t i = 0; i < parameters.size(); ++i) named[job.passed.parameters[i]] = parameters[i];
  std::vector<std::vector<char>> bytes = argument_bytes(*job.oracle, job.lowered);
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
  return compare_arguments(*job.oracle, job.lowered, results);
}

}  // namespace fusewise::test
