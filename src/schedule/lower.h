// From loop tree to Kernel IR: loops, allocations, loads and stores by index map. One lowering for every legal
// region; what it emits is scalar code with loops marked unrolled or vector, which the kernel passes carry out.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "schedule/tree.h"

namespace fusewise::schedule {

struct LowerOptions {
  // float32 lanes of the target's vectors: the step in which the tail of a vector axis is done.
  int vector_lanes = 16;
};

struct LoweredKernel {
  kernel::Kernel kernel;         // its name is left empty
  std::vector<Value> arguments;  // the value behind each argument buffer: inputs, outputs, temporaries
  // Argument buffers behind those: states of the parts of split reductions, of no use outside the kernel.
  struct Partial {
    DataType element = DataType::undefined;
    Dim elements;
  };
  std::vector<Partial> partials;
  std::vector<Dim> parameters;  // what each run-time parameter stands for
};

// Of a tree with threads: the bytes that a group's threads share; nothing where they are known at run time only.
std::optional<int64_t> shared_bytes(const LoweredKernel& lowered);

LoweredKernel lower(const RegionForms& forms, const Tree& tree, const LowerOptions& options);

}  // namespace fusewise::schedule
