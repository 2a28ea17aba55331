// From a plan and its kernel calls to a Program: buffers, steps, constants, guards.
#pragma once

#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/kernels.h"

namespace fusewise::compiler {

// `calls` stand for the plan's regions, in the same order.
program::Program build_program(const graph::Graph& graph, const fusion::FusionPlan& plan,
                               const std::vector<KernelCall>& calls, const KernelSet& kernels,
                               std::string library, const CompileOptions& options);

}  // namespace fusewise::compiler
