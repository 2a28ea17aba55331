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

// The parameters of a strided copy, inner dimensions that lie in one piece on both sides joined: the bytes of a
// piece, then extent and both strides of the dimensions that are left, outermost first.
void add_copy(const program::Step& step, const SymbolValues& symbols, std::vector<int64_t>& parameters) {
  if (step.parameters.empty()) return;
  std::vector<int64_t> values;
  for (const Dim& parameter : step.parameters) values.push_back(parameter.evaluate(symbols));
  int64_t piece = values[0];
  while (values.size() > 1) {
    const size_t last = values.size() - 3;
    const bool joins = values[last] == 1 || (values[last + 1] == piece && values[last + 2] == piece);
    if (!joins) break;
    piece *= values[last];
    values.resize(last);
  }
  values[0] = piece;
  parameters.insert(parameters.end(), values.begin(), values.end());
}

}  // namespace

BoundSteps bind_steps(const program::Program& program, std::span<const program::Step> steps,
                      const Kernels& kernels, const SymbolValues& symbols) {
  BoundSteps bound;
  for (const program::Step& step : steps) {
    bound.parameters_of.push_back(static_cast<uint32_t>(bound.parameters.size()));
    bound.phases_of.push_back(static_cast<uint32_t>(bound.blocks.size()));
    if (step.kind == program::StepKind::copy) {
      add_copy(step, symbols, bound.parameters);
      continue;
    }
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
                const int64_t* blocks, Scratch scratch, ThreadPool& pool, TracedStep traced_step) {
  char* base = reinterpret_cast<char*>(scratch.data);
  const int64_t workers = pool.size();
  uint32_t number = 0;
  for (const LoadedKernel::Phase& phase : kernel.phases) {
    const int64_t count = *blocks++;
    const uint32_t this_phase = number++;
    if (count == 0) continue;
    const auto run = [&](int64_t begin, int64_t end, int worker) {
      traced(traced_step.trace, worker, {traced_step.step, this_phase, begin, end, {}, {}},
             [&] { phase.run(buffers, parameters, base + worker * scratch.stride, begin, end); });
    };
    if (count == 1 || workers == 1) {
      run(0, count, 0);
      continue;
    }
    const int64_t grain = std::max<int64_t>(1, count / (workers * pieces_per_worker));
    pool.parallel_for(count, run, grain);
  }
}

void run_copy(void* const* buffers, int64_t bytes, ThreadPool& pool, TracedStep traced_step) {
  const char* from = static_cast<const char*>(buffers[0]);
  char* to = static_cast<char*>(buffers[1]);
  if (from == to || bytes == 0) return;
  pool.parallel_for((bytes + copy_piece - 1) / copy_piece, [&](int64_t begin, int64_t end, int worker) {
    const int64_t first = begin * copy_piece;
    const int64_t last = std::min(bytes, end * copy_piece);
    traced(traced_step.trace, worker, {traced_step.step, 0, begin, end, {}, {}},
           [&] { std::memcpy(to + first, from + first, static_cast<size_t>(last - first)); });
  });
}

void run_strided_copy(void* const* buffers, std::span<const int64_t> parameters, ThreadPool& pool,
                      TracedStep traced_step) {
  const char* from = static_cast<const char*>(buffers[0]);
  char* to = static_cast<char*>(buffers[1]);
  const int64_t piece = parameters[0];
  int64_t pieces = 1;
  for (size_t d = 1; d < parameters.size(); d += 3) pieces *= parameters[d];
  if (from == to || piece == 0 || pieces == 0) return;
  if (pieces == 1) return run_copy(buffers, piece, pool, traced_step);
  const auto copy_all = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i, source = 0, target = 0;
      for (size_t d = parameters.size(); d > 1; d -= 3) {
        const int64_t index = rest % parameters[d - 3];
        rest /= parameters[d - 3];
        source += index * parameters[d - 2];
        target += index * parameters[d - 1];
      }
      std::memcpy(to + target, from + source, static_cast<size_t>(piece));
    }
  };
  const auto copy = [&](int64_t begin, int64_t end, int worker) {
    traced(traced_step.trace, worker, {traced_step.step, 0, begin, end, {}, {}},
           [&] { copy_all(begin, end); });
  };
  pool.parallel_for(pieces, copy, std::max<int64_t>(1, copy_piece / piece));
}

}  // namespace fusewise::runtime
