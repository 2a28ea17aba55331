// Kernels compiled, linked and opened in this process, to run in tests.
#pragma once

#include <dlfcn.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/codegen.h"
#include "kernel/kernel.h"
#include "numerics/dim.h"

namespace fusewise::test {

class LoadedKernels {
 public:
  LoadedKernels(std::span<const kernel::Kernel> kernels, const codegen::CpuTarget& target) {
    std::string folder = (std::filesystem::temp_directory_path() / "fusewise-test-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw UserError("no temporary folder");
    const std::filesystem::path path = std::filesystem::path(folder) / "kernels.so";
    codegen::link_shared(codegen::compile_objects(kernels, target, 2), path);
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const std::string problem = library_ == nullptr ? dlerror() : "";
    std::filesystem::remove_all(folder);
    if (library_ == nullptr) throw UserError(problem);
  }
  ~LoadedKernels() { dlclose(library_); }
  LoadedKernels(const LoadedKernels&) = delete;
  LoadedKernels& operator=(const LoadedKernels&) = delete;

  // Runs all phases, each in two pieces.
  void run(const kernel::Kernel& kernel, std::span<void* const> buffers,
           std::span<const int64_t> parameters) const {
    SymbolValues values;
    for (size_t i = 0; i < parameters.size(); ++i) values[kernel.parameters[i]] = parameters[i];
    const size_t bytes = static_cast<size_t>(kernel.scratch_bytes.evaluate(values));
    char* scratch = static_cast<char*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64));
    for (size_t phase = 0; phase < kernel.phases.size(); ++phase) {
      const int64_t count =
          function<int64_t(const int64_t*)>(codegen::block_count_symbol(kernel, phase))(parameters.data());
      auto* blocks = function<void(void* const*, const int64_t*, char*, int64_t, int64_t)>(
          codegen::phase_symbol(kernel, phase));
      blocks(buffers.data(), parameters.data(), scratch, 0, count / 2);
      blocks(buffers.data(), parameters.data(), scratch, count / 2, count);
    }
    std::free(scratch);
  }

 private:
  template <class Function>
  Function* function(const std::string& name) const {
    void* symbol = dlsym(library_, name.c_str());
    if (symbol == nullptr) throw UserError("no function " + name);
    return std::bit_cast<Function*>(symbol);
  }
  void* library_ = nullptr;
};

}  // namespace fusewise::test
