#include "runtime/residents.h"

#include <chrono>
#include <cstring>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "base/float_environment.h"
#include "runtime/dispatch.h"

namespace fusewise::runtime {

using program::BufferKind;
using program::Program;

Residents::Residents(Program& program, const Kernels& kernels, ThreadPool& pool,
                     std::optional<GuardedMemory::Side> guard)
    : guard_(guard), places_(program.buffers.size()) {
  const std::vector<uint8_t> needed = needed_in_runs(program);
  const bool complete = has_once_results(program);
  for (size_t i = 0; i < places_.size(); ++i) {
    program::Buffer& buffer = program.buffers[i];
    if (complete && !needed[i]) continue;
    if (buffer.kind == BufferKind::constant) {
      const program::Constant& constant = program.constants[buffer.index];
      check(constant.bytes.span.size() == constant.size, "the bytes of constant '" + constant.name + "' are not here");
      place(buffer, places_[i], constant.bytes.span, constant.bytes.owner);
    }
    if (buffer.kind == BufferKind::once)
      place(buffer, places_[i], complete ? buffer.content.span : std::span<const std::byte>(), buffer.content.owner);
  }
  if (!complete) run_once_steps(program, kernels, pool);
  release_unneeded(program, needed);
}

// Content that is there is used where it lies; a once buffer without any gets memory of its own.
void Residents::place(program::Buffer& buffer, Place& place, std::span<const std::byte> content,
                      const std::shared_ptr<const void>& owner) {
  const size_t size = static_cast<size_t>(buffer.bytes.value());
  if (guard_) {
    place.guarded = std::make_shared<GuardedMemory>(size, *guard_);
    place.owner = place.guarded;
    place.pointer = place.guarded->data();
    if (!content.empty()) std::memcpy(place.pointer, content.data(), content.size());
    else if (buffer.zero_fill && size > 0) std::memset(place.pointer, 0, size);
    if (buffer.kind == BufferKind::constant || !content.empty()) place.guarded->protect(true);
  } else if (!content.empty()) {
    place.pointer = const_cast<std::byte*>(content.data());
    place.owner = owner;
  } else if (size > 0) {
    const auto memory = std::make_shared<AlignedBuffer>(size);
    place.pointer = memory->data();
    place.owner = memory;
    if (buffer.zero_fill) std::memset(place.pointer, 0, size);
  }
}

void Residents::run_once_steps(const Program& program, const Kernels& kernels, ThreadPool& pool) {
  const auto start = std::chrono::steady_clock::now();
  const DefaultFloatEnvironment environment;
  const BoundSteps bound = bind_steps(program, program.once_steps, kernels, {});
  AlignedBuffer scratch(static_cast<size_t>(bound.scratch_bytes) * static_cast<size_t>(pool.size()));
  alignas(64) static std::byte nothing[64];
  std::vector<void*> pointers;
  for (size_t i = 0; i < program.once_steps.size(); ++i) {
    const program::Step& step = program.once_steps[i];
    pointers.clear();
    for (const program::BufferId id : step.buffers) {
      std::byte* place = pointer(id);
      pointers.push_back(place ? place : nothing);
    }
    if (step.kind == program::StepKind::copy) {
      const Dim& bytes = program.buffers[step.buffers[0]].bytes;
      check(bytes == program.buffers[step.buffers[1]].bytes,
            "the copy '" + step.label + "' is between buffers of different sizes");
      run_copy(pointers.data(), bytes.value(), pool);
      continue;
    }
    run_kernel(kernels[step.kernel], pointers.data(), bound.parameters.data() + bound.parameters_of[i],
               bound.blocks.data() + bound.phases_of[i], {scratch.data(), bound.scratch_bytes}, pool);
  }
  once_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (Place& place : places_) {
    if (!place.guarded) continue;
    check(place.guarded->margins_intact(), "a once step wrote beyond the end of its buffer");
    place.guarded->protect(true);
  }
}

void Residents::release_unneeded(Program& program, const std::vector<uint8_t>& needed) {
  std::vector<uint8_t> constant_needed(program.constants.size(), 0);
  for (size_t i = 0; i < places_.size(); ++i) {
    program::Buffer& buffer = program.buffers[i];
    buffer.content = {};
    if (!needed[i]) {
      places_[i] = {};
      continue;
    }
    if (buffer.kind == BufferKind::constant) constant_needed[buffer.index] = 1;
    if (buffer.kind == BufferKind::constant || buffer.kind == BufferKind::once) bytes_ += buffer.bytes.value();
  }
  for (size_t i = 0; i < program.constants.size(); ++i)
    if (!constant_needed[i]) program.constants[i].bytes = {};
}

program::Bytes Residents::content(const Program& program, program::BufferId buffer) const {
  const Place& place = places_[buffer];
  if (!place.pointer) return {};
  return {{place.pointer, static_cast<size_t>(program.buffers[buffer].bytes.value())}, place.owner};
}

}  // namespace fusewise::runtime
