// Runs the steps of one run in their order, loops and branches included. Allocates nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "runtime/binding.h"
#include "runtime/executable.h"
#include "runtime/kernels.h"
#include "runtime/workspace.h"

namespace fusewise::runtime {

class StepRunner {
 public:
  StepRunner(const program::Program& program, const Kernels& kernels, ThreadPool& pool, Workspace& workspace,
             const RunOptions& options);

  // Steps [begin, end); false when the run was cancelled, which is looked at before each step and each iteration.
  bool run(size_t begin, size_t end);

 private:
  bool is_cancelled() const;
  void run_leaf(size_t index);
  void run_copy_step(size_t index);
  bool run_loop(size_t index);
  bool run_branch(size_t index);
  int64_t most_iterations(size_t index) const;
  void move(size_t index, int64_t iteration, int64_t most);
  // Adds the time since the last call to a step.
  void lap(size_t index);

  const program::Program& program_;
  const Kernels& kernels_;
  ThreadPool& pool_;
  Workspace& workspace_;
  const RunOptions& options_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace fusewise::runtime
