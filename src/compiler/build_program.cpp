#include "compiler/build_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "graph/shape_rules.h"

namespace fusewise::compiler {

namespace {

using graph::Graph;
using graph::NodeId;
using graph::Op;
using graph::Value;
using program::BufferId;
using program::BufferKind;
using program::Program;

class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& graph, const fusion::FusionPlan& plan, const std::vector<KernelCall>& calls,
                 const KernelSet& kernels)
      : graph_(graph), plan_(plan), calls_(calls), kernels_(kernels) {}

  Program build(std::string library, const CompileOptions& options) {
    program_.name = graph_.name;
    add_interface();
    add_kernels(options);
    for (size_t i = 0; i < calls_.size(); ++i) add_call(plan_.regions[i], calls_[i]);
    copy_outputs();
    add_guards();
    std::vector<std::byte> bytes(library.size());
    std::memcpy(bytes.data(), library.data(), library.size());
    program_.library.bytes = program::own_bytes(std::move(bytes));
    program::verify(program_);
    return std::move(program_);
  }

 private:
  const Graph& graph_;
  const fusion::FusionPlan& plan_;
  const std::vector<KernelCall>& calls_;
  const KernelSet& kernels_;
  Program program_;
  std::map<Value, BufferId> buffers_;
  std::map<Value, uint32_t>
      direct_outputs_;  // values that a kernel can store straight into the caller's memory

  Dim bytes_of_value(Value v) const {
    const graph::TensorType& type = graph_.type(v);
    const auto it = plan_.layouts.find(v);
    const Dim elements =
        it == plan_.layouts.end() ? product(type.shape) : schedule::physical_elements(it->second, type.shape);
    return elements * Dim(bytes_of(type.element));
  }
  bool is_blocked(Value v) const {
    const auto it = plan_.layouts.find(v);
    return it != plan_.layouts.end() && !it->second.blocks.empty();
  }

  BufferId add_buffer(BufferKind kind, uint32_t index, Dim bytes, std::string name) {
    program::Buffer buffer;
    buffer.kind = kind;
    buffer.index = index;
    buffer.bytes = std::move(bytes);
    buffer.name = std::move(name);
    program_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }

  void add_interface() {
    std::set<std::string> symbols;
    for (const graph::GraphInput& input : graph_.inputs) {
      const Value v{input.node, 0};
      const graph::TensorType& type = graph_.type(v);
      for (const Dim& d : type.shape)
        for (const std::string& s : d.symbols()) symbols.insert(s);
      buffers_[v] = add_buffer(BufferKind::input, static_cast<uint32_t>(program_.inputs.size()),
                               bytes_of_value(v), input.name);
      program_.inputs.push_back({input.name, type.element, type.shape});
    }
    program_.symbols.assign(symbols.begin(), symbols.end());
    for (const graph::GraphOutput& output : graph_.outputs) {
      const graph::TensorType& type = graph_.type(output.value);
      const auto index = static_cast<uint32_t>(program_.outputs.size());
      const BufferId buffer = add_buffer(BufferKind::output, index,
                                         product(type.shape) * Dim(bytes_of(type.element)), output.name);
      program_.outputs.push_back({output.name, type.element, type.shape, buffer, {}});
      direct_outputs_.emplace(output.value, index);
    }
  }

  void add_kernels(const CompileOptions& options) {
    for (const kernel::Kernel& k : kernels_.kernels) {
      program::Kernel entry;
      entry.name = k.name;
      entry.phases = static_cast<uint32_t>(k.phases.size());
      entry.parameters = k.parameters;
      entry.scratch_bytes = k.scratch_bytes;
      for (int i = 0; i < k.argument_count(); ++i)
        entry.writes.push_back(k.buffers[static_cast<size_t>(i)].written ? 1 : 0);
      program_.kernels.push_back(std::move(entry));
    }
    if (options.machine.architecture == "aarch64") program_.cpu_features = {"asimd"};
    if (options.machine.architecture != "x86-64") return;
    program_.cpu_features = {"avx2", "fma", "f16c"};
    if (options.machine.vector_bits >= 512)
      for (const char* f : {"avx512f", "avx512bw", "avx512dq", "avx512vl"})
        program_.cpu_features.push_back(f);
  }

  std::string name_of_value(Value v) const {
    const graph::Node& node = graph_.node(v.node);
    if (node.sources.empty()) return fmt::format("value {}", v.node);
    const graph::ModelNode& model = graph_.model_nodes[node.sources[0]];
    return model.first_output.empty() ? model.name : model.first_output;
  }

  // A value that no region computes: a constant or dimensions.
  BufferId source_buffer(Value v) {
    const graph::Node& node = graph_.node(v.node);
    if (node.op == Op::dims) {
      const BufferId id = add_buffer(BufferKind::dims, program::none, {}, name_of_value(v));
      program_.buffers[id].dims = graph::attributes<graph::DimsAttributes>(node).dims;
      program_.buffers[id].bytes = Dim(static_cast<int64_t>(8 * program_.buffers[id].dims.size()));
      return id;
    }
    const graph::ConstantData* data = graph::constant_of(graph_, v);
    check(data != nullptr,
          "a value is read that no region of the plan computes: node " + std::to_string(v.node));
    program::Constant constant;
    constant.name = data->name;
    constant.bytes = {data->bytes, data->owner};
    constant.size = data->bytes.size();
    const auto index = static_cast<uint32_t>(program_.constants.size());
    program_.constants.push_back(std::move(constant));
    return add_buffer(BufferKind::constant, index, Dim(static_cast<int64_t>(data->bytes.size())), data->name);
  }

  void add_call(const fusion::PlannedRegion& planned, const KernelCall& call) {
    program::Step step;
    step.kernel = static_cast<uint32_t>(call.kernel);
    step.parameters = call.parameters;
    step.label = region_name(graph_, planned.region);
    for (Value v : call.arguments) {
      auto it = buffers_.find(v);
      if (it == buffers_.end()) {
        const bool written = graph::contains(planned.region, v.node);
        BufferId id = program::none;
        if (!written) {
          id = source_buffer(v);
        } else if (planned.once) {
          id = add_buffer(BufferKind::once, program::none, bytes_of_value(v), name_of_value(v));
          program_.buffers[id].zero_fill = is_blocked(v);
        } else if (const auto output = direct_outputs_.find(v); output != direct_outputs_.end()) {
          id = program_.outputs[output->second].buffer;
        } else {
          id = add_buffer(BufferKind::arena, program::none, bytes_of_value(v), name_of_value(v));
        }
        it = buffers_.emplace(v, id).first;
      }
      step.buffers.push_back(it->second);
    }
    for (const auto& [output, input] : call.overwritable) {
      const BufferId to = buffers_.at(output), from = buffers_.at(input);
      if (program_.buffers[to].kind == BufferKind::arena && program_.buffers[from].kind == BufferKind::arena)
        program_.buffers[to].may_overwrite.push_back(from);
    }
    (planned.once ? program_.once_steps : program_.run_steps).push_back(std::move(step));
  }

  // Outputs that are inputs, constants, made once, or the same value as an earlier output.
  void copy_outputs() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const Value v = graph_.outputs[i].value;
      auto it = buffers_.find(v);
      if (it == buffers_.end()) it = buffers_.emplace(v, source_buffer(v)).first;
      const BufferId to = program_.outputs[i].buffer;
      if (it->second == to) continue;
      program::Step step;
      step.kind = program::StepKind::copy;
      step.buffers = {it->second, to};
      step.label = "copy to " + graph_.outputs[i].name;
      program_.run_steps.push_back(std::move(step));
    }
  }

  void add_guards() {
    for (const graph::Requirement& r : graph::requirements_of(graph_)) {
      program::Guard guard;
      guard.words = graph::to_string(r);
      guard.left = r.a;
      guard.right = r.b;
      if (r.kind == graph::Requirement::Kind::at_least) guard.relation = program::Guard::Relation::at_least;
      if (r.kind == graph::Requirement::Kind::equal_or_one) {
        // a == b or a == 1  <=>  (a - b) * (a - 1) == 0
        guard.left = (r.a - r.b) * (r.a - Dim(1));
        guard.right = Dim(0);
      }
      program_.guards.push_back(std::move(guard));
    }
  }
};

}  // namespace

Program build_program(const Graph& graph, const fusion::FusionPlan& plan,
                      const std::vector<KernelCall>& calls, const KernelSet& kernels, std::string library,
                      const CompileOptions& options) {
  return ProgramBuilder(graph, plan, calls, kernels).build(std::move(library), options);
}

}  // namespace fusewise::compiler
