// The fields of every table of a program, in the order of the file.
#pragma once

#include "program/codec.h"

namespace fusewise::program {

template <class Codec>
void transfer(Codec& codec, Shape& shape) {
  codec.list(shape, [&](Dim& extent) { codec.dim(extent); });
}

template <class Codec>
void transfer(Codec& codec, std::vector<std::string>& names) {
  codec.list(names, [&](std::string& name) { codec.text(name); });
}

template <class Codec, class T>
  requires std::is_arithmetic_v<T>
void transfer(Codec& codec, std::vector<T>& numbers) {
  codec.list(numbers, [&](T& number) { codec.number(number); });
}

template <class Codec>
void transfer(Codec& codec, Hash128& hash) {
  codec.number(hash.high);
  codec.number(hash.low);
}

template <class Codec>
void transfer(Codec& codec, Capacity& capacity) {
  codec.text(capacity.symbol);
  codec.number(capacity.axis);
}

template <class Codec>
void transfer(Codec& codec, Input& input) {
  codec.text(input.name);
  codec.enumeration(input.type, DataType::string);
  transfer(codec, input.shape);
  transfer(codec, input.capacity);
}

template <class Codec>
void transfer(Codec& codec, Output& output) {
  codec.text(output.name);
  codec.enumeration(output.type, DataType::string);
  transfer(codec, output.shape);
  codec.number(output.buffer);
  transfer(codec, output.may_alias_inputs);
  transfer(codec, output.capacity);
}

template <class Codec>
void transfer(Codec& codec, Buffer& buffer) {
  codec.enumeration(buffer.kind, BufferKind::moving);
  codec.number(buffer.index);
  codec.dim(buffer.bytes);
  codec.text(buffer.name);
  codec.flag(buffer.zero_fill);
  transfer(codec, buffer.dims);
  codec.number(buffer.base);
  codec.dim(buffer.offset);
  codec.dim(buffer.reach);
  transfer(codec, buffer.may_overwrite);
  codec.section(buffer.content);
}

template <class Codec>
void transfer(Codec& codec, FileRegion& region) {
  codec.text(region.path);
  codec.number(region.offset);
  codec.number(region.length);
  codec.number(region.file_size);
  codec.number(region.modified_ns);
  codec.number(region.inode);
}

template <class Codec>
void transfer(Codec& codec, Constant& constant) {
  codec.text(constant.name);
  codec.section(constant.bytes);
  codec.optional(constant.file, [&](FileRegion& region) { transfer(codec, region); });
  codec.number(constant.size);
  transfer(codec, constant.hash);
}

template <class Codec>
void transfer(Codec& codec, Launch& launch) {
  codec.text(launch.function);
  codec.dim(launch.blocks);
  codec.number(launch.threads);
}

template <class Codec>
void transfer(Codec& codec, Kernel& kernel) {
  codec.text(kernel.name);
  codec.number(kernel.phases);
  transfer(codec, kernel.parameters);
  codec.dim(kernel.scratch_bytes);
  transfer(codec, kernel.writes);
  codec.list(kernel.launches, [&](Launch& launch) { transfer(codec, launch); });
}

template <class Codec>
void transfer(Codec& codec, HostCall::Operand& operand) {
  codec.enumeration(operand.type, DataType::string);
  transfer(codec, operand.shape);
}

template <class Codec>
void transfer(Codec& codec, HostCall& call) {
  codec.text(call.function);
  codec.list(call.operands, [&](HostCall::Operand& operand) { transfer(codec, operand); });
}

template <class Codec>
void transfer(Codec& codec, Loop& loop) {
  codec.flag(loop.bounded);
  codec.dim(loop.trips);
  for (uint32_t* place : {&loop.count, &loop.condition, &loop.go_on, &loop.counter}) codec.number(*place);
  codec.list(loop.states, [&](Loop::State& s) {
    for (uint32_t* place : {&s.initial, &s.before, &s.after, &s.result, &s.spare}) codec.number(*place);
  });
  codec.list(loop.slices, [&](Loop::Slice& s) {
    codec.number(s.whole);
    codec.number(s.part);
    codec.flag(s.backwards);
    codec.flag(s.written);
  });
}

template <class Codec>
void transfer(Codec& codec, Step& step) {
  codec.enumeration(step.kind, StepKind::branch);
  codec.number(step.kernel);
  transfer(codec, step.buffers);
  transfer(codec, step.parameters);
  transfer(codec, step.binds);
  codec.text(step.label);
  codec.dim(step.size);
  codec.number(step.parallel_from);
  codec.number(step.fork_join_nanoseconds);
  codec.number(step.body_steps);
  codec.number(step.then_steps);
  if (step.kind == StepKind::loop) transfer(codec, step.loop);
}

template <class Codec>
void transfer(Codec& codec, Guard& guard) {
  codec.dim(guard.left);
  codec.enumeration(guard.relation, Guard::Relation::multiple_of);
  codec.dim(guard.right);
  codec.text(guard.words);
}

template <class Codec>
void transfer(Codec& codec, Program& program) {
  const auto each = [&](auto& row) { transfer(codec, row); };
  codec.text(program.name);
  codec.text(program.target);
  transfer(codec, program.symbols);
  codec.list(program.inputs, each);
  codec.list(program.outputs, each);
  codec.list(program.buffers, each);
  codec.list(program.constants, each);
  codec.list(program.kernels, each);
  codec.list(program.host_calls, each);
  codec.list(program.once_steps, each);
  codec.list(program.run_steps, each);
  codec.list(program.guards, each);
  transfer(codec, program.cpu_features);
  codec.text(program.metadata);
  codec.blob(program.library.bytes);
}

}  // namespace fusewise::program
