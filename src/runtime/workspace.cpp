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

std::vector<hostops::Function> host_functions_of(const program::Program& program) {
  std::vector<hostops::Function> functions;
  for (const program::HostCall& call : program.host_calls) {
    const std::optional<hostops::Function> function = hostops::function_of(call.function);
    if (!function)
      throw UserError("the program calls the host function '" + call.function + "', which is not here");
    functions.push_back(*function);
  }
  return functions;
}

}  // namespace

WorkspacePlan plan_workspaces(const program::Program& program, const Residents& residents,
                              const Kernels& kernels, const Segments& segments, int workers, bool poison,
                              std::optional<GuardedMemory::Side> guard) {
  WorkspacePlan plan{
      program, residents, kernels, segments, host_functions_of(program), slots_of(program.run_steps), {}, {},
      {},      workers,   poison,  guard};
  plan.moving_slots.resize(program.buffers.size());
  for (uint32_t slot = 0; slot < plan.slots.buffers.size(); ++slot) {
    const BufferId id = plan.slots.buffers[slot];
    const program::Buffer& buffer = program.buffers[root_of(program, id)];
    if (buffer.kind == BufferKind::input || buffer.kind == BufferKind::output)
      plan.caller_slots.push_back({slot, id, buffer.index, buffer.kind == BufferKind::output});
    if (buffer.kind == BufferKind::moving) plan.moving_slots[root_of(program, id)].push_back(slot);
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

int64_t Workspace::bytes() const {
  size_t bytes = scratch_.size();
  for (const AlignedBuffer& block : blocks_) bytes += block.size();
  return static_cast<int64_t>(bytes);
}

void Workspace::prepare(const Binding& binding) {
  given_ = &binding;
  if (serial_ == binding.serial) return;
  serial_ = 0;  // until all is ready
  if (plan_.segments.count() > 1) own_ = binding;
  bound_segments_ = 1;
  guarded_.clear();
  guarded_.resize(plan_.guard ? plan_.program.buffers.size() : 0);
  make_room(0);
  set_pointers(0);
  serial_ = binding.serial;
}

void Workspace::make_room(uint32_t segment) {
  if (plan_.guard) {
    guard_buffers(segment);
  } else {
    AlignedBuffer& block = blocks_[segment];
    const auto needed = static_cast<size_t>(binding().block_bytes[segment]);
    if (block.size() < needed) {
      block = AlignedBuffer();
      block = AlignedBuffer(needed);
    }
  }
  make_scratch();
}

void Workspace::make_scratch() {
  if (scratch_data_ && scratch_stride_ == binding().steps.scratch_bytes) return;
  scratch_stride_ = binding().steps.scratch_bytes;
  size_t scratch = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(scratch_stride_), static_cast<size_t>(plan_.workers),
                             &scratch))
    throw std::bad_alloc();
  if (plan_.guard) {
    guarded_scratch_ = std::make_unique<GuardedMemory>(scratch, *plan_.guard);
    scratch_data_ = guarded_scratch_->data();
    return;
  }
  if (scratch_.size() < scratch) {
    scratch_data_ = nullptr;
    scratch_ = AlignedBuffer();
    scratch_ = AlignedBuffer(scratch);
  }
  scratch_data_ = scratch_.empty() ? somewhere() : scratch_.data();
}

void Workspace::set_pointers(uint32_t segment) {
  for (size_t slot = 0; slot < pointers_.size(); ++slot) {
    const BufferId id = plan_.slots.buffers[slot];
    if (plan_.segments.of_buffer[id] != segment) continue;
    std::byte* place = place_of(id);
    pointers_[slot] = place ? place : somewhere();
  }
}

std::byte* Workspace::place_of(BufferId id) {
  const program::Buffer& buffer = plan_.program.buffers[id];
  if (buffer.kind == BufferKind::view) {
    std::byte* base = place_of(buffer.base);
    return base ? base + binding().view_offsets[id] : nullptr;
  }
  if (buffer.kind == BufferKind::constant || buffer.kind == BufferKind::once)
    return plan_.residents.pointer(id);
  if (buffer.kind == BufferKind::moving) return nullptr;
  if (plan_.guard) return guarded_[id] ? guarded_[id]->data() : nullptr;
  AlignedBuffer& block = blocks_[plan_.segments.of_buffer[id]];
  if (buffer.kind == BufferKind::arena && !block.empty() && binding().arena_offsets[id] >= 0)
    return block.data() + binding().arena_offsets[id];
  // The kernels only read them, which verify() has looked at.
  if (buffer.kind == BufferKind::dims)
    return reinterpret_cast<std::byte*>(const_cast<int64_t*>(binding().dims_values[id].data()));
  return nullptr;
}

void Workspace::guard_buffers(uint32_t segment) {
  for (BufferId id = 0; id < guarded_.size(); ++id) {
    const BufferKind kind = plan_.program.buffers[id].kind;
    if (plan_.segments.of_buffer[id] != segment || kind == BufferKind::constant || kind == BufferKind::once ||
        kind == BufferKind::view || kind == BufferKind::moving)
      continue;
    guarded_[id] =
        std::make_unique<GuardedMemory>(static_cast<size_t>(binding().buffer_bytes[id]), *plan_.guard);
    if (kind != BufferKind::dims || binding().dims_values[id].empty()) continue;
    std::memcpy(guarded_[id]->data(), binding().dims_values[id].data(), guarded_[id]->size());
    guarded_[id]->protect(true);
  }
}

void Workspace::begin(std::span<const void* const> inputs, std::span<void* const> outputs,
                      OutputMemory* memory) {
  inputs_.assign(inputs.begin(), inputs.end());
  outputs_.assign(outputs.begin(), outputs.end());
  memory_ = memory;
  if (plan_.guard) {
    for (BufferId id = 0; id < guarded_.size(); ++id) {
      const program::Buffer& buffer = plan_.program.buffers[id];
      if (buffer.kind != BufferKind::input || !guarded_[id] || guarded_[id]->size() == 0) continue;
      guarded_[id]->protect(false);
      std::memcpy(guarded_[id]->data(), inputs[buffer.index], guarded_[id]->size());
      guarded_[id]->protect(true);
    }
  } else {
    set_caller_pointers(0);
  }
  if (plan_.guard) keep_beyond_outputs();
  if (!plan_.poison) return;
  if (!blocks_[0].empty()) std::memset(blocks_[0].data(), poison_byte, blocks_[0].size());
  for (size_t i = 0; i < outputs.size() && !plan_.guard; ++i) {
    const program::Output& output = plan_.program.outputs[i];
    const bool aliased = std::any_of(output.may_alias_inputs.begin(), output.may_alias_inputs.end(),
                                     [&](uint32_t input) { return inputs[input] == outputs[i]; });
    if (outputs[i] && !aliased && output.capacity.symbol.empty() && plan_.segments.of_output[i] == 0)
      std::memset(outputs[i], poison_byte, static_cast<size_t>(binding().output_bytes[i]));
  }
}

// Of the caller's buffers, and of parts of them, whose place this segment knows.
void Workspace::set_caller_pointers(uint32_t segment) {
  for (const WorkspacePlan::CallerSlot& place : plan_.caller_slots) {
    if (plan_.segments.of_buffer[place.buffer] != segment) continue;
    void* pointer = place.is_output ? outputs_[place.index] : const_cast<void*>(inputs_[place.index]);
    pointers_[place.slot] =
        pointer ? static_cast<std::byte*>(pointer) + binding().view_offsets[place.buffer] : somewhere();
  }
}

// What lies beyond an output in the caller's array is the caller's.
void Workspace::keep_beyond_outputs() {
  for (BufferId id = 0; id < guarded_.size(); ++id) {
    const program::Buffer& buffer = plan_.program.buffers[id];
    if (buffer.kind != BufferKind::output || plan_.program.outputs[buffer.index].capacity.symbol.empty())
      continue;
    if (guarded_[id]->size() > 0)
      std::memcpy(guarded_[id]->data(), outputs_[buffer.index], guarded_[id]->size());
  }
}

void Workspace::before_step(size_t step) {
  if (!plan_.poison) return;
  const int64_t scratch = scratch_stride_ * plan_.workers;
  if (scratch > 0) std::memset(scratch_data_, poison_byte, static_cast<size_t>(scratch));
  for (const BufferId id : plan_.starting[step]) {
    if (plan_.segments.of_buffer[id] > plan_.segments.of_step[step])
      continue;  // the step's own, not there yet
    std::byte* place = place_of(id);
    if (!place || binding().buffer_bytes[id] == 0) continue;
    const program::Buffer& buffer = plan_.program.buffers[id];
    if (buffer.kind == BufferKind::output && !plan_.program.outputs[buffer.index].capacity.symbol.empty())
      continue;  // holds what is the caller's
    // A buffer in another's place still holds what this step reads.
    const auto shares = [&](BufferId other) { return place_of(other) == place; };
    const std::vector<BufferId>& others = plan_.program.buffers[id].may_overwrite;
    if (std::any_of(others.begin(), others.end(), shares)) continue;
    std::memset(place, poison_byte, static_cast<size_t>(binding().buffer_bytes[id]));
  }
}

// Outputs whose size this segment knows get their memory, in every run anew.
void Workspace::take_outputs(uint32_t segment) {
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    if (plan_.segments.of_output[i] != segment) continue;
    outputs_[i] = memory_->place(i, binding().output_shapes[i]);
    if (!outputs_[i] && binding().output_bytes[i] > 0)
      throw UserError("there is no memory for output '" + plan_.program.outputs[i].name + "'");
  }
  if (!plan_.guard) set_caller_pointers(segment);
}

// The same values as in the run before change nothing.
void Workspace::bind_late(uint32_t segment, const program::Step& step, std::span<const int64_t> values) {
  check(values.size() == step.binds.size(), "step '" + step.label + "' binds another number of symbols");
  bool same = bound_segments_ > segment;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto [entry, is_new] = own_->symbols.try_emplace(step.binds[i], values[i]);
    same = same && entry->second == values[i];
    entry->second = values[i];
  }
  if (!same) {
    bound_segments_ = segment;  // until all is ready
    const program::Program& program = plan_.program;
    bind_segment(program, plan_.segments, segment, *own_);
    bind_steps(program, program.run_steps, plan_.segments.first_step[segment], plan_.segments.end_of(segment),
               plan_.kernels, own_->symbols, own_->steps);
    make_room(segment);
    set_pointers(segment);
    bound_segments_ = segment + 1;
  }
  take_outputs(segment);
}

class Workspace::HostReceiver final : public hostops::Receiver {
 public:
  HostReceiver(Workspace& workspace, size_t step)
      : workspace_(workspace),
        index_(step),
        step_(workspace.plan_.program.run_steps[step]),
        operands_(workspace.plan_.program.host_calls[step_.kernel].operands.size()) {}

  void bind(std::span<const int64_t> sizes) override {
    if (!step_.binds.empty())
      workspace_.bind_late(workspace_.plan_.segments.of_step[index_] + 1, step_, sizes);
  }
  std::byte* result(size_t index) override {
    check(operands_ + index < step_.buffers.size(), "a host function makes more results than the step has");
    return static_cast<std::byte*>(workspace_.pointers(index_)[operands_ + index]);
  }

 private:
  Workspace& workspace_;
  size_t index_;
  const program::Step& step_;
  size_t operands_;
};

void Workspace::run_host(size_t index) {
  const program::Step& step = plan_.program.run_steps[index];
  const program::HostCall& call = plan_.program.host_calls[step.kernel];
  if (host_shapes_.size() < call.operands.size()) host_shapes_.resize(call.operands.size());
  host_operands_.clear();
  for (size_t i = 0; i < call.operands.size(); ++i) {
    host_shapes_[i].clear();
    for (const Dim& extent : call.operands[i].shape)
      host_shapes_[i].push_back(extent.evaluate(binding().symbols));
    host_operands_.push_back(
        {call.operands[i].type, host_shapes_[i], static_cast<const std::byte*>(pointers(index)[i])});
  }
  const BoundSteps& steps = binding().steps;
  const std::span<const int64_t> parameters{steps.parameters.data() + steps.parameters_of[index],
                                            step.parameters.size()};
  HostReceiver receiver(*this, index);
  try {
    hostops::call(plan_.host_functions[step.kernel], host_operands_, parameters, receiver, host_scratch_);
  } catch (const UserError& error) {
    throw UserError("step '" + step.label + "': " + error.what());
  }
}

std::optional<BufferId> Workspace::end() {
  if (!plan_.guard) return std::nullopt;
  std::optional<BufferId> damaged;
  for (BufferId id = 0; id < guarded_.size(); ++id) {
    if (!guarded_[id]) continue;
    const program::Buffer& buffer = plan_.program.buffers[id];
    if (!guarded_[id]->margins_intact() && !damaged) damaged = id;
    if (buffer.kind == BufferKind::output && binding().output_bytes[buffer.index] > 0)
      std::memcpy(outputs_[buffer.index], guarded_[id]->data(), guarded_[id]->size());
  }
  return damaged;
}

}  // namespace fusewise::runtime
