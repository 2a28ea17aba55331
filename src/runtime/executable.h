// A loaded program. Shapes are bound first (sizes, places in the arena, parameters, block counts: a Binding),
// then runs on caller-owned buffers follow, from any number of threads at once; each run that is under way
// has a workspace of its own. Once a shape has run, running it again allocates nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "program/program.h"
#include "runtime/binding.h"
#include "runtime/output_memory.h"
#include "runtime/status.h"
#include "runtime/trace.h"

namespace fusewise::runtime {

// Gives the address of a kernel symbol, or null; in place of a shared object.
using Resolver = std::function<void*(const std::string& symbol)>;

// Puts each buffer of a run at a page that may not be touched, behind or before it (a debugging aid, slow).
// Bytes between the end of a buffer and the next page are checked after each run.
enum class GuardPages : uint8_t { off, after, before };

struct ExecutableOptions {
  int threads = 0;                   // including the caller; 0: as many as this process may use
  std::shared_ptr<ThreadPool> pool;  // shared with other executables; null: one of our own, of `threads`
  size_t kept_bindings = 8;
  // Once results that came with a file are copied into memory of our own, in huge pages where there are any:
  // takes a moment and the memory, and misses the address cache less.
  bool copy_once_results = false;
  Resolver resolver;    // tests: where kernels are, instead of the program's library
  bool poison = false;  // fill what a run has not written yet with 0xFF bytes (NaN), step by step
  GuardPages guard_pages = GuardPages::off;
};

struct RunOptions {
  const std::atomic<bool>* cancel = nullptr;  // looked at before each step
  std::span<double> step_seconds;             // one per run step, added to; empty: no timing
  Trace* trace = nullptr;                     // of as many workers as there are threads
  // After each step, with the memory of its buffers in the order of Step::buffers.
  std::function<void(size_t step, std::span<void* const> buffers)> after_step = {};
  OutputMemory* output_memory = nullptr;  // needed where an output's size is known in the run only
};

class Executable {
 public:
  // Opens the library, loads the constants and runs the once steps (unless their results are there). Throws
  // UserError when the library cannot be loaded or the processor lacks what it needs.
  explicit Executable(program::Program program, ExecutableOptions options = {});
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const program::Program& program() const;
  int threads() const;

  // Throws UserError when the shapes contradict the program: names the input, the dimension and both values.
  std::shared_ptr<const Binding> bind(std::span<const std::vector<int64_t>> input_shapes,
                                      const Capacities& capacities = {}) const;

  // Whether only a run knows the shape of an output, which then is in memory that RunOptions::output_memory gives.
  bool is_late(size_t output) const;

  // One pointer per input and output, in the program's order; those of tensors without elements, and those of outputs
  // that are late, may be null.
  // Outputs may overlap nothing but the inputs that the program allows. Of an output that shares the memory of an
  // input to which it appends, only what is new is written; beyond the tensor an array is never written.
  Status run(const Binding& binding, std::span<const void* const> inputs, std::span<void* const> outputs,
             const RunOptions& options = {}) const noexcept;

  // The program with its once results, to be saved.
  program::Program with_once_results() const;

  int64_t resident_bytes() const;   // constants and once results that runs read
  double once_seconds() const;      // time of the once steps
  int64_t workspace_bytes() const;  // of all workspaces made so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fusewise::runtime
