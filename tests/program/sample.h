// A small program that uses every table, for the tests of this room.
#pragma once

#include <cstring>

#include "program/program.h"

namespace fusewise::program {

template <class T>
Bytes bytes_of_values(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return own_bytes(std::move(bytes));
}

inline Buffer make_buffer(BufferKind kind, uint32_t index, Dim bytes, std::string name) {
  Buffer buffer;
  buffer.kind = kind;
  buffer.index = index;
  buffer.bytes = std::move(bytes);
  buffer.name = std::move(name);
  return buffer;
}

inline Step make_step(uint32_t kernel, std::vector<BufferId> buffers, std::vector<Dim> parameters,
                      std::string label) {
  Step step;
  step.kernel = kernel;
  step.buffers = std::move(buffers);
  step.parameters = std::move(parameters);
  step.label = std::move(label);
  return step;
}

// y = (x + packed weights) and the shape of x; packed is made once from w. Buffers: 0 x, 1 w, 2 packed, 3
// sum, 4 dims, 5 y, 6 shape.
inline Program sample_program() {
  Program program;
  program.name = "sample";
  program.symbols = {"batch"};
  const Dim batch = Dim::symbol("batch");
  program.inputs = {{"x", DataType::float32, {batch, 4}}};
  program.outputs = {{"y", DataType::float32, {batch, 4}, 5, {0}}, {"shape", DataType::int64, {2}, 6, {}}};
  program.buffers = {make_buffer(BufferKind::input, 0, 16 * batch, "x"),
                     make_buffer(BufferKind::constant, 0, 16, "w"),
                     make_buffer(BufferKind::once, none, 32, "packed"),
                     make_buffer(BufferKind::arena, none, 16 * batch, "sum"),
                     make_buffer(BufferKind::dims, none, 16, "dims"),
                     make_buffer(BufferKind::output, 0, 16 * batch, "y"),
                     make_buffer(BufferKind::output, 1, 16, "shape")};
  program.buffers[2].zero_fill = true;
  program.buffers[4].dims = {batch, 4};
  Constant weights;
  weights.name = "w";
  weights.bytes = bytes_of_values<float>({1, 2, 3, 4});
  weights.size = 16;
  program.constants = {weights};
  program.kernels = {{"pack", 1, {}, 0, {0, 1}, {}},
                     {"add", 1, {"p0", "p1"}, 64 * Dim::symbol("p0"), {0, 0, 1}, {}},
                     {"relu", 2, {"p0"}, 0, {0, 1}, {}}};
  program.once_steps = {make_step(0, {1, 2}, {}, "pack w")};
  program.run_steps = {make_step(1, {0, 2, 3}, {batch, 4}, "Add_1"),
                       make_step(2, {3, 5}, {4 * batch}, "Relu_2")};
  Step copy = make_step(none, {4, 6}, {}, "Shape_3");
  copy.kind = StepKind::copy;
  program.run_steps.push_back(copy);
  program.guards = {{batch, Guard::Relation::at_least, 1, "the batch must not be empty"}};
  program.cpu_features = {"sse2"};
  program.metadata = "made by a test";
  program.library.bytes = bytes_of_values<char>({'e', 'l', 'f'});
  return program;
}

}  // namespace fusewise::program
