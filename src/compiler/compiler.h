// From a graph to a program: the only room that knows the whole order. Rewrites, plan, kernels, objects, steps.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fusion/plan.h"
#include "fusion/planner.h"
#include "graph/graph.h"
#include "machine/machine.h"
#include "program/program.h"

namespace fusewise::compiler {

enum class Numerics : uint8_t { strict, default_, fast };

struct CompileOptions {
  Numerics numerics = Numerics::default_;
  fusion::FusionMode fusion = fusion::FusionMode::on;
  machine::Machine machine;  // whose code generation features the kernels may use
  int threads = 1;           // that the program will run on; the plan reckons with it
  SymbolValues usual;        // and with these values of symbols; the program takes any others, too
  std::string target;        // "opencl": kernels as source text for a GPU; empty: machine code for the CPU
  int compile_threads = 1;
  std::optional<std::string> plan_text;      // a plan file's text to replay
  std::vector<std::string> disabled_passes;  // rewrites and kernel passes by name
  std::vector<std::string> in_place;         // outputs that grow in the memory of inputs: find_appends.h
  // Called with a phase ("rewrite", "plan", "lower", "codegen", "link") and done / total.
  std::function<void(const std::string& phase, int done, int total)> progress;
  // Called with (stage, name, text) for `dump`: stages graph, rewritten, plan, schedule, kernel, source, llvm, assembly.
  std::function<void(const std::string& stage, const std::string& name, const std::string& text)> dump;
};

// The first half: what is rewritten, packed and planned, and what it was planned with (for explanations).
struct Planned {
  graph::Graph graph;  // after rewrites; the plan's node ids are into it
  fusion::FusionPlan plan;
  fusion::PlanOptions plan_options;
  std::map<std::string, double> milliseconds;  // per phase
};

// UserError for a plan file that does not fit.
Planned plan_graph(graph::Graph graph, const CompileOptions& options);

struct Compiled {
  program::Program program;
  fusion::FusionPlan plan;
  graph::Graph graph;                                 // after rewrites; the plan's node ids are into it
  std::map<graph::Value, program::BufferId> buffers;  // where the graph's values lie that kernels store
  std::vector<uint32_t> run_steps;  // of the regions; none for those that are no step of a run
  std::vector<uint32_t> kernels;    // of the regions, into the program's; none where there is no kernel
  std::map<std::string, double> milliseconds;  // per phase
};

// UserError for a plan that does not fit, UnsupportedError for what cannot be compiled yet.
Compiled compile(graph::Graph graph, const CompileOptions& options);

}  // namespace fusewise::compiler
