// Graphs compiled in strict mode for a named processor, run here or under emulation, and what their results hash to.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "graph/interpreter/tensor.h"

namespace fusewise::test {

struct Setting {
  std::string cpu;  // machine::machine_named
  fusion::FusionMode fusion = fusion::FusionMode::on;
  int threads = 1;
};
std::string describe(const Setting& setting);

program::Program compile_strictly(const graph::Graph& graph, const Setting& setting);

// On this processor, with memory that is not written yet full of NaN.
std::vector<graph::Tensor> run_here(program::Program program, std::span<const graph::Tensor> inputs,
                                    int threads);

// Under an emulator of a 64-bit Arm processor, by the program of aarch64/run_program.cpp.
std::vector<graph::Tensor> run_emulated(const program::Program& program,
                                        std::span<const graph::Tensor> inputs, int threads,
                                        const std::filesystem::path& folder);
// Why run_emulated cannot be used; empty when it can.
std::string no_emulation();

// A line per output: its name, type, shape and the hash of its bytes. All NaNs count as one, and so do no two other
// numbers: strict mode promises bits, NaN payloads aside.
std::string hashes_of(const graph::Graph& graph, std::span<const graph::Tensor> outputs);

}  // namespace fusewise::test
