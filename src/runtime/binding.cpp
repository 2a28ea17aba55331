#include "runtime/binding.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "memory/arena.h"
#include "numerics/data_type.h"

namespace fusewise::runtime {
namespace {

using program::BufferId;
using program::BufferKind;
using program::Program;

std::vector<int64_t> evaluate(const Shape& shape, const SymbolValues& symbols) {
  std::vector<int64_t> values;
  values.reserve(shape.size());
  for (const Dim& extent : shape) values.push_back(extent.evaluate(symbols));
  return values;
}

int64_t tensor_bytes(DataType type, const std::vector<int64_t>& shape, const std::string& name) {
  int64_t bits = bits_of(type);
  if (bits == 0) throw UnsupportedError("not supported yet: '" + name + "' is a tensor of strings");
  for (const int64_t extent : shape) {
    if (extent < 0) throw UserError(fmt::format("'{}' would have a dimension of {}", name, extent));
    if (extent == 0) return 0;
    if (__builtin_mul_overflow(bits, extent, &bits))
      throw UserError("'" + name + "' needs more memory than 64 bits can count");
  }
  return bits / 8 + (bits % 8 != 0 ? 1 : 0);
}

// The shape of the caller's array; its extent along the axis of a capacity becomes the symbol's value.
std::vector<int64_t> array_shape(const program::Capacity& capacity, std::vector<int64_t> shape,
                                 const std::vector<int64_t>& given, size_t index, const std::string& name,
                                 SymbolValues& symbols) {
  const int64_t stated = index < given.size() ? given[index] : 0;
  if (capacity.symbol.empty()) {
    if (stated != 0)
      throw UserError(fmt::format("'{}' has no axis that may be longer than the tensor", name));
    return shape;
  }
  int64_t& extent = shape[capacity.axis];
  if (stated != 0 && stated < extent)
    throw UserError(fmt::format("'{}' has {} elements along axis {}, and its array has room for {}", name,
                                extent, capacity.axis, stated));
  if (stated != 0) extent = stated;
  symbols[capacity.symbol] = extent;
  return shape;
}

// Sizes that data gives may be absurd: better a message than a process that the system ends.
int64_t memory_of_machine() {
  static const int64_t bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGE_SIZE);
  return bytes;
}

// "n is 5, m is 7"
std::string words_of(const Dim& dim, const SymbolValues& symbols) {
  std::string words;
  for (const std::string& symbol : dim.symbols())
    words += fmt::format("{}{} is {}", words.empty() ? "" : ", ", symbol, symbols.at(symbol));
  return words;
}

void evaluate_buffers(const Program& program, const Segments& segments, uint32_t segment, Binding& binding) {
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (segments.of_buffer[id] != segment) continue;
    const program::Buffer& buffer = program.buffers[id];
    const int64_t bytes = buffer.bytes.evaluate(binding.symbols);
    if (bytes < 0)
      throw UserError(fmt::format("{} would need {} bytes", describe_buffer(program, id), bytes));
    if (segment > 0 && bytes > memory_of_machine())
      throw UserError(fmt::format("{} would need {} bytes, more than this machine has: {}",
                                  describe_buffer(program, id), bytes,
                                  words_of(buffer.bytes, binding.symbols)));
    binding.buffer_bytes[id] = bytes;
    binding.view_offsets[id] = buffer.offset.evaluate(binding.symbols);
    if (buffer.kind == BufferKind::dims) binding.dims_values[id] = evaluate(buffer.dims, binding.symbols);
    const bool wrong = (buffer.kind == BufferKind::input && bytes != binding.input_bytes[buffer.index]) ||
                       (buffer.kind == BufferKind::output && bytes != binding.output_bytes[buffer.index]);
    if (wrong)
      throw InternalError(describe_buffer(program, id) + " has a size that differs from its tensor's");
  }
}

void check_views(const Program& program, const Segments& segments, uint32_t segment, const Binding& binding) {
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const program::Buffer& buffer = program.buffers[id];
    if (buffer.kind != BufferKind::view || segments.of_buffer[id] != segment) continue;
    const int64_t offset = binding.view_offsets[id], reach = buffer.reach.evaluate(binding.symbols);
    const int64_t whole = binding.buffer_bytes[buffer.base];
    if (reach > 0 && (offset < 0 || offset > whole || reach > whole - offset))
      throw InternalError(describe_buffer(program, id) + " reaches beyond what it is a part of");
  }
}

// A slice is one of `trips` equal parts, and a state has one size wherever it is.
void check_loop(const program::Step& step, const Binding& binding) {
  const auto bytes = [&](uint32_t at) { return binding.buffer_bytes[step.buffers[at]]; };
  const int64_t trips = step.loop.bounded ? step.loop.trips.evaluate(binding.symbols) : 0;
  bool fits = true;
  for (const program::Loop::Slice& slice : step.loop.slices) {
    int64_t whole = 0;
    fits = fits && !__builtin_mul_overflow(trips, bytes(slice.part), &whole) && whole == bytes(slice.whole);
  }
  for (const program::Loop::State& state : step.loop.states) {
    for (uint32_t at : {state.before, state.after, state.result})
      fits = fits && bytes(at) == bytes(state.initial);
    if (state.spare != program::none) fits = fits && bytes(state.spare) == bytes(state.initial);
  }
  if (!fits) throw InternalError("the loop '" + step.label + "' has buffers that do not fit together");
}

void check_steps(const Program& program, const Segments& segments, uint32_t segment, const Binding& binding) {
  for (size_t index = segments.first_step[segment]; index < segments.end_of(segment); ++index) {
    const program::Step& step = program.run_steps[index];
    check_loop(step, binding);
    if (step.kind == program::StepKind::copy && step.parameters.empty() &&
        binding.buffer_bytes[step.buffers[0]] != binding.buffer_bytes[step.buffers[1]])
      throw InternalError("the copy '" + step.label + "' is between buffers of different sizes");
  }
}

void place_arena(const Program& program, const Segments& segments, uint32_t segment, Binding& binding) {
  constexpr int unused = -1;
  std::vector<int> item_of(program.buffers.size(), unused);
  std::vector<BufferId> buffer_of;
  std::vector<ArenaItem> items;
  for (size_t step = 0; step < program.run_steps.size(); ++step) {
    for (const BufferId named : program.run_steps[step].buffers) {
      const BufferId id = root_of(program, named);
      if (program.buffers[id].kind != BufferKind::arena || segments.of_buffer[id] != segment) continue;
      const int now = static_cast<int>(step);
      if (item_of[id] == unused) {
        item_of[id] = static_cast<int>(items.size());
        items.push_back({binding.buffer_bytes[id], now, now, {}});
        buffer_of.push_back(id);
      }
      items[static_cast<size_t>(item_of[id])].last_step = now;
    }
  }
  // What a loop's body takes from outside is needed until its last iteration ends.
  for (size_t step = program.run_steps.size(); step-- > 0;) {
    if (program.run_steps[step].kind != program::StepKind::loop) continue;
    const size_t end = step + 1 + program.run_steps[step].body_steps;
    for (size_t inside = step; inside < end; ++inside)
      for (const BufferId named : program.run_steps[inside].buffers) {
        const BufferId id = root_of(program, named);
        if (item_of[id] == unused) continue;
        ArenaItem& item = items[static_cast<size_t>(item_of[id])];
        if (item.first_step <= static_cast<int>(step))
          item.last_step = std::max(item.last_step, static_cast<int>(end));
      }
  }
  for (size_t item = 0; item < items.size(); ++item)
    for (const BufferId other : program.buffers[buffer_of[item]].may_overwrite)
      if (item_of[other] != unused) items[item].may_overwrite.push_back(item_of[other]);
  const ArenaPlan plan = plan_arena(items);
  binding.block_bytes[segment] = plan.bytes;
  if (segment == 0) {
    binding.arena_bytes = plan.bytes;
    binding.arena_lower_bound = plan.lower_bound;
  }
  for (size_t item = 0; item < items.size(); ++item)
    binding.arena_offsets[buffer_of[item]] = plan.offsets[item];
}

}  // namespace

void bind_segment(const Program& program, const Segments& segments, uint32_t segment, Binding& binding) {
  check_guards(program, segments, segment, binding.symbols);
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    if (segments.of_output[i] != segment) continue;
    const program::Output& output = program.outputs[i];
    binding.output_shapes[i] = evaluate(output.shape, binding.symbols);
    const auto array = array_shape(output.capacity, binding.output_shapes[i], binding.capacities.outputs, i,
                                   output.name, binding.symbols);
    binding.output_bytes[i] = tensor_bytes(output.type, array, output.name);
  }
  evaluate_buffers(program, segments, segment, binding);
  check_views(program, segments, segment, binding);
  check_steps(program, segments, segment, binding);
  place_arena(program, segments, segment, binding);
}

Binding bind_shapes(const Program& program, const Segments& segments,
                    std::span<const std::vector<int64_t>> input_shapes, const Capacities& capacities) {
  Binding binding;
  binding.symbols = solve_symbols(program, input_shapes);
  binding.input_shapes.assign(input_shapes.begin(), input_shapes.end());
  binding.capacities = capacities;
  for (size_t i = 0; i < input_shapes.size(); ++i) {
    const program::Input& input = program.inputs[i];
    const auto array =
        array_shape(input.capacity, input_shapes[i], capacities.inputs, i, input.name, binding.symbols);
    binding.input_bytes.push_back(tensor_bytes(input.type, array, input.name));
  }
  binding.output_shapes.resize(program.outputs.size());
  binding.output_bytes.resize(program.outputs.size(), 0);
  binding.buffer_bytes.resize(program.buffers.size(), 0);
  binding.dims_values.resize(program.buffers.size());
  binding.view_offsets.resize(program.buffers.size(), 0);
  binding.arena_offsets.assign(program.buffers.size(), -1);
  binding.block_bytes.resize(segments.count(), 0);
  bind_segment(program, segments, 0, binding);
  return binding;
}

}  // namespace fusewise::runtime
