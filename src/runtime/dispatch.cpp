#include "runtime/dispatch.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace fusewise::runtime {
namespace {

// Pieces per worker: enough that a late or slow worker costs little, few enough that taking them costs
// nothing.
constexpr int64_t pieces_per_worker = 8;
constexpr int64_t copy_piece = 256 * 1024;
constexpr int64_t cache_line = 64;

// Half of the time of one thread, at the rate of a core that copies from memory.
constexpr double copied_per_microsecond = 10000;
double saved_by_copying(int64_t bytes) { return static_cast<double>(bytes) / copied_per_microsecond / 2; }

float saved_microseconds(const program::Step& step, const SymbolValues& symbols) {
  if (step.parallel_from <= 0) return std::numeric_limits<float>::infinity();
  const auto share =
      static_cast<double>(step.size.evaluate(symbols)) / static_cast<double>(step.parallel_from);
  if (share < 1) return -1;
  return static_cast<float>((share - 1) * static_cast<double>(step.fork_join_nanoseconds) * 1e-3);
}

// Joins inner dimensions of a strided copy that lie in one piece on both sides: the first parameter becomes the bytes
// of a piece. As many outer dimensions of extent 1 take their place.
void join_dimensions(std::span<int64_t> parameters) {
  if (parameters.empty()) return;
  size_t end = parameters.size();
  while (end > 1) {
    const int64_t extent = parameters[end - 3];
    const bool joins =
        extent == 1 || (parameters[end - 2] == parameters[0] && parameters[end - 1] == parameters[0]);
    if (!joins) break;
    parameters[0] *= extent;
    end -= 3;
  }
  const size_t joined = parameters.size() - end;
  std::copy_backward(parameters.begin() + 1, parameters.begin() + static_cast<std::ptrdiff_t>(end),
                     parameters.end());
  for (size_t d = 1; d <= joined; d += 3) {
    parameters[d] = 1;
    parameters[d + 1] = parameters[d + 2] = 0;
  }
}

}  // namespace

BoundSteps lay_out_steps(const program::Program& program, std::span<const program::Step> steps) {
  BoundSteps bound;
  size_t parameters = 0, phases = 0;
  for (const program::Step& step : steps) {
    bound.parameters_of.push_back(static_cast<uint32_t>(parameters));
    bound.phases_of.push_back(static_cast<uint32_t>(phases));
    parameters += step.parameters.size() + (step.kind == program::StepKind::loop ? 1 : 0);
    if (step.kind == program::StepKind::kernel) phases += program.kernels[step.kernel].phases;
  }
  bound.saved.resize(steps.size());
  bound.parameters.resize(parameters);
  bound.blocks.resize(phases);
  return bound;
}

void bind_steps(const program::Program& program, std::span<const program::Step> steps, size_t begin,
                size_t end, const Kernels& kernels, const SymbolValues& symbols, BoundSteps& bound) {
  for (size_t index = begin; index < end; ++index) {
    const program::Step& step = steps[index];
    int64_t* parameters = bound.parameters.data() + bound.parameters_of[index];
    for (size_t i = 0; i < step.parameters.size(); ++i) parameters[i] = step.parameters[i].evaluate(symbols);
    if (step.kind == program::StepKind::copy) join_dimensions({parameters, step.parameters.size()});
    bound.saved[index] = saved_microseconds(step, symbols);
    if (step.kind == program::StepKind::loop) {
      parameters[0] = step.loop.bounded ? step.loop.trips.evaluate(symbols) : INT64_MAX;
      if (parameters[0] < 0)
        throw UserError(fmt::format("the loop '{}' would run {} times", step.label, parameters[0]));
    }
    if (step.kind != program::StepKind::kernel) continue;
    const program::Kernel& kernel = program.kernels[step.kernel];
    SymbolValues values;
    if (!kernel.scratch_bytes.is_constant())
      for (size_t i = 0; i < step.parameters.size(); ++i) values.emplace(kernel.parameters[i], parameters[i]);
    const int64_t scratch = kernel.scratch_bytes.evaluate(values);
    int64_t padded = 0;
    if (scratch < 0 || __builtin_add_overflow(scratch, cache_line - 1, &padded))
      throw UserError(fmt::format("kernel {} would need {} bytes of scratch memory", kernel.name, scratch));
    bound.scratch_bytes = std::max(bound.scratch_bytes, padded / cache_line * cache_line);
    int64_t* blocks = bound.blocks.data() + bound.phases_of[index];
    for (const LoadedKernel::Phase& phase : kernels[step.kernel].phases) {
      *blocks = phase.blocks(parameters);
      check(*blocks++ >= 0, "kernel " + kernel.name + " has a negative number of blocks");
    }
  }
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
                const int64_t* blocks, Scratch scratch, ThreadPool& pool, float saved,
                TracedStep traced_step) {
  char* base = reinterpret_cast<char*>(scratch.data);
  const int64_t workers = saved < 0 ? 1 : pool.size();
  saved /= static_cast<float>(kernel.phases.size());
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
    pool.parallel_for(count, run, grain, saved);
  }
}

void run_copy(void* const* buffers, int64_t bytes, ThreadPool& pool, TracedStep traced_step) {
  const char* from = static_cast<const char*>(buffers[0]);
  char* to = static_cast<char*>(buffers[1]);
  if (from == to || bytes == 0) return;
  const auto copy = [&](int64_t begin, int64_t end, int worker) {
    const int64_t first = begin * copy_piece;
    const int64_t last = std::min(bytes, end * copy_piece);
    traced(traced_step.trace, worker, {traced_step.step, 0, begin, end, {}, {}},
           [&] { std::memcpy(to + first, from + first, static_cast<size_t>(last - first)); });
  };
  pool.parallel_for((bytes + copy_piece - 1) / copy_piece, copy, 1, saved_by_copying(bytes));
}

void run_strided_copy(void* const* buffers, std::span<const int64_t> parameters, ThreadPool& pool,
                      TracedStep traced_step) {
  const char* from = static_cast<const char*>(buffers[0]);
  char* to = static_cast<char*>(buffers[1]);
  const int64_t piece = parameters[0];
  std::span<const int64_t> dims = parameters.subspan(1);
  while (!dims.empty() && dims[0] == 1) dims = dims.subspan(3);
  int64_t pieces = 1;
  for (size_t d = 0; d < dims.size(); d += 3) pieces *= dims[d];
  if (from == to || piece == 0 || pieces == 0) return;
  if (pieces == 1) return run_copy(buffers, piece, pool, traced_step);
  const auto copy_all = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i, source = 0, target = 0;
      for (size_t d = dims.size(); d > 0; d -= 3) {
        const int64_t index = rest % dims[d - 3];
        rest /= dims[d - 3];
        source += index * dims[d - 2];
        target += index * dims[d - 1];
      }
      std::memcpy(to + target, from + source, static_cast<size_t>(piece));
    }
  };
  const auto copy = [&](int64_t begin, int64_t end, int worker) {
    traced(traced_step.trace, worker, {traced_step.step, 0, begin, end, {}, {}},
           [&] { copy_all(begin, end); });
  };
  pool.parallel_for(pieces, copy, std::max<int64_t>(1, copy_piece / piece), saved_by_copying(pieces * piece));
}

}  // namespace fusewise::runtime
