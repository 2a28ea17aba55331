// What lives as long as the executable: constants, and the results of once steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "program/program.h"
#include "runtime/guarded_memory.h"
#include "runtime/kernels.h"

namespace fusewise::runtime {

class Residents {
 public:
  // Runs the once steps unless their results came with the program; then lets go what no run step reads, in
  // `program` too. With a guard side everything lies at forbidden pages, read-only.
  struct Options {
    std::optional<GuardedMemory::Side> guard;
    bool copy_once_results = false;
  };
  Residents(program::Program& program, const Kernels& kernels, ThreadPool& pool, const Options& options);

  std::byte* pointer(program::BufferId buffer) const { return places_[buffer].pointer; }
  program::Bytes content(const program::Program& program, program::BufferId buffer) const;
  int64_t bytes() const { return bytes_; }
  double once_seconds() const { return once_seconds_; }

 private:
  struct Place {
    std::byte* pointer = nullptr;
    std::shared_ptr<const void> owner;
    std::shared_ptr<GuardedMemory> guarded;
  };

  void place(const program::Program& program, program::BufferId id, const program::Bytes& content);
  void own(const program::Program& program, program::BufferId id, std::span<const std::byte> content);
  void run_once_steps(const program::Program& program, const Kernels& kernels, ThreadPool& pool);
  void drop_read_constants(const program::Program& program, size_t step) const;
  void release_unneeded(program::Program& program);

  Options options_;
  std::vector<Place> places_;    // by buffer
  std::vector<uint8_t> needed_;  // by buffer: whether runs read it
  // Results of once steps that runs read lie here, one behind the other: memory of their own would leave a part of the
  // last huge page of each unused. What is not written yet takes no memory.
  std::shared_ptr<AlignedBuffer> block_;
  size_t block_used_ = 0;
  int64_t bytes_ = 0;
  double once_seconds_ = 0;
};

}  // namespace fusewise::runtime
