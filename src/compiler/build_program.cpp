#include "compiler/build_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "compiler/program_parts.h"
#include "graph/shape_rules.h"
#include "schedule/memory_index.h"

namespace fusewise::compiler {

namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;
using program::BufferId;
using program::BufferKind;
using program::Program;

// A graph, or a body, whose steps are being added.
class Block {
 public:
  // `its_outputs`: where each of the graph's has to be in the end.
  Block(const Graph& its_graph, const fusion::FusionPlan& its_plan, std::vector<BufferId> its_outputs = {})
      : graph(its_graph), plan(its_plan), outputs(std::move(its_outputs)) {
    // The first that names a value is where it lies; the others get a copy.
    for (uint32_t i = 0; i < graph.outputs.size(); ++i) direct_outputs_.emplace(graph.outputs[i].value, i);
  }

  const Graph& graph;
  const fusion::FusionPlan& plan;
  std::vector<BufferId> outputs;
  std::map<Value, BufferId> buffers;  // where values are

  const Node& node(Value v) const { return graph.node(v.node); }
  schedule::Layout layout_of(Value v) const {
    const auto it = plan.layouts.find(v);
    return it != plan.layouts.end() ? it->second : schedule::row_major(graph.type(v).rank());
  }
  Dim element_bytes(Value v) const { return bytes_of(graph.type(v).element); }
  Dim bytes_of_value(Value v) const {
    const graph::TensorType& type = graph.type(v);
    const auto it = plan.layouts.find(v);
    const Dim elements =
        it == plan.layouts.end() ? product(type.shape) : schedule::physical_elements(it->second, type.shape);
    return elements * element_bytes(v);
  }
  // Of the caller's array, which may have room to spare.
  Dim bytes_of_array(Value v) const {
    Shape array = graph.type(v).shape;
    if (const program::Capacity capacity = capacity_of(v); !capacity.symbol.empty())
      array[capacity.axis] = Dim::symbol(capacity.symbol);
    return product(array) * element_bytes(v);
  }
  program::Capacity capacity_of(Value v) const {
    for (const fusion::Append& append : plan.appends) {
      if (append.whole == v) return {append.whole_capacity, static_cast<uint32_t>(append.axis)};
      if (append.past == v) return {append.past_capacity, static_cast<uint32_t>(append.axis)};
    }
    return {};
  }
  bool is_blocked(Value v) const {
    const auto it = plan.layouts.find(v);
    return it != plan.layouts.end() && !it->second.blocks.empty();
  }
  std::string name_of_value(Value v) const {
    if (node(v).sources.empty()) return fmt::format("value {}", v.node);
    const graph::ModelNode& model = graph.model_nodes[node(v).sources[0]];
    return model.first_output.empty() ? model.name : model.first_output;
  }
  // Of an output that a step can store straight to where it has to be.
  std::optional<uint32_t> direct_output(Value v) const {
    const auto it = direct_outputs_.find(v);
    return it == direct_outputs_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  std::map<Value, uint32_t> direct_outputs_;
};

class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& graph, const KernelSet& kernels) : graph_(graph), kernels_(kernels) {}

  BuiltProgram build(const fusion::FusionPlan& plan, const std::vector<KernelCall>& calls,
                     std::string library, const CompileOptions& options) {
    program_.name = graph_.name;
    Block block(graph_, plan);
    add_interface(block);
    add_kernels(options);
    std::vector<uint32_t> run_steps = add_steps(block, calls);
    program_.once_steps = largest_first(program_, std::move(program_.once_steps));
    add_guards();
    const auto code = std::as_bytes(std::span(library));
    program_.library.bytes = program::own_bytes({code.begin(), code.end()});
    program::verify(program_);
    return {std::move(program_), std::move(block.buffers), std::move(run_steps)};
  }

 private:
  const Graph& graph_;
  const KernelSet& kernels_;
  Program program_;
  std::map<std::pair<const std::byte*, size_t>, BufferId> constants_;

  uint32_t input_index(Value v) const {
    const auto it = std::find_if(graph_.inputs.begin(), graph_.inputs.end(),
                                 [&](const graph::GraphInput& input) { return input.node == v.node; });
    return static_cast<uint32_t>(it - graph_.inputs.begin());
  }
  // The tensor within the caller's array.
  BufferId tensor_in(const Block& block, BufferId array, Value v) {
    if (block.capacity_of(v).symbol.empty()) return array;
    return add_view(block, array, Dim(0), v);
  }
  BufferId add_buffer(BufferKind kind, uint32_t index, Dim bytes, std::string name) {
    return compiler::add_buffer(program_, kind, index, std::move(bytes), std::move(name));
  }

  void add_interface(Block& block) {
    std::set<std::string> symbols;
    for (const graph::GraphInput& input : graph_.inputs) {
      const Value v{input.node, 0};
      const graph::TensorType& type = graph_.type(v);
      for (const Dim& d : type.shape)
        for (const std::string& s : d.symbols()) symbols.insert(s);
      const BufferId buffer = add_buffer(BufferKind::input, static_cast<uint32_t>(program_.inputs.size()),
                                         block.bytes_of_array(v), input.name);
      program_.inputs.push_back({input.name, type.element, type.shape, block.capacity_of(v)});
      block.buffers[v] = tensor_in(block, buffer, v);
    }
    program_.symbols.assign(symbols.begin(), symbols.end());
    for (const graph::GraphOutput& output : graph_.outputs) {
      const graph::TensorType& type = graph_.type(output.value);
      const auto index = static_cast<uint32_t>(program_.outputs.size());
      const bool direct = block.direct_output(output.value) == index;  // a copy lies in one piece
      const Dim bytes = direct ? block.bytes_of_array(output.value) : bytes_of_type(type);
      const BufferId buffer = add_buffer(BufferKind::output, index, bytes, output.name);
      program_.outputs.push_back({output.name, type.element, type.shape, buffer, {}, {}});
      block.outputs.push_back(buffer);
      if (direct) program_.outputs.back().capacity = block.capacity_of(output.value);
      for (const fusion::Append& append : block.plan.appends)
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
      if (kernels_.uses_double) program_.cpu_features.emplace_back("double");
      if (options.numerics == Numerics::strict) program_.cpu_features.emplace_back("exact_division");
      return;
    }
    if (options.machine.architecture == "aarch64") program_.cpu_features = {"asimd"};
    if (options.machine.architecture != "x86-64") return;
    program_.cpu_features = {"avx2", "fma", "f16c"};
    if (options.machine.vector_bits >= 512)
      for (const char* f : {"avx512f", "avx512bw", "avx512dq", "avx512vl"})
        program_.cpu_features.push_back(f);
  }

  // A value that no region computes: a constant or dimensions.
  BufferId source_buffer(const Block& block, Value v) {
    const Node& node = block.node(v);
    if (node.op == Op::dims) {
      const BufferId id = add_buffer(BufferKind::dims, program::none, {}, block.name_of_value(v));
      program_.buffers[id].dims = graph::attributes<graph::DimsAttributes>(node).dims;
      program_.buffers[id].bytes = Dim(static_cast<int64_t>(8 * program_.buffers[id].dims.size()));
      return id;
    }
    const graph::ConstantData* data = graph::constant_of(block.graph, v);
    check(data != nullptr,
          "a value is read that no region of the plan computes: node " + std::to_string(v.node));
    // Bodies share the constants of the graphs around them.
    const auto [known, fresh] = constants_.try_emplace({data->bytes.data(), data->bytes.size()});
    if (!fresh) return known->second;
    program::Constant constant;
    constant.name = data->name;
    constant.bytes = {data->bytes, data->owner};
    constant.size = data->bytes.size();
    const auto index = static_cast<uint32_t>(program_.constants.size());
    program_.constants.push_back(std::move(constant));
    return known->second = add_buffer(BufferKind::constant, index,
                                      Dim(static_cast<int64_t>(data->bytes.size())), data->name);
  }

  // The part of `host` from that element on which holds a value that lies like `like`, at these strides if any.
  BufferId add_view(const Block& block, BufferId host, const Dim& start, Value like,
                    std::vector<Dim> strides = {}) {
    const graph::TensorType& type = block.graph.type(like);
    schedule::Layout layout = block.layout_of(like);
    if (!strides.empty()) layout.strides = std::move(strides);
    const BufferId id =
        add_buffer(BufferKind::view, program::none, bytes_of_type(type), block.name_of_value(like));
    program::Buffer& view = program_.buffers[id];
    // A part of a part is a part of the whole.
    view.base = root_of(program_, host);
    view.offset = start * block.element_bytes(like) + program_.buffers[host].offset;
    view.reach = schedule::physical_elements(layout, type.shape) * block.element_bytes(like);
    return id;
  }

  // Where a value of this run lies: where an output has to be, inside a larger value, or alone.
  BufferId place_of(Block& block, Value v) {
    if (const auto it = block.buffers.find(v); it != block.buffers.end()) return it->second;
    BufferId id = program::none;
    const auto& places = block.plan.assemblies.places;
    if (const auto place = places.find(v); place != places.end())
      id = add_view(block, host_of(block, place->second), place->second.memory.linear.constant, v);
    else if (const std::optional<uint32_t> output = block.direct_output(v))
      id = tensor_in(block, block.outputs[*output], v);
    else
      id = add_buffer(BufferKind::arena, program::none, block.bytes_of_value(v), block.name_of_value(v));
    block.buffers.emplace(v, id);
    return id;
  }

  BufferId host_of(Block& block, const fusion::Place& place) {
    const bool computed = graph::has_form(block.graph, place.host.node);
    return computed ? place_of(block, place.host) : operand_buffer(block, place.host);
  }

  // Of a value that no region of a run computes, or an earlier one.
  BufferId operand_buffer(Block& block, Value v) {
    const auto it = block.buffers.find(v);
    return it != block.buffers.end() ? it->second : block.buffers[v] = source_buffer(block, v);
  }

  BufferId buffer_of(Block& block, Value v, const fusion::PlannedRegion& region) {
    if (block.buffers.count(v) || !graph::contains(region.region, v.node)) return operand_buffer(block, v);
    if (!region.once) return place_of(block, v);
    const BufferId id =
        add_buffer(BufferKind::once, program::none, block.bytes_of_value(v), block.name_of_value(v));
    program_.buffers[id].zero_fill = block.is_blocked(v);
    return block.buffers[v] = id;
  }

  // The steps of a graph or a body, in order, until its outputs are where they have to be. By region, its step of a run.
  std::vector<uint32_t> add_steps(Block& block, const std::vector<KernelCall>& calls) {
    std::vector<uint32_t> run_steps;
    for (size_t i = 0; i < calls.size(); ++i) {
      const fusion::PlannedRegion& region = block.plan.regions[i];
      const bool is_step = !region.once && !region.assembled;
      run_steps.push_back(is_step ? static_cast<uint32_t>(program_.run_steps.size()) : program::none);
      if (region.assembled)
        add_in_place(block, region.region.nodes.front());
      else if (!region.bodies.empty())
        add_control(block, region, calls[i]);
      else if (calls[i].kernel >= 0)
        add_call(block, region, calls[i]);
      else
        add_host_step(block, region.region);
    }
    copy_outputs(block);
    return run_steps;
  }

  void add_call(Block& block, const fusion::PlannedRegion& planned, const KernelCall& call) {
    program::Step step;
    step.kernel = static_cast<uint32_t>(call.kernel);
    step.parameters = call.parameters;
    step.label = region_name(block.graph, planned.region);
    for (Value v : planned.region.outputs) step.size = step.size + product(block.graph.type(v).shape);
    step.parallel_from = static_cast<int64_t>(std::min(std::ceil(planned.parallel_from), 1e15));
    step.fork_join_nanoseconds = std::llround(planned.fork_join_microseconds * 1e3);
    for (Value v : call.arguments) step.buffers.push_back(buffer_of(block, v, planned));
    for (const schedule::LoweredKernel::Partial& partial : call.partials)
      step.buffers.push_back(add_buffer(planned.once ? BufferKind::once : BufferKind::arena, program::none,
                                        partial.elements * Dim(bytes_of(partial.element)),
                                        "parts of " + step.label));
    for (const auto& [output, input] : call.overwritable)
      if (const BufferId to = block.buffers.at(output), from = block.buffers.at(input);
          may_overwrite(step, to, from))
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

  // Of a concatenation, the parts that nobody could write in place are copied. Where divisions are left in where it
  // lies, nobody reads it but what is in place, too.
  void add_in_place(Block& block, graph::NodeId node) {
    const Value value{node, 0};
    const fusion::Assemblies& assemblies = block.plan.assemblies;
    const auto place = assemblies.places.find(value);
    if (place == assemblies.places.end() || schedule::is_strided(place->second.memory))
      place_of(block, value);
    for (const fusion::PartCopy& copy : assemblies.copies) {
      if (copy.whole != node) continue;
      const BufferId from = operand_buffer(block, copy.part);
      const Shape& shape = block.graph.type(copy.part).shape;
      const std::vector<Dim> strides = schedule::strides_of(copy.to.memory, shape.size());
      const std::vector<int> order =
          schedule::with_strides(block.layout_of(copy.part).order, strides, shape).order;
      const BufferId to =
          add_view(block, host_of(block, copy.to), copy.to.memory.linear.constant, copy.part, strides);
      add_copy(block, from, copy.part, to, order, strides,
               fmt::format("copy {} into {}", block.name_of_value(copy.part), block.name_of_value(value)));
    }
  }

  // Of all elements of a value to where they lie `strides` apart.
  void add_copy(const Block& block, BufferId from, Value value, BufferId to, const std::vector<int>& order,
                const std::vector<Dim>& strides, std::string label) {
    program::Step step;
    step.kind = program::StepKind::copy;
    step.buffers = {from, to};
    const Shape& shape = block.graph.type(value).shape;
    const std::vector<Dim> source = schedule::strides_of(block.layout_of(value), shape);
    step.parameters.push_back(block.element_bytes(value));
    for (int dim : order) {
      const auto d = static_cast<size_t>(dim);
      step.parameters.push_back(shape[d]);
      step.parameters.push_back(source[d] * block.element_bytes(value));
      step.parameters.push_back(strides[d] * block.element_bytes(value));
    }
    step.label = std::move(label);
    program_.run_steps.push_back(std::move(step));
  }

  void add_host_step(Block& block, const graph::Region& region) {
    const Node& node = block.graph.node(region.nodes[0]);
    const auto& a = graph::attributes<graph::HostAttributes>(node);
    program::Step step;
    step.kind = program::StepKind::host;
    step.kernel = static_cast<uint32_t>(program_.host_calls.size());
    step.parameters = a.parameters;
    step.binds = a.symbols;
    step.label = region_name(block.graph, region);
    program::HostCall& call = program_.host_calls.emplace_back();
    call.function = hostops::name_of(a.function);
    for (Value v : node.operands) {
      call.operands.push_back({block.graph.type(v).element, block.graph.type(v).shape});
      step.buffers.push_back(operand_buffer(block, v));
    }
    for (Value v : region.outputs) step.buffers.push_back(place_of(block, v));
    program_.run_steps.push_back(std::move(step));
  }

  // Outputs that are inputs, constants, made once, or the same value as an earlier output.
  void copy_outputs(Block& block) {
    for (size_t i = 0; i < block.graph.outputs.size(); ++i) {
      const Value v = block.graph.outputs[i].value;
      const BufferId from = operand_buffer(block, v), to = block.outputs[i];
      if (root_of(program_, from) == to) continue;
      const std::string label = "copy to " + block.graph.outputs[i].name;
      if (!block.layout_of(v).is_row_major()) {
        const schedule::Layout dense = schedule::row_major(block.graph.type(v).rank());
        add_copy(block, from, v, to, dense.order, schedule::strides_of(dense, block.graph.type(v).shape),
                 label);
        continue;
      }
      program::Step step;
      step.kind = program::StepKind::copy;
      step.buffers = {from, to};
      step.label = label;
      program_.run_steps.push_back(std::move(step));
    }
  }

  // Where each result of a loop or a branch is to be: those that nobody reads need a place as well.
  std::vector<BufferId> result_buffers(Block& block, const fusion::PlannedRegion& planned) {
    const Node& node = block.graph.node(planned.region.nodes.front());
    std::vector<BufferId> places(node.results.size(), program::none);
    for (Value v : planned.region.outputs) {
      BufferId& place = places[block.node(v).operands[0].result];
      if (place == program::none)
        place = place_of(block, v);
      else
        block.buffers.emplace(v, place);
    }
    for (size_t i = 0; i < places.size(); ++i)
      if (places[i] == program::none)
        places[i] = add_buffer(BufferKind::arena, program::none, bytes_of_type(node.results[i]), "unread");
    return places;
  }

  // The step goes in front of those of its bodies.
  void add_control(Block& block, const fusion::PlannedRegion& planned, const KernelCall& call) {
    const Node& node = block.graph.node(planned.region.nodes.front());
    std::vector<BufferId> operands;
    for (Value v : node.operands) operands.push_back(operand_buffer(block, v));
    const std::vector<BufferId> results = result_buffers(block, planned);
    const size_t index = program_.run_steps.size();
    program_.run_steps.emplace_back();
    program::Step step;
    step.label = region_name(block.graph, planned.region);
    if (node.op == Op::branch) {
      step.kind = program::StepKind::branch;
      step.buffers = {operands[0]};
      step.buffers.insert(step.buffers.end(), results.begin(), results.end());
      const std::vector<BufferId> captures(operands.begin() + 1, operands.end());
      for (size_t b = 0; b < 2; ++b) {
        add_body(*node.bodies[b], planned.bodies[b], call.bodies[b], {captures, results});
        if (b == 0) step.then_steps = static_cast<uint32_t>(program_.run_steps.size() - index - 1);
      }
    } else {
      step.kind = program::StepKind::loop;
      add_body(*node.bodies[0], planned.bodies[0], call.bodies[0],
               add_loop_roles(program_, node, operands, results, step));
    }
    step.body_steps = static_cast<uint32_t>(program_.run_steps.size() - index - 1);
    program_.run_steps[index] = std::move(step);
  }

  void add_body(const Graph& body, const fusion::FusionPlan& plan, const std::vector<KernelCall>& calls,
                const BodyEnds& ends) {
    Block block(body, plan, ends.outputs);
    for (size_t i = 0; i < ends.inputs.size(); ++i)
      block.buffers.emplace(Value{body.inputs[i].node, 0}, ends.inputs[i]);
    add_steps(block, calls);
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
  return ProgramBuilder(graph, kernels).build(plan, calls, std::move(library), options);
}

}  // namespace fusewise::compiler
