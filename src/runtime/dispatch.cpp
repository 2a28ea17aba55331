#include "runtime/dispatch.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace fusewise::runtime {
namespace {

// Pieces per worker: enough that a late or slow worker costs little, few enough that taking them costs
// nothing.
constexpr int64_t pieces_per_worker = 8;
constexpr int64_t copy_piece = 256 * 1024;
constexpr int64_t cache_line = 64;

}  // namespace

BoundSteps bind_steps(const program::Program& program, std::span<const program::Step> steps,
                      const Kernels& kernels, const SymbolValues& symbols) {
  BoundSteps bound;
  for (const program::Step& step : steps) {
    bound.parameters_of.push_back(static_cast<uint32_t>(bound.parameters.size()));
    bound.phases_of.push_back(static_cast<uint32_t>(bound.blocks.size()));
    if (step.kind == program::StepKind::copy) continue;
    const program::Kernel& kernel = program.kernels[step.kernel];
    SymbolValues values;
    for (size_t i = 0; i < step.parameters.size(); ++i) {
      bound.parameters.push_back(step.parameters[i].evaluate(symbols));
      if (!kernel.scratch_bytes.is_constant()) values.emplace(kernel.parameters[i], bound.parameters.back());
    }
    const int64_t scratch = kernel.scratch_bytes.evaluate(values);
    int64_t padded = 0;
    if (scratch < 0 || __builtin_add_overflow(scratch, cache_line - 1, &padded))
      throw UserError(fmt::format("kernel {} would need {} bytes of scratch memory", kernel.name, scratch));
    bound.scratch_bytes = std::max(bound.scratch_bytes, padded / cache_line * cache_line);
    const int64_t* parameters = bound.parameters.data() + bound.parameters_of.back();
    for (const LoadedKernel::Phase& phase : kernels[step.kernel].phases) {
      const int64_t blocks = phase.blocks(parameters);
      check(blocks >= 0, "kernel " + kernel.name + " has a negative number of blocks");
      bound.blocks.push_back(blocks);
    }
  }
  return bound;
}

Slots slots_of(std::span<const program::Step> steps) {
  Slots slots;
  for (const program::Step& step : steps) {
    slots.slots_of.push_back(static_cast<uint32_t>(slots.buffers.size()));
    slots.buffers.insert(slots.buffers.end(), step.buffers.begin(), step.buffers.end());
  }
  return slots;
}

void run_kernel(const LoadedKernel& kernel, void* const* buffers, const int64_t* parameters,
                const int64_t* blocks, Scratch scratch, ThreadPool& pool) {
  char* base = reinterpret_cast<char*>(scratch.data);
  const int64_t workers = pool.size();
  for (const LoadedKernel::Phase& phase : kernel.phases) {
    const int64_t count = *blocks++;
    if (count == 0) continue;
    if (count == 1 || workers == 1) {
      phase.run(buffers, parameters, base, 0, count);
      continue;
    }
    const int64_t grain = std::max<int64_t>(1, count / (workers * pieces_per_worker));
    pool.parallel_for(
        count,
        [&](int64_t begin, int64_t end, int worker) {
          phase.run(buffers, parameters, base + worker * scratch.stride, begin, end);
        },
        grain);
  }
}

void run_copy(void* const* buffers, int64_t bytes, ThreadPool& pool) {
  const char* from = static_cast<const char*>(buffers[0]);
  char* to = static_cast<char*>(buffers[1]);
  if (from == to || bytes == 0) return;
  pool.parallel_for((bytes + copy_piece - 1) / copy_piece, [&](int64_t begin, int64_t end, int) {
    const int64_t first = begin * copy_piece;
    const int64_t last = std::min(bytes, end * copy_piece);
    std::memcpy(to + first, from + first, static_cast<size_t>(last - first));
  });
}

}  // namespace fusewise::runtime
