// The memory of one run that is under way: arena, scratch of every worker, and the pointers that the steps
// take.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "program/program.h"
#include "runtime/binding.h"
#include "runtime/dispatch.h"
#include "runtime/guarded_memory.h"
#include "runtime/residents.h"

namespace fusewise::runtime {

// What all workspaces of an executable have in common.
struct WorkspacePlan {
  const program::Program& program;
  const Residents& residents;
  Slots slots;
  struct CallerSlot {
    uint32_t slot;
    program::BufferId buffer;
    uint32_t index;  // of the input or output
    bool is_output;
  };
  std::vector<CallerSlot> caller_slots;
  std::vector<std::vector<program::BufferId>>
      starting;  // by step: arena and output buffers that it is first to name
  int workers = 1;
  bool poison = false;
  std::optional<GuardedMemory::Side> guard;
};
WorkspacePlan plan_workspaces(const program::Program& program, const Residents& residents, int workers,
                              bool poison, std::optional<GuardedMemory::Side> guard);

class Workspace {
 public:
  explicit Workspace(const WorkspacePlan& plan) : plan_(plan), pointers_(plan.slots.buffers.size()) {}

  // Makes room for the binding; allocates only when it needs more than any before.
  void prepare(const Binding& binding);
  // Then takes the caller's buffers for one run; null only where there are no bytes.
  void begin(const Binding& binding, std::span<const void* const> inputs, std::span<void* const> outputs);
  void before_step(size_t step, const Binding& binding);
  // After the last step; the id of a buffer beyond whose end something was written, if any.
  std::optional<program::BufferId> end(const Binding& binding, std::span<void* const> outputs);

  void* const* pointers(size_t step) const { return pointers_.data() + plan_.slots.slots_of[step]; }
  Scratch scratch() const { return {scratch_data_, scratch_stride_}; }
  uint64_t serial() const { return serial_; }
  int64_t bytes() const { return static_cast<int64_t>(arena_.size() + scratch_.size()); }

 private:
  std::byte* place_of(program::BufferId buffer, const Binding& binding);
  void prepare_guarded(const Binding& binding);
  void keep_beyond_outputs(std::span<void* const> outputs);

  const WorkspacePlan& plan_;
  AlignedBuffer arena_;
  AlignedBuffer scratch_;
  std::byte* scratch_data_ = nullptr;
  int64_t scratch_stride_ = 0;
  std::vector<void*> pointers_;                          // by slot
  uint64_t serial_ = 0;                                  // of the binding that the pointers are for
  std::vector<std::unique_ptr<GuardedMemory>> guarded_;  // by buffer
  std::unique_ptr<GuardedMemory> guarded_scratch_;
};

}  // namespace fusewise::runtime
