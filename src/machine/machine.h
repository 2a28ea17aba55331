// A machine as data: what the planner, the cost model and code generation may know of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "numerics/data_type.h"

namespace fusewise::machine {

// A register tile that is known to run without spills: rows x vectors of accumulators.
struct RegisterTile {
  int rows = 0;
  int vectors = 0;
};

// How a figure came to be known; printed by the `machine` command.
enum class Origin : uint8_t { data_sheet, detected, measured };

struct Machine {
  std::string name;
  std::string architecture;  // "x86-64" or "aarch64"
  std::string cpu;           // for code generation, as machine_named takes it
  int vector_bits = 256;
  int vector_registers = 16;
  int fma_units = 2;
  double gigahertz = 2.5;  // nominal; only ratios matter
  int cores = 1;
  int64_t l1_bytes = 32 << 10, l2_bytes = 512 << 10, l3_bytes = 32 << 20;  // l3: shared by all cores
  // Bytes per cycle and core that a streaming read gets from each level.
  double l1_bandwidth = 64, l2_bandwidth = 32, l3_bandwidth = 12, memory_bandwidth = 5;
  double dispatch_microseconds = 0.7;  // one step
  // What a step on several threads takes beside: handing the work to threads that are awake (0.5 measured), waiting for
  // the last one, and fetching from another core's caches what it wrote. With 3, and not with 1.5, recurrent models with
  // steps of microseconds are no slower on two threads than on one.
  double fork_join_microseconds = 3;
  std::vector<RegisterTile> contraction_tiles;  // best first
  // Of a GPU, whose blocks are groups of threads; a CPU's block is one worker's. The registers are a thread's own, 32
  // bits each.
  int most_threads = 1;
  int64_t shared_bytes = 0;  // of memory that the threads of a group share
  int thread_registers = 0;
  Origin origin = Origin::data_sheet;

  int lanes(DataType type) const { return vector_bits / (8 * (bytes_of(type) > 0 ? bytes_of(type) : 1)); }
  // Multiply-adds of float32 per cycle and core.
  double fma_per_cycle() const { return static_cast<double>(fma_units) * vector_bits / 32; }
};

// The machine this process runs on; `cpu` "native" or an x86-64 level to restrict code to.
Machine host_machine(const std::string& cpu = "native");
// The same, or "aarch64": some 64-bit Arm processor, of which nothing is detected.
Machine machine_named(const std::string& cpu);
Machine machine_from_text(
    const std::string& text);  // the format that to_text writes; UserError with the line
std::string to_text(const Machine& machine);

// What every GPU of the last ten years has at least: groups of 256 threads, 32 KB that they share, no sub-groups.
Machine plain_gpu();

}  // namespace fusewise::machine
