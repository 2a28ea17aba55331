#include "rewrite/rebuilder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/dead_nodes.h"

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
  return graph::without_dead_nodes(std::move(result_));
}

}  // namespace fusewise::rewrite
