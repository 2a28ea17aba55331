#include "stress/interpreted_program.h"

#include <cstring>
#include <memory>

#include "base/error.h"
#include "hostops/hostops.h"
#include "kernel/interpreter.h"
#include "kernel/verifier.h"
#include "runtime/binding.h"

namespace fusewise::test {

namespace {

using graph::Tensor;
using program::BufferId;
using program::BufferKind;

constexpr std::byte poison{0xFF};

class Run {
 public:
  Run(const program::Program& program, std::span<const kernel::Kernel> kernels,
      std::span<const Tensor> inputs)
      : program_(program), kernels_(kernels), inputs_(inputs), segments_(runtime::segments_of(program)) {
    std::vector<std::vector<int64_t>> shapes;
    for (const Tensor& input : inputs) shapes.push_back(input.shape);
    binding_ = runtime::bind_shapes(program, segments_, shapes);
    arenas_.resize(segments_.count());
    own_.resize(program.buffers.size());
    places_.resize(program.buffers.size(), nullptr);
    place_segment(0);
    for (const program::Step& step : program.once_steps) run_step(step);
    run_steps(0, program.run_steps.size());
  }

  std::vector<Tensor> outputs() const {
    std::vector<Tensor> result;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const std::byte* data = places_[program_.outputs[i].buffer];
      result.push_back(Tensor::copy_of(program_.outputs[i].type, binding_.output_shapes[i],
                                       {data, static_cast<size_t>(binding_.output_bytes[i])}));
    }
    return result;
  }

 private:
  const program::Program& program_;
  std::span<const kernel::Kernel> kernels_;
  std::span<const Tensor> inputs_;
  runtime::Segments segments_;
  runtime::Binding binding_;
  std::vector<std::vector<std::byte>> arenas_;  // by segment
  std::vector<std::vector<std::byte>> own_;     // by buffer
  std::vector<std::byte*> places_;              // by buffer; null before its segment
  uint32_t segment_ = 0;
  std::vector<bool> started_ = std::vector<bool>(program_.buffers.size(), false);

  size_t bytes_of_buffer(BufferId id) const { return static_cast<size_t>(binding_.buffer_bytes[id]); }
  // Of the memory that a kernel may touch: the elements of a part may lie apart.
  size_t reach_of(BufferId id) const {
    const program::Buffer& buffer = program_.buffers[id];
    return buffer.kind == BufferKind::view ? static_cast<size_t>(buffer.reach.evaluate(binding_.symbols))
                                           : bytes_of_buffer(id);
  }

  void place_segment(uint32_t segment) {
    arenas_[segment].assign(static_cast<size_t>(binding_.block_bytes[segment]), poison);
    for (BufferId id = 0; id < places_.size(); ++id)
      if (segments_.of_buffer[id] == segment) places_[id] = place_of(id);
  }

  std::byte* place_of(BufferId id) {
    if (places_[id]) return places_[id];
    const program::Buffer& buffer = program_.buffers[id];
    const auto take = [&](const void* from) {
      own_[id].resize(bytes_of_buffer(id));
      if (!own_[id].empty()) std::memcpy(own_[id].data(), from, own_[id].size());
      return own_[id].data();
    };
    switch (buffer.kind) {
      case BufferKind::input:
        return take(inputs_[buffer.index].bytes().data());
      case BufferKind::constant:
        return take(program_.constants[buffer.index].bytes.span.data());
      case BufferKind::dims:
        return take(binding_.dims_values[id].data());
      case BufferKind::arena:
        return arenas_[segments_.of_buffer[id]].data() + binding_.arena_offsets[id];
      case BufferKind::view:
        places_[buffer.base] = place_of(buffer.base);
        return places_[buffer.base] ? places_[buffer.base] + binding_.view_offsets[id] : nullptr;
      case BufferKind::moving:
        return nullptr;
      case BufferKind::output:
      case BufferKind::once:
        own_[id].assign(bytes_of_buffer(id), buffer.zero_fill ? std::byte{0} : poison);
        return own_[id].data();
    }
    throw InternalError("a kind of buffer that nothing places");
  }

  bool overlap(BufferId a, BufferId b) const {
    return places_[a] < places_[b] + reach_of(b) && places_[b] < places_[a] + reach_of(a);
  }

  // What an arena buffer holds before its first step writes it is nobody's, unless it lies in an operand's place.
  void start_buffers(const program::Step& step) {
    for (const BufferId named : step.buffers) {
      const BufferId id = program::root_of(program_, named);
      if (program_.buffers[id].kind != BufferKind::arena || started_[id]) continue;
      started_[id] = true;
      bool shared = false;
      for (const BufferId other : step.buffers)
        shared = shared || (program::root_of(program_, other) != id && overlap(id, other));
      if (!shared && bytes_of_buffer(id) > 0)
        std::memset(places_[id], static_cast<int>(poison), bytes_of_buffer(id));
    }
  }

  // In one piece, or as many dimensions as `parameters` state: a piece's bytes, then count and both strides of each.
  void copy(const program::Step& step) {
    std::vector<int64_t> p;
    for (const Dim& d : step.parameters) p.push_back(d.evaluate(binding_.symbols));
    if (p.empty()) p = {binding_.buffer_bytes[step.buffers[0]]};
    int64_t pieces = p[0] > 0 ? 1 : 0;
    for (size_t d = 1; d < p.size(); d += 3) pieces *= p[d];
    for (int64_t i = 0; i < pieces; ++i) {
      int64_t rest = i, from = 0, to = 0;
      for (size_t d = p.size(); d > 1; d -= 3) {
        from += rest % p[d - 3] * p[d - 2];
        to += rest % p[d - 3] * p[d - 1];
        rest /= p[d - 3];
      }
      std::memcpy(places_[step.buffers[1]] + to, places_[step.buffers[0]] + from, static_cast<size_t>(p[0]));
    }
  }

  // A kernel's argument in memory of its own, because its place overlaps another's.
  struct Apart {
    size_t argument;
    std::vector<std::byte> before, after;
  };

  class HostReceiver final : public hostops::Receiver {
   public:
    HostReceiver(Run& run, const program::Step& step, size_t operands)
        : run_(run), step_(step), operands_(operands) {}
    void bind(std::span<const int64_t> sizes) override {
      check(sizes.size() == step_.binds.size(), "a host function binds another number of symbols");
      if (!sizes.empty()) run_.bind_next_segment(step_, sizes);
      run_.start_buffers(step_);
    }
    std::byte* result(size_t index) override { return run_.places_[step_.buffers.at(operands_ + index)]; }

   private:
    Run& run_;
    const program::Step& step_;
    size_t operands_;
  };

  void bind_next_segment(const program::Step& step, std::span<const int64_t> sizes) {
    for (size_t i = 0; i < sizes.size(); ++i) binding_.symbols[step.binds[i]] = sizes[i];
    ++segment_;
    runtime::bind_segment(program_, segments_, segment_, binding_);
    place_segment(segment_);
  }

  void run_host(const program::Step& step) {
    const program::HostCall& call = program_.host_calls[step.kernel];
    const auto function = hostops::function_of(call.function);
    check(function.has_value(), "a host function that there is not");
    std::vector<std::vector<int64_t>> shapes;
    for (const program::HostCall::Operand& operand : call.operands) {
      shapes.emplace_back();
      for (const Dim& extent : operand.shape) shapes.back().push_back(extent.evaluate(binding_.symbols));
    }
    std::vector<hostops::Operand> operands;
    for (size_t i = 0; i < shapes.size(); ++i)
      operands.push_back({call.operands[i].type, shapes[i], places_[step.buffers[i]]});
    std::vector<int64_t> parameters;
    for (const Dim& p : step.parameters) parameters.push_back(p.evaluate(binding_.symbols));
    HostReceiver receiver(*this, step, operands.size());
    hostops::Scratch scratch;
    hostops::call(*function, operands, parameters, receiver, scratch);
  }

  void run_steps(size_t begin, size_t end) {
    for (size_t i = begin; i < end; i += 1 + program_.run_steps[i].body_steps) {
      const program::Step& step = program_.run_steps[i];
      if (step.kind == program::StepKind::loop)
        run_loop(i);
      else if (step.kind == program::StepKind::branch)
        run_branch(i);
      else
        run_step(step);
    }
  }

  void run_branch(size_t index) {
    const program::Step& step = program_.run_steps[index];
    const size_t first = index + 1, middle = first + step.then_steps;
    start_buffers(step);
    if (is_set(step.buffers[0]))
      run_steps(first, middle);
    else
      run_steps(middle, first + step.body_steps);
  }
  bool is_set(BufferId id) const { return places_[id][0] != std::byte{0}; }

  void move(BufferId moving, std::byte* place) {
    places_[moving] = place;
    for (BufferId id = 0; id < places_.size(); ++id)
      if (program_.buffers[id].kind == BufferKind::view && program_.buffers[id].base == moving)
        places_[id] = place + binding_.view_offsets[id];
  }

  // Every iteration writes its states to the next place of two that it does not read, the last one moves them to the
  // result: other places than the runtime's, so that nobody relies on those.
  void run_loop(size_t index) {
    const program::Step& step = program_.run_steps[index];
    const program::Loop& loop = step.loop;
    const auto place = [&](uint32_t role) { return places_[step.buffers[role]]; };
    start_buffers(step);
    const int64_t trips = loop.bounded ? loop.trips.evaluate(binding_.symbols) : INT64_MAX;
    int64_t most = trips;
    if (loop.count != program::none) {
      int64_t count = 0;
      std::memcpy(&count, place(loop.count), sizeof count);
      most = std::min(most, count);
    }
    bool goes_on = loop.condition == program::none || is_set(step.buffers[loop.condition]);
    std::vector<std::byte*> states;
    for (const program::Loop::State& state : loop.states) states.push_back(place(state.initial));
    for (int64_t i = 0; i < most && goes_on; ++i) {
      if (loop.counter != program::none) std::memcpy(place(loop.counter), &i, sizeof i);
      for (const program::Loop::Slice& slice : loop.slices)
        move(step.buffers[slice.part],
             place(slice.whole) +
                 (slice.backwards ? trips - 1 - i : i) * binding_.buffer_bytes[step.buffers[slice.part]]);
      for (size_t s = 0; s < states.size(); ++s) {
        const program::Loop::State& state = loop.states[s];
        move(step.buffers[state.before], states[s]);
        if (state.spare != program::none)
          move(step.buffers[state.after], place(i % 2 == 0 ? state.spare : state.result));
        states[s] = place(state.after);
      }
      run_steps(index + 1, index + 1 + step.body_steps);
      if (loop.go_on != program::none) goes_on = is_set(step.buffers[loop.go_on]);
    }
    for (size_t s = 0; s < states.size(); ++s)
      std::memmove(place(loop.states[s].result), states[s],
                   bytes_of_buffer(step.buffers[loop.states[s].result]));
  }

  void run_step(const program::Step& step) {
    if (step.kind == program::StepKind::host) return run_host(step);
    start_buffers(step);
    if (step.kind == program::StepKind::copy) return copy(step);
    const kernel::Kernel& kernel = kernels_[step.kernel];
    kernel::verify(kernel);
    // The kernel interpreter wants its arguments apart: operands that the result replaces, parts that interleave.
    std::vector<std::unique_ptr<Apart>> apart;
    std::vector<kernel::BufferArgument> arguments;
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      const BufferId id = step.buffers[i];
      std::byte* data = places_[id];
      bool shared = false;
      for (size_t j = 0; j < step.buffers.size(); ++j)
        shared =
            shared ||
            (j != i &&
             (kernel.buffers[i].written ? j < i && kernel.buffers[j].written : kernel.buffers[j].written) &&
             overlap(id, step.buffers[j]));
      if (shared) {
        const std::vector<std::byte> bytes(data, data + reach_of(id));
        apart.push_back(std::make_unique<Apart>(Apart{i, bytes, bytes}));
        data = apart.back()->after.data();
      }
      arguments.push_back({data, static_cast<int64_t>(reach_of(id)) / bytes_of(kernel.buffers[i].element)});
    }
    std::vector<int64_t> parameters;
    for (const Dim& p : step.parameters) parameters.push_back(p.evaluate(binding_.symbols));
    kernel::Interpreter(kernel).run(arguments, parameters);
    for (const auto& one : apart)
      for (size_t b = 0; b < one->after.size(); ++b)
        if (one->after[b] != one->before[b]) places_[step.buffers[one->argument]][b] = one->after[b];
  }
};

}  // namespace

std::vector<Tensor> run_interpreted(const program::Program& program, std::span<const kernel::Kernel> kernels,
                                    std::span<const Tensor> inputs) {
  return Run(program, kernels, inputs).outputs();
}

}  // namespace fusewise::test
