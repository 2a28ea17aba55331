// What a program is for given shapes of its inputs: immutable once made, and complete but for what later segments
// (segments.h) need; each run completes a copy of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "numerics/dim.h"
#include "program/program.h"
#include "runtime/segments.h"

namespace fusewise::runtime {

// Parameters and block counts of a list of steps, flat.
struct BoundSteps {
  std::vector<int64_t> parameters;
  std::vector<uint32_t> parameters_of;  // by step: where its parameters start
  std::vector<int64_t> blocks;          // by phase of every step
  std::vector<uint32_t> phases_of;      // by step: where its phases start
  std::vector<float> saved;   // by step: microseconds that several threads save, less than 0: one runs it
  int64_t scratch_bytes = 0;  // that one worker needs, a multiple of 64
};

// Extents of the caller's arrays along the axes where the program's inputs and outputs have a capacity, by index;
// 0, and what is missing at the end: the tensor's own.
struct Capacities {
  std::vector<int64_t> inputs, outputs;
  friend bool operator==(const Capacities&, const Capacities&) = default;
};

struct Binding {
  std::vector<std::vector<int64_t>> input_shapes;
  Capacities capacities;
  std::vector<std::vector<int64_t>> output_shapes;  // empty where only the run knows it
  std::vector<int64_t> input_bytes;                 // of the caller's arrays
  std::vector<int64_t> output_bytes;
  SymbolValues symbols;
  std::vector<int64_t> buffer_bytes;
  std::vector<std::vector<int64_t>> dims_values;  // by buffer, of dims buffers
  // By buffer; -1 for those elsewhere. In the block of the segment in which the buffer's size is known.
  std::vector<int64_t> arena_offsets;
  std::vector<int64_t> view_offsets;  // by buffer: bytes from the start of what it is a part of, else 0
  std::vector<int64_t> block_bytes;   // by segment
  int64_t arena_bytes = 0;            // of the first segment's block
  int64_t arena_lower_bound = 0;
  BoundSteps steps;
  uint64_t serial = 0;          // distinct within a process
  const void* owner = nullptr;  // the executable that it is for
};

// The symbols' values from the shapes; UserError names the input, the dimension and both values on a
// conflict.
SymbolValues solve_symbols(const program::Program& program,
                           std::span<const std::vector<int64_t>> input_shapes);
// UserError with the guard's words when one of the segment's does not hold.
void check_guards(const program::Program& program, const Segments& segments, uint32_t segment,
                  const SymbolValues& symbols);
// Everything that the first segment needs, but for its steps, which need the kernels (dispatch.h).
Binding bind_shapes(const program::Program& program, const Segments& segments,
                    std::span<const std::vector<int64_t>> input_shapes, const Capacities& capacities = {});
// The same for a later segment, once the symbols' values are in the binding.
void bind_segment(const program::Program& program, const Segments& segments, uint32_t segment,
                  Binding& binding);

}  // namespace fusewise::runtime
