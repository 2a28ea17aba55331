#include "stress/interpreted_program.h"

#include <cstring>

#include "base/error.h"
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
      : program_(program), kernels_(kernels) {
    std::vector<std::vector<int64_t>> shapes;
    for (const Tensor& input : inputs) shapes.push_back(input.shape);
    binding_ = runtime::bind_shapes(program, shapes);
    arena_.assign(static_cast<size_t>(binding_.arena_bytes), poison);
    own_.resize(program.buffers.size());
    places_.resize(program.buffers.size(), nullptr);
    for (BufferId id = 0; id < places_.size(); ++id) places_[id] = place_of(id, inputs);
    for (const program::Step& step : program.once_steps) run_step(step);
    for (const program::Step& step : program.run_steps) run_step(step);
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
  runtime::Binding binding_;
  std::vector<std::byte> arena_;
  std::vector<std::vector<std::byte>> own_;  // by buffer
  std::vector<std::byte*> places_;           // by buffer
  std::vector<bool> started_ = std::vector<bool>(program_.buffers.size(), false);

  size_t bytes_of_buffer(BufferId id) const { return static_cast<size_t>(binding_.buffer_bytes[id]); }

  std::byte* place_of(BufferId id, std::span<const Tensor> inputs) {
    const program::Buffer& buffer = program_.buffers[id];
    const auto take = [&](const void* from) {
      own_[id].resize(bytes_of_buffer(id));
      if (!own_[id].empty()) std::memcpy(own_[id].data(), from, own_[id].size());
      return own_[id].data();
    };
    switch (buffer.kind) {
      case BufferKind::input:
        return take(inputs[buffer.index].bytes().data());
      case BufferKind::constant:
        return take(program_.constants[buffer.index].bytes.span.data());
      case BufferKind::dims:
        return take(binding_.dims_values[id].data());
      case BufferKind::arena:
        return arena_.data() + binding_.arena_offsets[id];
      case BufferKind::output:
      case BufferKind::once:
        own_[id].assign(bytes_of_buffer(id), buffer.zero_fill ? std::byte{0} : poison);
        return own_[id].data();
    }
    throw InternalError("a kind of buffer that nothing places");
  }

  bool overlap(BufferId a, BufferId b) const {
    return places_[a] < places_[b] + bytes_of_buffer(b) && places_[b] < places_[a] + bytes_of_buffer(a);
  }

  // What an arena buffer holds before its first step writes it is nobody's, unless it lies in an operand's place.
  void start_buffers(const program::Step& step) {
    for (const BufferId id : step.buffers) {
      if (program_.buffers[id].kind != BufferKind::arena || started_[id]) continue;
      started_[id] = true;
      bool shared = false;
      for (const BufferId other : step.buffers) shared = shared || (other != id && overlap(id, other));
      if (!shared) std::memset(places_[id], static_cast<int>(poison), bytes_of_buffer(id));
    }
  }

  void run_step(const program::Step& step) {
    if (step.kind == program::StepKind::copy) {
      if (bytes_of_buffer(step.buffers[0]) > 0)
        std::memcpy(places_[step.buffers[1]], places_[step.buffers[0]], bytes_of_buffer(step.buffers[0]));
      return;
    }
    start_buffers(step);
    const kernel::Kernel& kernel = kernels_[step.kernel];
    kernel::verify(kernel);
    std::vector<std::vector<std::byte>> before(step.buffers.size());
    std::vector<kernel::BufferArgument> arguments;
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      const BufferId id = step.buffers[i];
      std::byte* data = places_[id];
      // An operand that the result replaces: the kernel interpreter wants its arguments apart.
      for (size_t j = 0; j < step.buffers.size(); ++j)
        if (!kernel.buffers[i].written && kernel.buffers[j].written && overlap(id, step.buffers[j]) &&
            before[i].empty() && bytes_of_buffer(id) > 0) {
          before[i].assign(data, data + bytes_of_buffer(id));
          data = before[i].data();
        }
      arguments.push_back(
          {data, static_cast<int64_t>(bytes_of_buffer(id)) / bytes_of(kernel.buffers[i].element)});
    }
    std::vector<int64_t> parameters;
    for (const Dim& p : step.parameters) parameters.push_back(p.evaluate(binding_.symbols));
    kernel::Interpreter(kernel).run(arguments, parameters);
  }
};

}  // namespace

std::vector<Tensor> run_interpreted(const program::Program& program, std::span<const kernel::Kernel> kernels,
                                    std::span<const Tensor> inputs) {
  return Run(program, kernels, inputs).outputs();
}

}  // namespace fusewise::test
