// One step on memory that stands ready: all phases of its kernel, blocks spread over the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "runtime/binding.h"
#include "runtime/kernels.h"
#include "runtime/trace.h"

namespace fusewise::runtime {

// Where the parameters and phases of each step start, with room for all of them. A loop's parameter is how often it
// runs at most.
BoundSteps lay_out_steps(const program::Program& program, std::span<const program::Step> steps);
// Evaluates the parameters of steps [begin, end) and asks the kernels for their block counts.
void bind_steps(const program::Program& program, std::span<const program::Step> steps, size_t begin,
                size_t end, const Kernels& kernels, const SymbolValues& symbols, BoundSteps& bound);

// The pointers of a list of steps, flat: slots_of[i] is where those of step i start.
struct Slots {
  std::vector<program::BufferId> buffers;  // by slot
  std::vector<uint32_t> slots_of;          // by step
};
Slots slots_of(std::span<const program::Step> steps);

struct Scratch {
  std::byte* data = nullptr;  // of worker 0
  int64_t stride = 0;         // from one worker's to the next
};

// Into which trace (null: none) a step is recorded, and as which.
struct TracedStep {
  Trace* trace = nullptr;
  uint32_t step = 0;
};

// `saved`: microseconds that several threads save; less than 0: on the calling thread alone.
void run_kernel(const LoadedKernel& kernel, void* const* buffers, const int64_t* parameters,
                const int64_t* blocks, Scratch scratch, ThreadPool& pool,
                float saved = std::numeric_limits<float>::infinity(), TracedStep traced_step = {});
// All `bytes`; or the elements that `parameters` name, of a copy step as bind_steps() has made them.
void run_copy(void* const* buffers, int64_t bytes, ThreadPool& pool, TracedStep traced_step = {});
void run_strided_copy(void* const* buffers, std::span<const int64_t> parameters, ThreadPool& pool,
                      TracedStep traced_step = {});

}  // namespace fusewise::runtime
