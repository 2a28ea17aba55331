// The public interface: a model, and sessions that run it. A session is compiled when it is made, or taken from the
// cache; then any number of threads may run it at once.
//
//   const Model model = Model::load("model.onnx");
//   const Session session(model, {.threads = 8});
//   const std::vector<graph::Tensor> outputs = session.run(inputs);
//
// Errors are exceptions of base/error.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "graph/interpreter/tensor.h"
#include "machine/machine.h"
#include "session/inputs.h"
#include "session/model.h"

namespace fusewise::runtime {
enum class GuardPages : uint8_t;
}

namespace fusewise::session {

struct SessionOptions {
  int threads = 0;   // 0: physical cores within affinity mask and quota
  bool pin = false;  // keep each thread on one processor, the calling one included
  compiler::Numerics numerics = compiler::Numerics::default_;
  fusion::FusionMode fusion = fusion::FusionMode::on;
  std::optional<machine::Machine> machine = {};  // nothing: the one this process runs on
  std::string target = {};  // "opencl": kernels for a GPU, run by its driver; empty: machine code for the CPU
  // Values of symbols that are to be fast: the plan reckons with them. Any others are right, too, and plans for other
  // values are other entries of the cache. Symbols without one: 1 where the name says batch, else 128.
  SymbolValues usual = {};
  bool use_cache = true;
  std::optional<std::string> cache_folder = {};  // nothing: FUSEWISE_CACHE_DIR, else the user's cache folder
  std::optional<std::string> plan_text = {};     // a plan file to replay
  std::vector<std::string> disabled_passes = {};
  // Outputs that are an input with something behind it (a cache of keys and values) and may lie in its very memory, so
  // that only what is new is written: "auto" for all there are, or "OUTPUT=INPUT", where * in OUTPUT stands for any
  // text and * in INPUT for the same text. UserError when the session is made, for what cannot be.
  std::vector<std::string> in_place = {};
  bool poison = false;                // fill what is not written yet with NaN (for tests; slow)
  runtime::GuardPages guard_pages{};  // runtime/executable.h (for tests; slow); off
  std::function<void(const std::string& text)> warn = {};
  std::function<void(const std::string& phase, int done, int total)> progress = {};
  std::function<void(const std::string& stage, const std::string& name, const std::string& text)> dump = {};
};

struct OutputInfo {
  std::string name;
  DataType type = DataType::undefined;
  Shape shape;
};

// An output that grows in the memory of an input, along one axis.
struct Growth {
  size_t output = 0, input = 0;
  int axis = 0;
};

struct SessionInfo {
  bool cache_hit = false;
  double import_ms = 0, compile_ms = 0;     // 0 for a program from the cache
  double load_ms = 0;                       // opening the program, once steps included
  std::map<std::string, double> phases_ms;  // of the compilation
  int threads = 1;
  std::string machine;
  std::vector<std::string> symbols;
  std::vector<InputInfo> inputs;
  std::vector<OutputInfo> outputs;
  std::vector<Growth> growing;  // as asked for by SessionOptions::in_place
  int64_t kernels = 0;          // launched per run
  int64_t phases = 0;           // of those kernels
  int64_t copies = 0;
  int64_t host_steps = 0;     // operators that no generated kernel runs
  int64_t control_steps = 0;  // loops and branches, whose bodies' steps are counted once, too
  int64_t weights_bytes = 0;
  Dim flops;                                    // of a run
  double predicted_ms = 0, lower_bound_ms = 0;  // of the plan
};

// A step of a run: what it is and, where the plan says so, what it should take.
struct StepInfo {
  std::string label;          // the model's nodes
  std::string kernel;         // empty for a copy, and for a host function
  std::string host_function;  // of a step that no kernel runs
  int phases = 0;
  std::optional<double> predicted_ms;
};

// A piece of a step on one of the worker threads.
struct TracedPiece {
  int64_t run = 0;  // counted from 0
  size_t step = 0;  // of Session::steps()
  int phase = 0, worker = 0;
  int64_t first_block = 0, end_block = 0;
  double begin_us = 0, end_us = 0;  // since the first run began
};

class Session;

// A tensor in memory of the caller's, row-major. Where the session lets it grow, the array may have room to spare:
// `capacity` is its extent along the axis that grows, at least the tensor's own; 0: no room.
struct CallerArray {
  void* data = nullptr;        // of an input only read; may be null where there are no elements
  std::vector<int64_t> shape;  // of the tensor; not looked at for outputs
  int64_t capacity = 0;
};

// Inputs and outputs bound to a session: running again allocates nothing. For one thread at a time.
class PreparedRun {
 public:
  // UserError when cancelled.
  void run();
  // Adds each step's seconds to `step_seconds`, one per step.
  void run_with_timing(std::span<double> step_seconds);
  // So many runs, with what each worker did when; in the order of their beginnings.
  std::vector<TracedPiece> run_with_trace(int64_t runs);
  const std::vector<graph::Tensor>& outputs() const;  // none where the caller's arrays take them
  int64_t arena_bytes() const;
  // By all steps: what each reads and writes, once per step; nothing for what is in place already.
  int64_t bytes_moved() const;
  int64_t compulsory_bytes() const;  // inputs, outputs and weights
  int64_t flops() const;

 private:
  friend class Session;
  struct State;
  std::shared_ptr<State> state_;
};

class Session {
 public:
  explicit Session(const Model& model, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // In the model's order. UserError when the inputs do not fit the model.
  std::vector<graph::Tensor> run(std::span<const graph::Tensor> inputs,
                                 const std::atomic<bool>* cancel = nullptr) const;
  // Outputs that grow share an array with a copy of their input.
  PreparedRun prepare(std::span<const graph::Tensor> inputs) const;
  // On the caller's arrays, which must live as long as the run. Of a growing output and its input that are given the
  // same array and capacity, only what is new is written; what lies beyond a tensor is never touched. UserError for
  // what does not fit.
  PreparedRun prepare(std::span<const CallerArray> inputs, std::span<const CallerArray> outputs) const;

  const SessionInfo& info() const;
  const std::vector<StepInfo>& steps() const;

 private:
  friend class PreparedRun;
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace fusewise::session

namespace fusewise {
using session::Model;
using session::Session;
using session::SessionOptions;
}  // namespace fusewise
