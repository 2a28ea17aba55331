#include "runtime/workspace.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace fusewise::runtime {
namespace {

using program::BufferId;
using program::BufferKind;

constexpr int poison_byte = 0xFF;

// Buffers without bytes are still no null pointers.
std::byte* somewhere() {
  alignas(64) static std::byte nothing[64];
  return nothing;
}

bool lives_in_run(BufferKind kind) { return kind == BufferKind::arena || kind == BufferKind::output; }

}  // namespace

WorkspacePlan plan_workspaces(const program::Program& program, const Residents& residents, int workers,
                              bool poison, std::optional<GuardedMemory::Side> guard) {
  WorkspacePlan plan{program, residents, slots_of(program.run_steps), {}, {}, workers, poison, guard};
  for (uint32_t slot = 0; slot < plan.slots.buffers.size(); ++slot) {
    const BufferId id = plan.slots.buffers[slot];
    const program::Buffer& buffer = program.buffers[root_of(program, id)];
    if (buffer.kind == BufferKind::input || buffer.kind == BufferKind::output)
      plan.caller_slots.push_back({slot, id, buffer.index, buffer.kind == BufferKind::output});
  }
  std::vector<uint8_t> seen(program.buffers.size(), 0);
  for (const program::Step& step : program.run_steps) {
    std::vector<BufferId>& starting = plan.starting.emplace_back();
    for (const BufferId named : step.buffers)
      if (const BufferId id = root_of(program, named);
          !std::exchange(seen[id], uint8_t{1}) && lives_in_run(program.buffers[id].kind))
        starting.push_back(id);
  }
  return plan;
}

void Workspace::prepare(const Binding& binding) {
  if (serial_ == binding.serial) return;
  serial_ = 0;  // until all is ready
  if (plan_.guard) {
    prepare_guarded(binding);
  } else {
    const size_t arena = static_cast<size_t>(binding.arena_bytes);
    if (arena_.size() < arena) {
      arena_ = AlignedBuffer();
      arena_ = AlignedBuffer(arena);
    }
    scratch_stride_ = binding.steps.scratch_bytes;
    size_t scratch = 0;
    if (__builtin_mul_overflow(static_cast<size_t>(scratch_stride_), static_cast<size_t>(plan_.workers),
                               &scratch))
      throw std::bad_alloc();
    if (scratch_.size() < scratch) {
      scratch_ = AlignedBuffer();
      scratch_ = AlignedBuffer(scratch);
    }
    scratch_data_ = scratch_.empty() ? somewhere() : scratch_.data();
  }
  for (size_t slot = 0; slot < pointers_.size(); ++slot) {
    std::byte* place = place_of(plan_.slots.buffers[slot], binding);
    pointers_[slot] = place ? place : somewhere();
  }
  serial_ = binding.serial;
}

std::byte* Workspace::place_of(BufferId id, const Binding& binding) {
  const program::Buffer& buffer = plan_.program.buffers[id];
  if (buffer.kind == BufferKind::view) {
    std::byte* base = place_of(buffer.base, binding);
    return base ? base + binding.view_offsets[id] : nullptr;
  }
  if (buffer.kind == BufferKind::constant || buffer.kind == BufferKind::once)
    return plan_.residents.pointer(id);
  if (plan_.guard) return guarded_[id]->data();
  if (buffer.kind == BufferKind::arena && !arena_.empty()) return arena_.data() + binding.arena_offsets[id];
  // The kernels only read them, which verify() has looked at.
  if (buffer.kind == BufferKind::dims)
    return reinterpret_cast<std::byte*>(const_cast<int64_t*>(binding.dims_values[id].data()));
  return nullptr;
}

void Workspace::prepare_guarded(const Binding& binding) {
  guarded_.clear();
  guarded_.resize(plan_.program.buffers.size());
  for (BufferId id = 0; id < guarded_.size(); ++id) {
    const BufferKind kind = plan_.program.buffers[id].kind;
    if (kind == BufferKind::constant || kind == BufferKind::once || kind == BufferKind::view) continue;
    guarded_[id] =
        std::make_unique<GuardedMemory>(static_cast<size_t>(binding.buffer_bytes[id]), *plan_.guard);
    if (kind != BufferKind::dims || binding.dims_values[id].empty()) continue;
    std::memcpy(guarded_[id]->data(), binding.dims_values[id].data(), guarded_[id]->size());
    guarded_[id]->protect(true);
  }
  scratch_stride_ = binding.steps.scratch_bytes;
  guarded_scratch_ = std::make_unique<GuardedMemory>(
      static_cast<size_t>(scratch_stride_) * static_cast<size_t>(plan_.workers), *plan_.guard);
  scratch_data_ = guarded_scratch_->data();
}

void Workspace::begin(const Binding& binding, std::span<const void* const> inputs,
                      std::span<void* const> outputs) {
  if (plan_.guard) {
    for (BufferId id = 0; id < guarded_.size(); ++id) {
      const program::Buffer& buffer = plan_.program.buffers[id];
      if (buffer.kind != BufferKind::input || guarded_[id]->size() == 0) continue;
      guarded_[id]->protect(false);
      std::memcpy(guarded_[id]->data(), inputs[buffer.index], guarded_[id]->size());
      guarded_[id]->protect(true);
    }
  } else {
    for (const WorkspacePlan::CallerSlot& place : plan_.caller_slots) {
      void* pointer = place.is_output ? outputs[place.index] : const_cast<void*>(inputs[place.index]);
      pointers_[place.slot] =
          pointer ? static_cast<std::byte*>(pointer) + binding.view_offsets[place.buffer] : somewhere();
    }
  }
  if (plan_.guard) keep_beyond_outputs(outputs);
  if (!plan_.poison) return;
  if (!arena_.empty()) std::memset(arena_.data(), poison_byte, arena_.size());
  for (size_t i = 0; i < outputs.size() && !plan_.guard; ++i) {
    const program::Output& output = plan_.program.outputs[i];
    const bool aliased = std::any_of(output.may_alias_inputs.begin(), output.may_alias_inputs.end(),
                                     [&](uint32_t input) { return inputs[input] == outputs[i]; });
    if (outputs[i] && !aliased && output.capacity.symbol.empty())
      std::memset(outputs[i], poison_byte, static_cast<size_t>(binding.output_bytes[i]));
  }
}

// What lies beyond an output in the caller's array is the caller's.
void Workspace::keep_beyond_outputs(std::span<void* const> outputs) {
  for (BufferId id = 0; id < guarded_.size(); ++id) {
    const program::Buffer& buffer = plan_.program.buffers[id];
    if (buffer.kind != BufferKind::output || plan_.program.outputs[buffer.index].capacity.symbol.empty())
      continue;
    if (guarded_[id]->size() > 0)
      std::memcpy(guarded_[id]->data(), outputs[buffer.index], guarded_[id]->size());
  }
}

void Workspace::before_step(size_t step, const Binding& binding) {
  if (!plan_.poison) return;
  const int64_t scratch = scratch_stride_ * plan_.workers;
  if (scratch > 0) std::memset(scratch_data_, poison_byte, static_cast<size_t>(scratch));
  for (const BufferId id : plan_.starting[step]) {
    std::byte* place = place_of(id, binding);
    if (!place || binding.buffer_bytes[id] == 0) continue;
    const program::Buffer& buffer = plan_.program.buffers[id];
    if (buffer.kind == BufferKind::output && !plan_.program.outputs[buffer.index].capacity.symbol.empty())
      continue;  // holds what is the caller's
    // A buffer in another's place still holds what this step reads.
    const auto shares = [&](BufferId other) { return place_of(other, binding) == place; };
    const std::vector<BufferId>& others = plan_.program.buffers[id].may_overwrite;
    if (std::any_of(others.begin(), others.end(), shares)) continue;
    std::memset(place, poison_byte, static_cast<size_t>(binding.buffer_bytes[id]));
  }
}

std::optional<BufferId> Workspace::end(const Binding& binding, std::span<void* const> outputs) {
  if (!plan_.guard) return std::nullopt;
  std::optional<BufferId> damaged;
  for (BufferId id = 0; id < guarded_.size(); ++id) {
    if (!guarded_[id]) continue;
    const program::Buffer& buffer = plan_.program.buffers[id];
    if (!guarded_[id]->margins_intact() && !damaged) damaged = id;
    if (buffer.kind == BufferKind::output && binding.output_bytes[buffer.index] > 0)
      std::memcpy(outputs[buffer.index], guarded_[id]->data(), guarded_[id]->size());
  }
  return damaged;
}

}  // namespace fusewise::runtime
