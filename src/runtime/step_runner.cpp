#include "runtime/step_runner.h"

#include <algorithm>
#include <cstring>

#include "runtime/dispatch.h"

namespace fusewise::runtime {

using program::Loop;
using program::Step;
using program::StepKind;

namespace {

template <class T>
T load(const void* place) {
  T value{};
  std::memcpy(&value, place, sizeof(T));
  return value;
}

bool is_set(const void* place) { return load<uint8_t>(place) != 0; }

}  // namespace

StepRunner::StepRunner(const program::Program& program, const Kernels& kernels, ThreadPool& pool,
                       Workspace& workspace, const RunOptions& options)
    : program_(program), kernels_(kernels), pool_(pool), workspace_(workspace), options_(options) {
  if (!options.step_seconds.empty()) last_ = std::chrono::steady_clock::now();
}

bool StepRunner::is_cancelled() const {
  return options_.cancel && options_.cancel->load(std::memory_order_relaxed);
}

void StepRunner::lap(size_t index) {
  if (options_.step_seconds.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  options_.step_seconds[index] += std::chrono::duration<double>(now - last_).count();
  last_ = now;
}

bool StepRunner::run(size_t begin, size_t end) {
  for (size_t i = begin; i < end; i += 1 + program_.run_steps[i].body_steps) {
    if (is_cancelled()) return false;
    workspace_.before_step(i);
    switch (program_.run_steps[i].kind) {
      case StepKind::kernel:
      case StepKind::copy:
      case StepKind::host:
        run_leaf(i);
        break;
      case StepKind::loop:
        if (!run_loop(i)) return false;
        break;
      case StepKind::branch:
        if (!run_branch(i)) return false;
        break;
    }
    if (options_.after_step)
      options_.after_step(i, {workspace_.pointers(i), program_.run_steps[i].buffers.size()});
    lap(i);
  }
  return true;
}

void StepRunner::run_leaf(size_t index) {
  const Step& step = program_.run_steps[index];
  if (step.kind == StepKind::host) return workspace_.run_host(index);
  if (step.kind == StepKind::copy) return run_copy_step(index);
  const BoundSteps& steps = workspace_.binding().steps;
  run_kernel(kernels_[step.kernel], workspace_.pointers(index),
             steps.parameters.data() + steps.parameters_of[index],
             steps.blocks.data() + steps.phases_of[index], workspace_.scratch(), pool_, steps.saved[index],
             {options_.trace, static_cast<uint32_t>(index)});
}

void StepRunner::run_copy_step(size_t index) {
  const Step& step = program_.run_steps[index];
  const Binding& binding = workspace_.binding();
  const std::span parameters(binding.steps.parameters.data() + binding.steps.parameters_of[index],
                             step.parameters.size());
  const TracedStep traced_step{options_.trace, static_cast<uint32_t>(index)};
  if (!parameters.empty())
    return run_strided_copy(workspace_.pointers(index), parameters, pool_, traced_step);
  run_copy(workspace_.pointers(index), binding.buffer_bytes[step.buffers[0]], pool_, traced_step);
}

bool StepRunner::run_branch(size_t index) {
  const Step& step = program_.run_steps[index];
  const size_t first = index + 1, middle = first + step.then_steps;
  lap(index);
  if (is_set(workspace_.pointers(index)[0])) return run(first, middle);
  return run(middle, first + step.body_steps);
}

int64_t StepRunner::most_iterations(size_t index) const {
  const Loop& loop = program_.run_steps[index].loop;
  void* const* places = workspace_.pointers(index);
  if (loop.condition != program::none && !is_set(places[loop.condition])) return 0;
  int64_t most = workspace_.binding().steps.parameters[workspace_.binding().steps.parameters_of[index]];
  if (loop.count != program::none) most = std::min(most, load<int64_t>(places[loop.count]));
  return std::max<int64_t>(most, 0);
}

// `most`: iterations if no condition ends them, so that the last one writes to the results themselves.
void StepRunner::move(size_t index, int64_t iteration, int64_t most) {
  const Step& step = program_.run_steps[index];
  void* const* places = workspace_.pointers(index);
  for (const Loop::State& state : step.loop.states)
    workspace_.move(step.buffers[state.before], places[iteration == 0 ? state.initial : state.after]);
  const int64_t trips =
      workspace_.binding().steps.parameters[workspace_.binding().steps.parameters_of[index]];
  for (const Loop::Slice& slice : step.loop.slices) {
    const int64_t at = slice.backwards ? trips - 1 - iteration : iteration;
    const int64_t bytes = workspace_.binding().buffer_bytes[step.buffers[slice.part]];
    workspace_.move(step.buffers[slice.part], static_cast<std::byte*>(places[slice.whole]) + at * bytes);
  }
  for (const Loop::State& state : step.loop.states)
    if (state.spare != program::none)
      workspace_.move(step.buffers[state.after],
                      places[(most - 1 - iteration) % 2 == 0 ? state.result : state.spare]);
  if (step.loop.counter != program::none)
    std::memcpy(places[step.loop.counter], &iteration, sizeof(iteration));
}

bool StepRunner::run_loop(size_t index) {
  const Step& step = program_.run_steps[index];
  const Loop& loop = step.loop;
  void* const* places = workspace_.pointers(index);
  const int64_t most = most_iterations(index);
  int64_t iteration = 0;
  while (iteration < most) {
    if (is_cancelled()) return false;
    move(index, iteration++, most);
    lap(index);
    if (!run(index + 1, index + 1 + step.body_steps)) return false;
    if (loop.go_on != program::none && !is_set(places[loop.go_on])) break;
  }
  for (const Loop::State& state : loop.states) {
    const void* last = places[iteration == 0 ? state.initial : state.after];
    const auto bytes = static_cast<size_t>(workspace_.binding().buffer_bytes[step.buffers[state.initial]]);
    if (last != places[state.result] && bytes > 0) std::memmove(places[state.result], last, bytes);
  }
  return true;
}

}  // namespace fusewise::runtime
