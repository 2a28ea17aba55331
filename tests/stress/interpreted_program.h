// Runs a program whose kernels are kernel IR and no machine code: steps, places in memory and copies are those of the
// runtime, kernels run in the kernel interpreter with all its checks. Starts in no time.
#pragma once

#include <span>
#include <vector>

#include "graph/interpreter/tensor.h"
#include "kernel/kernel.h"
#include "program/program.h"

namespace fusewise::test {

// Throws kernel::KernelFault, and what binding the shapes throws.
std::vector<graph::Tensor> run_interpreted(const program::Program& program,
                                           std::span<const kernel::Kernel> kernels,
                                           std::span<const graph::Tensor> inputs);

}  // namespace fusewise::test
