// The kernels of a program as functions: its shared object, opened, with every symbol looked up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "program/program.h"

namespace fusewise::runtime {

using PhaseFunction = void (*)(void* const* buffers, const int64_t* parameters, char* scratch,
                               int64_t block_begin, int64_t block_end);
using BlocksFunction = int64_t (*)(const int64_t* parameters);

struct LoadedKernel {
  struct Phase {
    PhaseFunction run;
    BlocksFunction blocks;
  };
  std::vector<Phase> phases;
};

class Kernels {
 public:
  // With a resolver the program's library stays closed. Throws UserError when it cannot be loaded,
  // InternalError when a symbol is missing.
  Kernels(const program::Program& program, const std::function<void*(const std::string&)>& resolver);

  const LoadedKernel& operator[](uint32_t kernel) const { return kernels_[kernel]; }

 private:
  std::shared_ptr<void> handle_;
  std::vector<LoadedKernel> kernels_;
};

// Throws UserError when the program needs something that this processor lacks.
void check_cpu(const program::Program& program);

}  // namespace fusewise::runtime
