// The kernels of a plan: each region lowered, equal kernels shared, all compiled and linked.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/source/source.h"
#include "compiler/compiler.h"
#include "schedule/lower.h"

namespace fusewise::compiler {

// One call of a kernel: which kernel, and what its arguments and parameters stand for.
struct KernelCall {
  int kernel =
      -1;  // into KernelSet::kernels; -1 where none runs: the host computes it, or it is put together in place
  std::vector<graph::Value> arguments;
  std::vector<schedule::LoweredKernel::Partial> partials;  // buffers behind the arguments, the kernel's own
  std::vector<Dim> parameters;
  // (output, input): the output may lie in the input's place.
  std::vector<std::pair<graph::Value, graph::Value>> overwritable;
  // A loop or a branch is no kernel; for each body the calls that stand for its plan's regions.
  std::vector<std::vector<KernelCall>> bodies;
};

// Collects regions; regions whose kernels have the same text share one kernel, named after the first.
class KernelSet {
 public:
  explicit KernelSet(const CompileOptions& options) : options_(options) {}

  // Lowers the plan's regions, those of bodies included, and adds their kernels: a call for each region. What a target
  // has no kernels for is refused; without a target, UnsupportedError.
  std::vector<KernelCall> add(const graph::Graph& graph, const fusion::FusionPlan& plan);
  // One region; `layouts` are those of its border.
  KernelCall add(const graph::Graph& graph, const graph::Region& region, const schedule::Schedule& schedule,
                 const schedule::Layouts& layouts);

  // One region of a plan: no kernel for one that is put together in place, or that the host computes, and calls for the
  // bodies of a loop or a branch. UnsupportedError for what a target has no kernels for.
  KernelCall add(const graph::Graph& graph, const fusion::PlannedRegion& planned,
                 const schedule::Layouts& layouts);

  // Runs the kernel passes and code generation, fills in what the program needs to know; the shared object, or the
  // source text. UnsupportedError with all kernels that cannot be printed.
  std::string compile();

  std::vector<kernel::Kernel> kernels;
  std::vector<std::vector<codegen::Launch>> launches;  // by kernel, of source text
  bool uses_double = false;                            // the source text

  // A region that add() refused: stands in the list of what is missing.
  void refuse(const std::string& name, const std::string& why);

 private:
  KernelCall share(schedule::LoweredKernel lowered, const graph::Graph& graph, const graph::Region& region);
  void check_in_one_piece(const graph::Graph& graph, const graph::Region& region,
                          const schedule::Layouts& layouts) const;

  const CompileOptions& options_;
  std::map<std::string, int> by_text_;
  std::set<std::string> names_;
  std::string missing_;  // what is not supported, a line each

  schedule::Tree tree_of(const schedule::RegionForms& forms, const std::string& name,
                         const schedule::Schedule& schedule, const schedule::Layouts& layouts) const;
  std::string compile_machine_code();
  std::string print_source();
};

codegen::CpuTarget target_of(const machine::Machine& machine);

// Members' operators and the first model node: "conv_add_relu__layer1_0_conv1".
std::string region_name(const graph::Graph& graph, const graph::Region& region);

}  // namespace fusewise::compiler
