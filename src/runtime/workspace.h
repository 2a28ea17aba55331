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
#include "hostops/hostops.h"
#include "program/program.h"
#include "runtime/binding.h"
#include "runtime/dispatch.h"
#include "runtime/guarded_memory.h"
#include "runtime/output_memory.h"
#include "runtime/residents.h"

namespace fusewise::runtime {

// What all workspaces of an executable have in common.
struct WorkspacePlan {
  const program::Program& program;
  const Residents& residents;
  const Kernels& kernels;
  const Segments& segments;
  std::vector<hostops::Function> host_functions;  // by host call
  Slots slots;
  struct CallerSlot {
    uint32_t slot;
    program::BufferId buffer;
    uint32_t index;  // of the input or output
    bool is_output;
  };
  std::vector<CallerSlot> caller_slots;
  std::vector<std::vector<uint32_t>> moving_slots;  // by moving buffer, those of its parts as well
  std::vector<std::vector<program::BufferId>>
      starting;  // by step: arena and output buffers that it is first to name
  int workers = 1;
  bool poison = false;
  std::optional<GuardedMemory::Side> guard;
};
// UserError for a host function that there is not.
WorkspacePlan plan_workspaces(const program::Program& program, const Residents& residents,
                              const Kernels& kernels, const Segments& segments, int workers, bool poison,
                              std::optional<GuardedMemory::Side> guard);

class Workspace {
 public:
  explicit Workspace(const WorkspacePlan& plan)
      : plan_(plan), blocks_(plan.segments.count()), pointers_(plan.slots.buffers.size()) {}

  // Makes room for the binding; allocates only when it needs more than any before.
  void prepare(const Binding& binding);
  // Then takes the caller's buffers for one run; null only where there are no bytes, or where only the run knows how
  // many: `memory` is asked for those.
  void begin(std::span<const void* const> inputs, std::span<void* const> outputs, OutputMemory* memory);
  void before_step(size_t step);
  // A step of kind host.
  void run_host(size_t step);
  // After the last step; the id of a buffer beyond whose end something was written, if any.
  std::optional<program::BufferId> end();

  // The run's own binding where it has late segments.
  const Binding& binding() const { return own_ ? *own_ : *given_; }
  void* const* pointers(size_t step) const { return pointers_.data() + plan_.slots.slots_of[step]; }
  // Sets where a moving buffer lies now.
  void move(program::BufferId buffer, void* place) {
    for (uint32_t slot : plan_.moving_slots[buffer])
      pointers_[slot] = static_cast<std::byte*>(place) + binding().view_offsets[plan_.slots.buffers[slot]];
  }
  Scratch scratch() const { return {scratch_data_, scratch_stride_}; }
  uint64_t serial() const { return serial_; }
  int64_t bytes() const;

 private:
  class HostReceiver;

  std::byte* place_of(program::BufferId buffer);
  void make_room(uint32_t segment);
  void guard_buffers(uint32_t segment);
  void make_scratch();
  void set_pointers(uint32_t segment);
  void set_caller_pointers(uint32_t segment);
  void keep_beyond_outputs();
  void take_outputs(uint32_t segment);
  void bind_late(uint32_t segment, const program::Step& step, std::span<const int64_t> values);

  const WorkspacePlan& plan_;
  const Binding* given_ = nullptr;
  std::optional<Binding> own_;
  uint32_t bound_segments_ = 1;        // of own_ that are right for its symbols' values
  std::vector<AlignedBuffer> blocks_;  // by segment
  AlignedBuffer scratch_;
  std::byte* scratch_data_ = nullptr;
  int64_t scratch_stride_ = 0;
  std::vector<void*> pointers_;                          // by slot
  uint64_t serial_ = 0;                                  // of the binding that the pointers are for
  std::vector<std::unique_ptr<GuardedMemory>> guarded_;  // by buffer
  std::unique_ptr<GuardedMemory> guarded_scratch_;
  // Of the run under way.
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  OutputMemory* memory_ = nullptr;
  hostops::Scratch host_scratch_;
  std::vector<std::vector<int64_t>> host_shapes_;
  std::vector<hostops::Operand> host_operands_;
};

}  // namespace fusewise::runtime
