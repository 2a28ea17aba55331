// From Kernel IR to the text of a C-like language that a driver compiles: one printer, and a dialect per language
// (dialect.h). Every phase of a kernel NAME becomes a function NAME_pI of the arguments in call order, then the
// parameters; a group of threads runs one block: a loop over blocks would put barriers into a loop, which drivers get
// wrong. Threads are the iterations of the kernel's thread loops, which must all be over one constant extent; where
// there are none, a group is a single thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/source/dialect.h"
#include "kernel/kernel.h"
#include "kernel/passes/pipeline.h"
#include "machine/machine.h"
#include "numerics/dim.h"

namespace fusewise::codegen {

// One function of the text, as a driver launches it.
struct Launch {
  std::string function;
  Dim blocks;       // over symbols named like the kernel's parameters; nothing to launch where it is below 1
  int threads = 1;  // of a group
  int64_t shared = 0;  // bytes of memory that a group's threads share
};

struct SourceKernel {
  std::string text;  // the functions alone, without the prelude
  bool uses_double = false;
  std::vector<Launch> launches;  // one per phase, in order
};

// UnsupportedError names what the language cannot do yet: vectors, sub-groups, memory of a size that is only known at
// run time, or more of it, or of threads, than the machine has.
SourceKernel print_source(const kernel::Kernel& kernel, const Dialect& dialect,
                          const machine::Machine& machine);

// The prelude and the kernels: what is handed to the driver's compiler.
std::string source_module(std::span<const SourceKernel> kernels, const Dialect& dialect);

// The kernel passes that prepare a kernel for printing: loops stay loops over single elements.
kernel::PassOptions source_passes();

}  // namespace fusewise::codegen
