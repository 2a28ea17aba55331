#include "compiler/build_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <queue>
#include <set>
#include <tuple>

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

  BuiltProgram build(std::string library, const CompileOptions& options) {
    program_.name = graph_.name;
    add_interface();
    add_kernels(options);
    for (size_t i = 0; i < calls_.size(); ++i) {
      const fusion::PlannedRegion& region = plan_.regions[i];
      const bool is_step = !region.once && !region.assembled;
      run_steps_.push_back(is_step ? static_cast<uint32_t>(program_.run_steps.size()) : program::none);
      if (region.assembled)
        add_copies(region.region.nodes.front());
      else if (calls_[i].kernel >= 0)
        add_call(region, calls_[i]);
      else
        add_host_step(region.region);
    }
    copy_outputs();
    program_.once_steps = largest_first(std::move(program_.once_steps));
    add_guards();
    std::vector<std::byte> bytes(library.size());
    std::memcpy(bytes.data(), library.data(), library.size());
    program_.library.bytes = program::own_bytes(std::move(bytes));
    program::verify(program_);
    return {std::move(program_), std::move(buffers_), std::move(run_steps_)};
  }

 private:
  const Graph& graph_;
  const fusion::FusionPlan& plan_;
  const std::vector<KernelCall>& calls_;
  const KernelSet& kernels_;
  Program program_;
  std::map<Value, BufferId> buffers_;
  std::vector<uint32_t> run_steps_;  // by region
  std::map<Value, uint32_t>
      direct_outputs_;  // values that a kernel can store straight into the caller's memory

  Dim bytes_of_value(Value v) const {
    const graph::TensorType& type = graph_.type(v);
    const auto it = plan_.layouts.find(v);
    const Dim elements =
        it == plan_.layouts.end() ? product(type.shape) : schedule::physical_elements(it->second, type.shape);
    return elements * Dim(bytes_of(type.element));
  }
  // Of the caller's array, which may have room to spare.
  Dim bytes_of_array(Value v) const {
    Shape array = graph_.type(v).shape;
    if (const program::Capacity capacity = capacity_of(v); !capacity.symbol.empty())
      array[capacity.axis] = Dim::symbol(capacity.symbol);
    return product(array) * element_bytes(v);
  }
  program::Capacity capacity_of(Value v) const {
    for (const fusion::Append& append : plan_.appends) {
      if (append.whole == v) return {append.whole_capacity, static_cast<uint32_t>(append.axis)};
      if (append.past == v) return {append.past_capacity, static_cast<uint32_t>(append.axis)};
    }
    return {};
  }
  uint32_t input_index(Value v) const {
    const auto it = std::find_if(graph_.inputs.begin(), graph_.inputs.end(),
                                 [&](const graph::GraphInput& input) { return input.node == v.node; });
    return static_cast<uint32_t>(it - graph_.inputs.begin());
  }
  // The tensor within the caller's array.
  BufferId tensor_in(BufferId array, Value v) {
    if (capacity_of(v).symbol.empty()) return array;
    return add_view(array, v, std::vector<Dim>(graph_.type(v).shape.size(), Dim(0)), v);
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
      const BufferId buffer = add_buffer(BufferKind::input, static_cast<uint32_t>(program_.inputs.size()),
                                         bytes_of_array(v), input.name);
      program_.inputs.push_back({input.name, type.element, type.shape, capacity_of(v)});
      buffers_[v] = tensor_in(buffer, v);
    }
    program_.symbols.assign(symbols.begin(), symbols.end());
    for (const graph::GraphOutput& output : graph_.outputs) {
      const graph::TensorType& type = graph_.type(output.value);
      const auto index = static_cast<uint32_t>(program_.outputs.size());
      // The first that names a value is where it lies; the others get a copy, in one piece.
      const bool direct = direct_outputs_.emplace(output.value, index).second;
      const Dim bytes =
          direct ? bytes_of_array(output.value) : product(type.shape) * element_bytes(output.value);
      const BufferId buffer = add_buffer(BufferKind::output, index, bytes, output.name);
      program_.outputs.push_back({output.name, type.element, type.shape, buffer, {}, {}});
      if (direct) program_.outputs.back().capacity = capacity_of(output.value);
      for (const fusion::Append& append : plan_.appends)
        if (direct && append.whole == output.value)
          program_.outputs.back().may_alias_inputs = {input_index(append.past)};
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
      if (!options.target.empty())
        for (const codegen::Launch& launch : kernels_.launches[program_.kernels.size()])
          entry.launches.push_back({launch.function, launch.blocks, launch.threads});
      program_.kernels.push_back(std::move(entry));
    }
    program_.target = options.target;
    if (!options.target.empty()) {
      if (options.numerics == Numerics::strict) program_.cpu_features = {"exact_division"};
      return;
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

  schedule::Layout layout_of(Value v) const {
    const auto it = plan_.layouts.find(v);
    return it != plan_.layouts.end() ? it->second : schedule::row_major(graph_.type(v).rank());
  }
  Dim element_bytes(Value v) const { return bytes_of(graph_.type(v).element); }

  // The part of `host` from `start` on that holds a value of the shape and layout of `like`.
  BufferId add_view(BufferId host, Value host_value, const std::vector<Dim>& start, Value like) {
    const graph::TensorType& type = graph_.type(like);
    schedule::Layout layout = layout_of(host_value);
    layout.strides = schedule::strides_of(layout, graph_.type(host_value).shape);
    const std::vector<Dim>& strides = layout.strides;
    Dim offset = 0;
    for (size_t d = 0; d < start.size(); ++d) offset = offset + start[d] * strides[d];
    const BufferId id = add_buffer(BufferKind::view, program::none, product(type.shape) * element_bytes(like),
                                   name_of_value(like));
    program::Buffer& view = program_.buffers[id];
    // A part of a part is a part of the whole.
    view.base = root_of(program_, host);
    view.offset = offset * element_bytes(like) + program_.buffers[host].offset;
    view.reach = schedule::physical_elements(layout, type.shape) * element_bytes(like);
    return id;
  }

  // Where a value of this run lies that a region writes: in the caller's memory, inside a larger value, or alone.
  BufferId place_of(Value v) {
    if (const auto it = buffers_.find(v); it != buffers_.end()) return it->second;
    BufferId id = program::none;
    if (const auto place = plan_.assemblies.places.find(v); place != plan_.assemblies.places.end())
      id = add_view(place_of(place->second.host), place->second.host, place->second.start, v);
    else if (const auto output = direct_outputs_.find(v); output != direct_outputs_.end())
      id = tensor_in(program_.outputs[output->second].buffer, v);
    else
      id = add_buffer(BufferKind::arena, program::none, bytes_of_value(v), name_of_value(v));
    buffers_.emplace(v, id);
    return id;
  }

  BufferId buffer_of(Value v, const fusion::PlannedRegion& reader) {
    if (const auto it = buffers_.find(v); it != buffers_.end()) return it->second;
    if (!graph::contains(reader.region, v.node)) return buffers_[v] = source_buffer(v);
    if (!reader.once) return place_of(v);
    const BufferId id = add_buffer(BufferKind::once, program::none, bytes_of_value(v), name_of_value(v));
    program_.buffers[id].zero_fill = is_blocked(v);
    return buffers_[v] = id;
  }

  void add_call(const fusion::PlannedRegion& planned, const KernelCall& call) {
    program::Step step;
    step.kernel = static_cast<uint32_t>(call.kernel);
    step.parameters = call.parameters;
    step.label = region_name(graph_, planned.region);
    for (Value v : call.arguments) step.buffers.push_back(buffer_of(v, planned));
    for (const schedule::LoweredKernel::Partial& partial : call.partials)
      step.buffers.push_back(add_buffer(planned.once ? BufferKind::once : BufferKind::arena, program::none,
                                        partial.elements * Dim(bytes_of(partial.element)),
                                        "parts of " + step.label));
    for (const auto& [output, input] : call.overwritable)
      if (const BufferId to = buffers_.at(output), from = buffers_.at(input); may_overwrite(step, to, from))
        program_.buffers[to].may_overwrite.push_back(from);
    (planned.once ? program_.once_steps : program_.run_steps).push_back(std::move(step));
  }

  // Not where the step names another part of the same memory: what it reads there lies at other places.
  bool may_overwrite(const program::Step& step, BufferId to, BufferId from) const {
    if (program_.buffers[to].kind != BufferKind::arena || program_.buffers[from].kind != BufferKind::arena)
      return false;
    return std::none_of(step.buffers.begin(), step.buffers.end(),
                        [&](BufferId other) { return other != from && root_of(program_, other) == from; });
  }

  // The parts of a concatenation that nobody could write in place.
  void add_copies(graph::NodeId whole) {
    const Value value{whole, 0};
    const BufferId host = place_of(value);
    for (const fusion::PartCopy& copy : plan_.assemblies.copies) {
      if (copy.whole != whole) continue;
      auto from = buffers_.find(copy.part);
      if (from == buffers_.end()) from = buffers_.emplace(copy.part, source_buffer(copy.part)).first;
      const std::vector<Dim> strides = schedule::strides_of(layout_of(value), graph_.type(value).shape);
      add_copy(from->second, copy.part, add_view(host, value, copy.start, copy.part), layout_of(value).order,
               strides, fmt::format("copy {} into {}", name_of_value(copy.part), name_of_value(value)));
    }
  }

  // Of all elements of a value to where they lie `strides` apart.
  void add_copy(BufferId from, Value value, BufferId to, const std::vector<int>& order,
                const std::vector<Dim>& strides, std::string label) {
    program::Step step;
    step.kind = program::StepKind::copy;
    step.buffers = {from, to};
    const Shape& shape = graph_.type(value).shape;
    const std::vector<Dim> source = schedule::strides_of(layout_of(value), shape);
    step.parameters.push_back(element_bytes(value));
    for (int dim : order) {
      const auto d = static_cast<size_t>(dim);
      step.parameters.push_back(shape[d]);
      step.parameters.push_back(source[d] * element_bytes(value));
      step.parameters.push_back(strides[d] * element_bytes(value));
    }
    step.label = std::move(label);
    program_.run_steps.push_back(std::move(step));
  }

  // The order in which memory peaks least: a step has its source and its result in memory, later ones only results.
  std::vector<program::Step> largest_first(std::vector<program::Step> steps) const {
    std::map<BufferId, size_t> maker;
    std::vector<std::vector<size_t>> next(steps.size());
    std::vector<int> waits(steps.size(), 0);
    std::priority_queue<std::tuple<int64_t, int64_t, size_t>> ready;  // the earlier one of two equals
    const auto offer = [&](size_t i) {
      int64_t bytes = 0;
      for (BufferId id : steps[i].buffers)
        if (program_.buffers[id].kind == BufferKind::constant) bytes += program_.buffers[id].bytes.value();
      ready.push({bytes, -static_cast<int64_t>(i), i});
    };
    for (size_t i = 0; i < steps.size(); ++i) {
      std::set<size_t> makers;
      for (BufferId id : steps[i].buffers)
        if (const auto [it, fresh] = maker.emplace(id, i);
            program_.buffers[id].kind == BufferKind::once && it->second != i)
          makers.insert(it->second);
      waits[i] = static_cast<int>(makers.size());
      for (size_t m : makers) next[m].push_back(i);
      if (makers.empty()) offer(i);
    }
    std::vector<program::Step> sorted;
    while (!ready.empty()) {
      const size_t i = std::get<2>(ready.top());
      ready.pop();
      sorted.push_back(std::move(steps[i]));
      for (size_t n : next[i])
        if (--waits[n] == 0) offer(n);
    }
    return sorted;
  }

  void add_host_step(const graph::Region& region) {
    const graph::Node& node = graph_.node(region.nodes[0]);
    const auto& a = graph::attributes<graph::HostAttributes>(node);
    program::Step step;
    step.kind = program::StepKind::host;
    step.kernel = static_cast<uint32_t>(program_.host_calls.size());
    step.parameters = a.parameters;
    step.binds = a.symbols;
    step.label = region_name(graph_, region);
    program::HostCall& call = program_.host_calls.emplace_back();
    call.function = hostops::name_of(a.function);
    for (Value v : node.operands) {
      auto it = buffers_.find(v);
      if (it == buffers_.end()) it = buffers_.emplace(v, source_buffer(v)).first;
      call.operands.push_back({graph_.type(v).element, graph_.type(v).shape});
      step.buffers.push_back(it->second);
    }
    for (Value v : region.outputs) step.buffers.push_back(place_of(v));
    program_.run_steps.push_back(std::move(step));
  }

  // Outputs that are inputs, constants, made once, or the same value as an earlier output.
  void copy_outputs() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const Value v = graph_.outputs[i].value;
      auto it = buffers_.find(v);
      if (it == buffers_.end()) it = buffers_.emplace(v, source_buffer(v)).first;
      const BufferId to = program_.outputs[i].buffer;
      if (root_of(program_, it->second) == to) continue;
      if (!layout_of(v).is_row_major()) {
        const schedule::Layout dense = schedule::row_major(graph_.type(v).rank());
        add_copy(it->second, v, to, dense.order, schedule::strides_of(dense, graph_.type(v).shape),
                 "copy to " + graph_.outputs[i].name);
        continue;
      }
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

BuiltProgram build_program(const Graph& graph, const fusion::FusionPlan& plan,
                           const std::vector<KernelCall>& calls, const KernelSet& kernels,
                           std::string library, const CompileOptions& options) {
  return ProgramBuilder(graph, plan, calls, kernels).build(std::move(library), options);
}

}  // namespace fusewise::compiler
