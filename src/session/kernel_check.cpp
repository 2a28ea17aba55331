#include "session/kernel_check.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "fusion/model_nodes.h"
#include "runtime/drivers/opencl/device_executable.h"
#include "runtime/executable.h"

namespace fusewise::session {
namespace {

using graph::Tensor;
using graph::Value;
using program::BufferId;
using program::BufferKind;

// A value that a region of the plan stores, and the bytes that it stored.
struct Stored {
  size_t region = 0;
  Value value;
  BufferId buffer = program::none;
  std::vector<std::byte> bytes;
  bool seen = false;
};

std::vector<Stored> stored_values(const compiler::Compiled& compiled) {
  std::vector<Stored> stored;
  for (size_t i = 0; i < compiled.plan.regions.size(); ++i) {
    // What is assembled consists of other regions' results, which are looked at where they are made.
    if (compiled.plan.regions[i].assembled) continue;
    for (const Value value : compiled.plan.regions[i].region.outputs)
      if (const auto buffer = compiled.buffers.find(value); buffer != compiled.buffers.end())
        stored.push_back({i, value, buffer->second, {}, false});
  }
  return stored;
}

// Row-major bytes of what lies in a layout. `strides` of one without blocks.
std::vector<std::byte> row_major_bytes(std::span<const std::byte> from, const schedule::Layout& layout,
                                       const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                                       size_t element) {
  const size_t rank = shape.size();
  std::vector<int64_t> block(rank, 1);
  for (const schedule::Layout::Block& b : layout.blocks) block[static_cast<size_t>(b.dim)] = b.block;
  std::vector<std::byte> result(static_cast<size_t>(graph::element_count(shape)) * element);
  std::vector<int64_t> index(rank, 0);
  for (size_t at = 0; at < result.size(); at += element) {
    int64_t place = 0;
    if (layout.blocks.empty()) {
      for (size_t d = 0; d < rank; ++d) place += index[d] * strides[d];
    } else {
      for (const int dim : layout.order) {
        const auto d = static_cast<size_t>(dim);
        place = place * ((shape[d] + block[d] - 1) / block[d]) + index[d] / block[d];
      }
      for (const schedule::Layout::Block& b : layout.blocks)
        place = place * b.block + index[static_cast<size_t>(b.dim)] % b.block;
    }
    std::memcpy(result.data() + at, from.data() + static_cast<size_t>(place) * element, element);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return result;
}

class KernelCheck {
 public:
  KernelCheck(const compiler::Compiled& compiled, std::span<const Tensor> inputs)
      : compiled_(compiled), inputs_(inputs), stored_(stored_values(compiled)) {}

  std::vector<KernelVerdict> run(const KernelCheckOptions& options) {
    record(options.threads);
    std::vector<Tensor> tensors;
    graph::Graph asked = compiled_.graph;
    asked.outputs.clear();
    std::erase_if(stored_, [](const Stored& s) { return !s.seen; });
    for (const Stored& s : stored_) {
      asked.outputs.push_back({s.value, name_of_value(s.value)});
      tensors.push_back(tensor_of(s));
    }
    if (stored_.empty()) return {};
    const Reference reference(asked, inputs_, options.reference);
    std::vector<OutputVerdict> verdicts = options.judge(reference, tensors);
    check(verdicts.size() == stored_.size(), "as many verdicts as values");
    std::vector<KernelVerdict> result;
    for (size_t i = 0; i < stored_.size(); ++i)
      result.push_back(words_of(stored_[i], std::move(verdicts[i])));
    return result;
  }

 private:
  // Runs the program and keeps what each step stores, before a later one takes the memory.
  void record(int threads) {
    for (const program::Step& step : compiled_.program.run_steps)
      if (!step.binds.empty())
        throw UnsupportedError(
            "not supported yet: comparing kernel by kernel where only the run knows a size, "
            "which step '" +
            step.label + "' gives; compare the outputs alone");
    if (compiled_.program.target == "opencl")
      return record(runtime::opencl::DeviceExecutable(compiled_.program, true));
    runtime::ExecutableOptions how;
    how.threads = threads;
    how.poison = true;
    record(runtime::Executable(compiled_.program, how));
  }

  template <class Executable>
  void record(const Executable& executable) {
    std::vector<std::vector<int64_t>> shapes;
    std::vector<Tensor> aligned;
    std::vector<const void*> input_pointers;
    for (const Tensor& input : inputs_) {
      shapes.push_back(input.shape);
      aligned.push_back(input.aligned());
      input_pointers.push_back(aligned.back().bytes().data());
    }
    const auto binding = executable.bind(shapes);
    symbols_ = binding->symbols;
    std::vector<Tensor> outputs;
    std::vector<void*> output_pointers;
    for (size_t i = 0; i < compiled_.program.outputs.size(); ++i) {
      outputs.emplace_back(compiled_.program.outputs[i].type, binding->output_shapes[i]);
      output_pointers.push_back(outputs.back().mutable_bytes().data());
    }
    const std::vector<std::vector<size_t>> by_step = stored_by_step();
    runtime::RunOptions run;
    run.after_step = [&](size_t step, std::span<void* const> pointers) {
      const std::vector<BufferId>& buffers = compiled_.program.run_steps[step].buffers;
      for (const size_t i : by_step[step]) {
        const auto argument = std::find(buffers.begin(), buffers.end(), stored_[i].buffer) - buffers.begin();
        check(static_cast<size_t>(argument) < buffers.size(), "a step has the buffers of what it stores");
        const auto size = physical_bytes(stored_[i].value);
        const auto* bytes = static_cast<const std::byte*>(pointers[static_cast<size_t>(argument)]);
        keep(stored_[i], {bytes, size});
      }
    };
    const runtime::Status status = executable.run(*binding, input_pointers, output_pointers, run);
    if (!status.ok()) throw UserError("the run failed: " + status.message);
    record_once(executable.with_once_results());
  }

  // Those that no run reads are not kept by the runtime.
  void record_once(const program::Program& program) {
    for (Stored& s : stored_)
      if (compiled_.plan.regions[s.region].once && !program.buffers[s.buffer].content.span.empty())
        keep(s, program.buffers[s.buffer].content.span);
  }

  static void keep(Stored& stored, std::span<const std::byte> bytes) {
    stored.bytes.assign(bytes.begin(), bytes.end());
    stored.seen = true;
  }

  std::vector<std::vector<size_t>> stored_by_step() const {
    std::vector<std::vector<size_t>> by_step(compiled_.program.run_steps.size());
    for (size_t i = 0; i < stored_.size(); ++i)
      if (const uint32_t step = compiled_.run_steps[stored_[i].region]; step != program::none)
        by_step[step].push_back(i);
    return by_step;
  }

  std::vector<int64_t> evaluated(const Shape& shape) const {
    std::vector<int64_t> extents;
    for (const Dim& extent : shape) extents.push_back(extent.evaluate(symbols_));
    return extents;
  }

  schedule::Layout layout_of(Value value) const {
    const auto layout = compiled_.plan.layouts.find(value);
    return layout == compiled_.plan.layouts.end() ? schedule::row_major(compiled_.graph.type(value).rank())
                                                  : layout->second;
  }

  size_t physical_bytes(Value value) const {
    const graph::TensorType& type = compiled_.graph.type(value);
    const int64_t elements = schedule::physical_elements(layout_of(value), type.shape).evaluate(symbols_);
    return static_cast<size_t>(elements * bytes_of(type.element));
  }

  Tensor tensor_of(const Stored& stored) const {
    const graph::TensorType& type = compiled_.graph.type(stored.value);
    const std::vector<int64_t> shape = evaluated(type.shape);
    const schedule::Layout layout = layout_of(stored.value);
    if (layout.is_row_major()) return Tensor::copy_of(type.element, shape, stored.bytes);
    std::vector<int64_t> strides;
    if (layout.blocks.empty()) strides = evaluated(schedule::strides_of(layout, type.shape));
    const auto size = static_cast<size_t>(bytes_of(type.element));
    return Tensor::copy_of(type.element, shape, row_major_bytes(stored.bytes, layout, shape, strides, size));
  }

  std::string name_of_value(Value value) const {
    const graph::Node& node = compiled_.graph.node(value.node);
    for (const graph::GraphOutput& output : compiled_.graph.outputs)
      if (output.value == value) return output.name;
    if (node.sources.empty()) return std::string(graph::name_of(node.op));
    const graph::ModelNode& model = compiled_.graph.model_nodes[node.sources[0]];
    return model.first_output.empty() ? model.name : model.first_output;
  }

  KernelVerdict words_of(const Stored& stored, OutputVerdict verdict) const {
    const fusion::PlannedRegion& region = compiled_.plan.regions[stored.region];
    KernelVerdict result;
    result.once = region.once;
    for (const uint32_t node : fusion::model_nodes_of(compiled_.graph, region.region))
      result.nodes.push_back(fusion::model_node_name(compiled_.graph, node));
    result.verdict = std::move(verdict);
    if (const uint32_t own = compiled_.kernels[stored.region]; own != program::none) {
      result.kernel = compiled_.program.kernels[own].name;
      result.phases = static_cast<int>(compiled_.program.kernels[own].phases);
    } else {  // a host function, or a loop or a branch as a whole
      const program::Step& step = compiled_.program.run_steps[compiled_.run_steps[stored.region]];
      result.kernel = step.kind == program::StepKind::host
                          ? compiled_.program.host_calls[step.kernel].function
                          : std::string(step.kind == program::StepKind::loop ? "loop" : "branch");
      result.phases = 1;
    }
    return result;
  }

  const compiler::Compiled& compiled_;
  std::span<const Tensor> inputs_;
  std::vector<Stored> stored_;
  SymbolValues symbols_;
};

}  // namespace

std::vector<KernelVerdict> check_kernels(const compiler::Compiled& compiled, std::span<const Tensor> inputs,
                                         const KernelCheckOptions& options) {
  return KernelCheck(compiled, inputs).run(options);
}

}  // namespace fusewise::session
