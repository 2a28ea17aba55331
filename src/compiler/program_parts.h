// What build_program puts a program together from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "program/program.h"

namespace fusewise::compiler {

program::BufferId add_buffer(program::Program& program, program::BufferKind kind, uint32_t index, Dim bytes,
                             std::string name);

// Once steps in the order in which memory peaks least: a step has its source and its result in memory, later ones only
// results.
std::vector<program::Step> largest_first(const program::Program& program, std::vector<program::Step> steps);

// Where a body finds its inputs and leaves its outputs.
struct BodyEnds {
  std::vector<program::BufferId> inputs, outputs;
};
// Gives the buffers of a loop their roles in `step`, and adds those that only the loop needs.
BodyEnds add_loop_roles(program::Program& program, const graph::Node& node,
                        const std::vector<program::BufferId>& operands,
                        const std::vector<program::BufferId>& results, program::Step& step);

Dim bytes_of_type(const graph::TensorType& type);  // row-major

}  // namespace fusewise::compiler
