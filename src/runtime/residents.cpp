#include "runtime/residents.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "base/float_environment.h"
#include "base/mapped_file.h"
#include "runtime/dispatch.h"

namespace fusewise::runtime {

using program::BufferId;
using program::BufferKind;
using program::Program;

namespace {

size_t aligned_size(size_t size) {
  return (size + AlignedBuffer::alignment - 1) / AlignedBuffer::alignment * AlignedBuffer::alignment;
}

size_t bytes_of_block(const Program& program, const std::vector<uint8_t>& needed) {
  size_t bytes = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (needed[i] && program.buffers[i].kind == BufferKind::once)
      bytes += aligned_size(static_cast<size_t>(program.buffers[i].bytes.value()));
  return bytes;
}

}  // namespace

Residents::Residents(Program& program, const Kernels& kernels, ThreadPool& pool, const Options& options)
    : options_(options), places_(program.buffers.size()), needed_(needed_in_runs(program)) {
  const bool complete = has_once_results(program);
  for (size_t i = 0; i < places_.size(); ++i) {
    const program::Buffer& buffer = program.buffers[i];
    if (complete && !needed_[i]) continue;
    if (buffer.kind == BufferKind::constant) {
      const program::Constant& constant = program.constants[buffer.index];
      check(constant.bytes.span.size() == constant.size,
            "the bytes of constant '" + constant.name + "' are not here");
      place(program, static_cast<BufferId>(i), constant.bytes);
    }
    if (buffer.kind == BufferKind::once && complete) place(program, static_cast<BufferId>(i), buffer.content);
  }
  if (!complete) run_once_steps(program, kernels, pool);
  release_unneeded(program);
}

// Content that is there is used where it lies; a once buffer without any gets memory of its own.
void Residents::place(const Program& program, BufferId id, const program::Bytes& content) {
  const program::Buffer& buffer = program.buffers[id];
  Place& place = places_[id];
  const bool has_content = !content.span.empty();
  if (options_.guard) {
    place.guarded =
        std::make_shared<GuardedMemory>(static_cast<size_t>(buffer.bytes.value()), *options_.guard);
    place.owner = place.guarded;
    place.pointer = place.guarded->data();
    if (has_content)
      std::memcpy(place.pointer, content.span.data(), content.span.size());
    else if (buffer.zero_fill)
      std::fill_n(place.pointer, place.guarded->size(), std::byte{0});
    if (buffer.kind == BufferKind::constant || has_content) place.guarded->protect(true);
  } else if (has_content && !(options_.copy_once_results && buffer.kind == BufferKind::once)) {
    place.pointer = const_cast<std::byte*>(content.span.data());
    place.owner = content.owner;
  } else {
    own(program, id, content.span);
  }
}

void Residents::own(const Program& program, BufferId id, std::span<const std::byte> content) {
  const size_t size = static_cast<size_t>(program.buffers[id].bytes.value());
  Place& place = places_[id];
  if (needed_[id]) {
    if (!block_) block_ = std::make_shared<AlignedBuffer>(bytes_of_block(program, needed_));
    place.pointer = block_->data() + block_used_;
    place.owner = block_;
    block_used_ += aligned_size(size);
  } else {
    const auto memory = std::make_shared<AlignedBuffer>(size);
    place.pointer = memory->data();
    place.owner = memory;
  }
  if (!content.empty())
    std::memcpy(place.pointer, content.data(), content.size());
  else if (program.buffers[id].zero_fill && size > 0)
    std::memset(place.pointer, 0, size);
}

void Residents::run_once_steps(const Program& program, const Kernels& kernels, ThreadPool& pool) {
  const auto start = std::chrono::steady_clock::now();
  const DefaultFloatEnvironment environment;
  BoundSteps bound = lay_out_steps(program, program.once_steps);
  bind_steps(program, program.once_steps, 0, program.once_steps.size(), kernels, {}, bound);
  AlignedBuffer scratch(static_cast<size_t>(bound.scratch_bytes) * static_cast<size_t>(pool.size()));
  alignas(64) static std::byte nothing[64];
  std::vector<void*> pointers;
  for (size_t i = 0; i < program.once_steps.size(); ++i) {
    const program::Step& step = program.once_steps[i];
    pointers.clear();
    for (const program::BufferId id : step.buffers) {
      // Only now, so that what is made late takes no memory while early steps read what they are made of.
      if (program.buffers[id].kind == BufferKind::once && !places_[id].owner) place(program, id, {});
      std::byte* place = pointer(id);
      pointers.push_back(place ? place : nothing);
    }
    check(step.kind != program::StepKind::host, "a once step calls a host function");
    if (step.kind == program::StepKind::copy) {
      const Dim& bytes = program.buffers[step.buffers[0]].bytes;
      check(bytes == program.buffers[step.buffers[1]].bytes,
            "the copy '" + step.label + "' is between buffers of different sizes");
      run_copy(pointers.data(), bytes.value(), pool);
      continue;
    }
    run_kernel(kernels[step.kernel], pointers.data(), bound.parameters.data() + bound.parameters_of[i],
               bound.blocks.data() + bound.phases_of[i], {scratch.data(), bound.scratch_bytes}, pool);
    drop_read_constants(program, i);
  }
  once_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (Place& place : places_) {
    if (!place.guarded) continue;
    check(place.guarded->margins_intact(), "a once step wrote beyond the end of its buffer");
    place.guarded->protect(true);
  }
}

// What a once step has read of a file need not stay in memory beside what was made of it: runs that read it, too, or
// another once step, get it from the file again.
void Residents::drop_read_constants(const Program& program, size_t step) const {
  for (const program::BufferId id : program.once_steps[step].buffers) {
    const program::Buffer& buffer = program.buffers[id];
    if (buffer.kind != BufferKind::constant || places_[id].guarded) continue;
    const program::Constant& constant = program.constants[buffer.index];
    if (constant.file) drop_pages(constant.bytes.span);
  }
}

void Residents::release_unneeded(Program& program) {
  std::vector<uint8_t> constant_needed(program.constants.size(), 0);
  for (size_t i = 0; i < places_.size(); ++i) {
    program::Buffer& buffer = program.buffers[i];
    buffer.content = {};
    if (!needed_[i]) {
      places_[i] = {};
      continue;
    }
    if (buffer.kind == BufferKind::constant) constant_needed[buffer.index] = 1;
    if (buffer.kind == BufferKind::constant || buffer.kind == BufferKind::once)
      bytes_ += buffer.bytes.value();
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
