// What a kernel is expected to cost: its work by unit, its traffic by memory level, its overheads, its time.
#pragma once

#include <cstdint>
#include <string>

#include "machine/machine.h"

namespace fusewise::cost {

// Cycles of one core, all tiles together, by unit.
struct UnitCycles {
  double multiply_add = 0, vector = 0, function = 0, convert = 0, memory_access = 0, shuffle = 0;
  double total() const { return multiply_add + vector + function + convert + memory_access + shuffle; }
};

// Microseconds, by what they go to, and all together.
struct Times {
  double compute = 0, l1 = 0, l2 = 0, l3 = 0;  // from the level behind each
  double overhead = 0;                         // dispatch, barriers, tiles
  double total = 0;
};

struct Estimate {
  UnitCycles cycles;
  // Bytes that cross into each level from the one behind it, and what is written out.
  double l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  double flops = 0;
  double tiles = 1;
  double parallel_efficiency = 1;  // tiles / (ceil(tiles / threads) * threads)
  double recompute = 1;            // element computations against the least number of them
  double tail_waste = 1;           // lanes issued against lanes of use
  bool spills = false;
  int phases = 1;
  double scratch_bytes = 0;  // of one worker
  Times alone, together;     // on one thread, and on all of them, which have to be woken and waited for
  double microseconds = 0;   // of the better of the two
  bool on_one_thread() const { return alone.total <= together.total; }
  const Times& times() const { return on_one_thread() ? alone : together; }

  // The unit or level that dominates: "compute", "l2", "l3", "memory" or "overhead".
  std::string bound() const;
};

// One line per term, for explanations.
std::string to_text(const Estimate& estimate);

// What all phases together take on several threads beside the work itself.
double fork_join_microseconds(const Estimate& estimate, const machine::Machine& machine);
// The share of a kernel's work below which one thread is done sooner than `threads`: above 1 where that holds for all
// of it. 0 for one thread.
double serial_share(const Estimate& estimate, const machine::Machine& machine, int threads);

// Fills in the times from cycles, bytes and tiles of one phase. A barrier between phases costs about what a dispatch
// costs: both wake and join the same threads.
void finish(Estimate& estimate, const machine::Machine& machine, int threads);
// Adds a phase that runs after those of `estimate`.
void add_phase(Estimate& estimate, const Estimate& phase);

}  // namespace fusewise::cost
