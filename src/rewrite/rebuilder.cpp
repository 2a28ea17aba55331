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

Rebuilder::Rebuilder(Graph old)
    : old_(std::move(old)), builder_(result_), moved_(old_.size()), old_constants_(old_.constants.size()) {
  result_.name = std::move(old_.name);
  result_.model_nodes = std::move(old_.model_nodes);
  result_.constants = std::move(old_.constants);
  result_.reserve(old_.size());
}

const Node& Rebuilder::begin(NodeId id) {
  current_ = id;
  Node& node = old_.mutable_node(id);
  for (Value& operand : node.operands) operand = moved(operand);
  sources_.assign(node.sources.begin(), node.sources.end());
  builder_.set_sources(sources_);
  return node;
}

Node Rebuilder::begin_copy(Node node) {
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
  const Value first = moved_[old.node];  // results beyond the first belong to nodes that were kept
  check(first.node != graph::no_node, "a node is used before it is rewritten");
  return {first.node, first.result + old.result};
}

Value Rebuilder::keep(NodeId id) {
  Node& node = old_.mutable_node(id);
  if (current_ != id)
    for (Value& operand : node.operands) operand = moved(operand);
  current_ = graph::no_node;
  return moved_[id] = {result_.append(std::move(node)), 0};
}

void Rebuilder::replace(NodeId id, Value value, Sources sources) {
  // What was kept first is in the new graph already.
  const bool kept = moved_[id].node != graph::no_node;
  const Node& node = kept ? result_.node(moved_[id].node) : old_.node(id);
  if (result_.type(value) != node.results[0])
    throw InternalError("a rewrite changes the type " + to_string(node.results[0]) + " to " +
                        to_string(result_.type(value)));
  moved_[id] = value;
  replaced_ = true;
  if (sources == Sources::leave) return;
  const graph::Op op = result_.node(value.node).op;
  if (op != graph::Op::input && op != graph::Op::constant) result_.add_sources(value.node, node.sources);
}

Rewritten Rebuilder::finish() {
  for (graph::GraphInput& input : old_.inputs)
    result_.inputs.push_back({moved({input.node, 0}).node, std::move(input.name)});
  for (graph::GraphOutput& output : old_.outputs)
    result_.outputs.push_back({moved(output.value), std::move(output.name)});
  Rewritten rewritten{graph::without_dead_nodes(std::move(result_)), replaced_};
  // Where nothing was replaced, nodes can only have gone away.
  rewritten.changed = replaced_ || rewritten.graph.size() != old_.size() ||
                      rewritten.graph.constants.size() != old_constants_;
  return rewritten;
}

}  // namespace fusewise::rewrite
