// The machine that runs instructions: blocks, threads and their memory.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/interpreter.h"
#include "kernel/interpreter/memory.h"
#include "kernel/interpreter/program.h"

namespace fusewise::kernel {

inline constexpr int64_t most_elements = int64_t{1} << 32;
inline constexpr uint64_t most_blocks = uint64_t{1} << 24;
inline constexpr int64_t most_threads = 1 << 16;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t limit) { return next() % limit; }

 private:
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

enum class State : uint8_t { runnable, waiting, at_barrier, at_subgroup, done };

// The state of one thread, or of a block outside its thread loops.
struct Frame {
  std::vector<int64_t> registers;
  std::vector<View> views;
  std::vector<std::unique_ptr<Memory>> owned;  // by allocation
  uint32_t next = 0;                           // instruction
  uint32_t agent = 0;
  uint32_t fork = 0;  // that it came out of; 0: the block itself
  State state = State::runnable;
  Frame* parent = nullptr;
  int64_t pending = 0;  // children that have not ended
};

class Machine {
 public:
  Machine(const InterpreterProgram& program, const InterpretOptions& options)
      : program_(program), kernel_(*program.kernel), options_(options), random_(options.seed) {}
  void run(std::span<const BufferArgument> buffers, std::span<const int64_t> parameters);

 private:
  [[noreturn]] void fault(Fault kind, StmtId statement, const std::string& detail) const;
  void bind(std::span<const BufferArgument> buffers);
  void check_overlap(std::span<const BufferArgument> buffers) const;
  State advance(Frame& frame);
  void run_blocks(Frame& frame, const Instruction& in);
  void run_group(Frame& root);
  void fork(Frame& frame, std::vector<std::unique_ptr<Frame>>& group);
  void release(std::vector<std::unique_ptr<Frame>>& group);
  bool release_subgroups(std::vector<std::unique_ptr<Frame>>& group);
  void combine(std::vector<Frame*>& lanes);
  std::vector<int64_t> iterations(const Frame& frame, const Instruction& in) const;
  void allocate(Frame& frame, const Instruction& in);
  void load(Frame& frame, const Instruction& in);
  void store(Frame& frame, const Instruction& in);
  int64_t locate(const View& view, int64_t index, const Instruction& in) const;
  void watch(Memory& memory, int64_t index, bool is_store, const Frame& frame, const Instruction& in);
  const std::string& buffer_name(const Instruction& in) const { return kernel_.buffers[in.buffer].name; }

  const InterpreterProgram& program_;
  const Kernel& kernel_;
  const InterpretOptions& options_;
  Random random_;
  std::vector<std::unique_ptr<Memory>> arguments_;
  Agents agents_;
  uint32_t forks_ = 0;
  uint32_t interval_ = 0;
  uint32_t epoch_ = 0;
};

}  // namespace fusewise::kernel
