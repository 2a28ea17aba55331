// Runs one region three ways (the kernel as lowered through the kernel interpreter, the same after the kernel
// passes, and as machine code between guard pages) against the reference interpreter, to the bit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/interpreter/tensor.h"
#include "graph/region.h"
#include "schedule/lower.h"
#include "schedule/schedule.h"

namespace fusewise::test {

struct RegionRun {
  bool interpret_lowered = true, interpret_passed = true, compile = true;
  std::string target = "native";
  int vector_bits = 256;
};

// All nodes that have a form, materialising the graph's outputs.
graph::Region whole_region(const graph::Graph& graph);

// Empty if all agree, else what differs, with the kernel's text. `inputs` are the graph's inputs in order.
std::string check_region(const graph::Graph& graph, const graph::Region& region, const schedule::Schedule& schedule,
                         const schedule::Layouts& layouts, const std::vector<graph::Tensor>& inputs,
                         const RegionRun& how);

// The bytes of a row-major tensor brought into a layout, padding zero, and back.
graph::Tensor to_layout(const graph::Tensor& tensor, const schedule::Layout& layout);
graph::Tensor from_layout(const graph::Tensor& physical, const schedule::Layout& layout, std::vector<int64_t> shape);

}  // namespace fusewise::test
