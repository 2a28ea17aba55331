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
    : graph_(std::move(old)),
      builder_(graph_),
      old_size_(graph_.size()),
      old_constants_(graph_.constants.size()),
      moved_(old_size_),
      kept_(old_size_) {}

graph::GraphBuilder& Rebuilder::builder() {
  if (!has_sources_) {
    if (current_ != graph::no_node) sources_ = graph_.node(current_).sources;
    builder_.set_sources(sources_);
    has_sources_ = true;
  }
  return builder_;
}

// As long as nothing was replaced, every value stands for itself.
void Rebuilder::take_operands(Node& node) const {
  if (!replaced_) return;
  for (Value& operand : node.operands) operand = moved(operand);
}

const Node& Rebuilder::begin(NodeId id) {
  current_ = id;
  has_sources_ = false;
  Node& node = graph_.mutable_node(id);
  take_operands(node);
  return node;
}

Node Rebuilder::begin_copy(Node node) {
  take_operands(node);
  sources_ = node.sources;
  builder_.set_sources(sources_);
  has_sources_ = true;
  return node;
}

void Rebuilder::also_from(std::span<const uint32_t> sources) {
  builder();
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
  if (current_ != id) take_operands(graph_.mutable_node(id));
  followers_.resize(graph_.size() - old_size_, id);
  kept_[id] = true;
  ++kept_nodes_;
  return moved_[id] = {id, 0};
}

void Rebuilder::replace(NodeId id, Value value, Sources sources) {
  const Node& node = graph_.node(id);
  if (graph_.type(value) != node.results[0])
    throw InternalError("a rewrite changes the type " + to_string(node.results[0]) + " to " +
                        to_string(graph_.type(value)));
  moved_[id] = value;
  replaced_ = true;
  if (sources == Sources::leave) return;
  const graph::Op op = graph_.node(value.node).op;
  if (op != graph::Op::input && op != graph::Op::constant) graph_.add_sources(value.node, node.sources);
}

// What was kept and what was appended, as it came.
std::vector<NodeId> Rebuilder::order() {
  followers_.resize(graph_.size() - old_size_, static_cast<NodeId>(old_size_));
  std::vector<NodeId> order;
  order.reserve(graph_.size());
  size_t next = 0;
  for (NodeId id = 0; id <= old_size_; ++id) {
    for (; next < followers_.size() && followers_[next] == id; ++next)
      order.push_back(static_cast<NodeId>(old_size_ + next));
    if (id < old_size_ && kept_[id]) order.push_back(id);
  }
  return order;
}

Rewritten Rebuilder::finish() {
  if (!replaced_ && kept_nodes_ == old_size_ && graph_.size() == old_size_) return {std::move(graph_), false};
  for (graph::GraphInput& input : graph_.inputs) input.node = moved({input.node, 0}).node;
  for (graph::GraphOutput& output : graph_.outputs) output.value = moved(output.value);
  graph::arrange_live_nodes(graph_, order());
  // Where nothing was replaced, nodes can only have gone away.
  const bool changed = replaced_ || graph_.size() != old_size_ || graph_.constants.size() != old_constants_;
  return {std::move(graph_), changed};
}

}  // namespace fusewise::rewrite
