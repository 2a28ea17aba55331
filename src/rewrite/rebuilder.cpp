#include "rewrite/rebuilder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace fusewise::rewrite {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Value;

Rebuilder::Rebuilder(const Graph& old) : old_(old), builder_(result_), moved_(old.size()) {
  result_.name = old.name;
  result_.model_nodes = old.model_nodes;
  result_.constants = old.constants;
}

Node Rebuilder::begin(NodeId id) {
  Node node = old_.node(id);
  for (Value& operand : node.operands) operand = moved(operand);
  sources_ = node.sources;
  builder_.set_sources(sources_);
  return node;
}

void Rebuilder::also_from(std::span<const uint32_t> sources) {
  for (uint32_t source : sources)
    if (sources_.size() < Graph::most_sources && std::ranges::find(sources_, source) == sources_.end())
      sources_.push_back(source);
  builder_.set_sources(sources_);
}

Value Rebuilder::moved(Value old) const {
  const Value result = moved_[old.node];
  check(result.node != graph::no_node, "a node is used before it is rewritten");
  return result;
}

Value Rebuilder::keep(NodeId id) {
  Node node = old_.node(id);
  for (Value& operand : node.operands) operand = moved(operand);
  return moved_[id] = {result_.append(std::move(node)), 0};
}

void Rebuilder::replace(NodeId id, Value value, Sources sources) {
  const Node& node = old_.node(id);
  if (result_.type(value) != node.results[0])
    throw InternalError("a rewrite changes the type " + to_string(node.results[0]) + " to " +
                        to_string(result_.type(value)));
  moved_[id] = value;
  if (sources == Sources::leave) return;
  const graph::Op op = result_.node(value.node).op;
  if (op != graph::Op::input && op != graph::Op::constant) result_.add_sources(value.node, node.sources);
}

Graph Rebuilder::finish() {
  for (const graph::GraphInput& input : old_.inputs)
    result_.inputs.push_back({moved({input.node, 0}).node, input.name});
  for (const graph::GraphOutput& output : old_.outputs)
    result_.outputs.push_back({moved(output.value), output.name});
  return without_dead_nodes(std::move(result_));
}

namespace {

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.size());
  for (const graph::GraphInput& input : graph.inputs) live[input.node] = true;
  for (const graph::GraphOutput& output : graph.outputs) live[output.value.node] = true;
  for (size_t i = graph.size(); i-- > 0;) {  // operands have smaller ids
    if (!live[i]) continue;
    for (const Value& operand : graph.node(static_cast<NodeId>(i)).operands) live[operand.node] = true;
  }
  return live;
}

bool every_constant_is_read(const Graph& graph) {
  std::vector<bool> read(graph.constants.size());
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.node(id).op == graph::Op::constant)
      read[graph::attributes<graph::ConstantAttributes>(graph.node(id)).constant] = true;
  return std::ranges::all_of(read, [](bool r) { return r; });
}

}  // namespace

Graph without_dead_nodes(Graph graph) {
  const std::vector<bool> live = live_nodes(graph);
  if (std::ranges::all_of(live, [](bool l) { return l; }) && every_constant_is_read(graph)) return graph;
  Graph result;
  std::vector<NodeId> moved(graph.size(), graph::no_node);
  std::vector<uint32_t> moved_constants(graph.constants.size(), UINT32_MAX);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!live[id]) continue;
    Node node = graph.node(id);
    for (Value& operand : node.operands) operand.node = moved[operand.node];
    if (auto* constant = std::get_if<graph::ConstantAttributes>(&node.attributes)) {
      uint32_t& index = moved_constants[constant->constant];
      if (index == UINT32_MAX) {
        index = static_cast<uint32_t>(result.constants.size());
        result.constants.push_back(std::move(graph.constants[constant->constant]));
      }
      constant->constant = index;
    }
    moved[id] = result.append(std::move(node));
  }
  for (graph::GraphInput& input : graph.inputs)
    result.inputs.push_back({moved[input.node], std::move(input.name)});
  for (graph::GraphOutput& output : graph.outputs)
    result.outputs.push_back({{moved[output.value.node], output.value.result}, std::move(output.name)});
  result.name = std::move(graph.name);
  result.model_nodes = std::move(graph.model_nodes);
  return result;
}

}  // namespace fusewise::rewrite
