// From a plan and its kernel calls to a Program: buffers, steps, constants, guards.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/kernels.h"

namespace fusewise::compiler {

// A program, and the buffers of the graph's values: those that regions store, and the sources that they read.
// `run_steps`: by region, its step of a run; none for those that run once or are assembled from others' results.
struct BuiltProgram {
  program::Program program;
  std::map<graph::Value, program::BufferId> buffers;
  std::vector<uint32_t> run_steps;
};

// `calls` stand for the plan's regions, in the same order.
BuiltProgram build_program(const graph::Graph& graph, const fusion::FusionPlan& plan,
                           const std::vector<KernelCall>& calls, const KernelSet& kernels,
                           std::string library, const CompileOptions& options);

}  // namespace fusewise::compiler
