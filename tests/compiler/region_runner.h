// Runs one region three ways (the kernel as lowered through the kernel interpreter, the same after the kernel
// passes, and as machine code between guard pages) against the reference interpreter, to the bit.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/interpreter/double_interpreter.h"
#include "graph/interpreter/tensor.h"
#include "graph/region.h"
#include "schedule/lower.h"
#include "schedule/schedule.h"
#include "support/random.h"

namespace fusewise::test {

struct RegionRun {
  bool interpret_lowered = true, interpret_passed = true, compile = true;
  std::string target = "native";
  int vector_bits = 256;
  bool any_order = false;  // compare within the bounds of default numerics
};

// A region on given inputs, and what the reference interpreter makes of them. Graph and layouts must stay alive.
struct RegionOracle {
  RegionOracle(const graph::Graph& of_graph, graph::Region of_region, const schedule::Layouts& of_layouts,
               const std::vector<graph::Tensor>& inputs);
  const graph::Graph* graph;
  const schedule::Layouts* layouts;
  graph::Region region;
  std::map<graph::Value, graph::Tensor> values;  // row-major: what the region reads and writes
  SymbolValues symbols;
  // Where given, outputs need only lie within these bounds.
  std::map<graph::Value, graph::BoundedTensor> bounded;
  void allow_any_order(const std::vector<graph::Tensor>& inputs);

  // Runs a kernel (as lowered, or what passes or a test made of it) in the kernel interpreter. Empty if it is right,
  // else what differs or what the interpreter found.
  std::string interpret(const schedule::LoweredKernel& lowered, const kernel::Kernel& kernel) const;

  schedule::Layout layout_of(graph::Value v) const;
  std::vector<int64_t> shape_of(graph::Value v) const;
  bool is_input(graph::Value v) const { return !graph::contains(region, v.node); }
  std::vector<int64_t> parameters(const schedule::LoweredKernel& lowered) const;
};

// The bytes of each argument of a kernel before it runs (inputs in their layouts, anything else 0xFF), and what its
// outputs hold differently from what is wanted afterwards; empty if nothing does.
std::vector<std::vector<char>> argument_bytes(const RegionOracle& oracle,
                                              const schedule::LoweredKernel& lowered);
std::string compare_arguments(const RegionOracle& oracle, const schedule::LoweredKernel& lowered,
                              std::span<const char* const> arguments);

// Kernels with different names as machine code in this process.
class CompiledKernels {
 public:
  CompiledKernels(std::span<const kernel::Kernel> kernels, const std::string& target, int threads);
  ~CompiledKernels();
  CompiledKernels(const CompiledKernels&) = delete;
  CompiledKernels& operator=(const CompiledKernels&) = delete;
  // Between guard pages, blocks out of order. Empty if it is right.
  std::string run(const RegionOracle& oracle, const schedule::LoweredKernel& lowered,
                  const kernel::Kernel& kernel) const;

 private:
  void* library_ = nullptr;
};

// All nodes that have a form, materialising the graph's outputs.
graph::Region whole_region(const graph::Graph& graph);
// Some connected nodes, with what lies between them, materialising what others read and now and then more.
graph::Region random_part(const graph::Graph& graph, Random& random);

// Empty if all agree, else what differs, with the kernel's text. `inputs` are the graph's inputs in order.
std::string check_region(const graph::Graph& graph, const graph::Region& region,
                         const schedule::Schedule& schedule, const schedule::Layouts& layouts,
                         const std::vector<graph::Tensor>& inputs, const RegionRun& how);

// The bytes of a row-major tensor brought into a layout, padding zero, and back.
graph::Tensor to_layout(const graph::Tensor& tensor, const schedule::Layout& layout);
graph::Tensor from_layout(const graph::Tensor& physical, const schedule::Layout& layout,
                          std::vector<int64_t> shape);

}  // namespace fusewise::test
