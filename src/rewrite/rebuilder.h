// Makes a new graph of an old one node by node, with replacements: the frame of every rewrite. Nodes that stay are
// moved, so a pass that finds nothing to do costs little. Operands are looked up in a table, so one pass over the ids
// rewrites whole chains, and nothing recurses along the graph.
#pragma once

#include <span>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"
#include "rewrite/context.h"

namespace fusewise::rewrite {

class Rebuilder {
 public:
  explicit Rebuilder(graph::Graph old);
  Rebuilder(const Rebuilder&) = delete;
  Rebuilder& operator=(const Rebuilder&) = delete;

  // Of the old graph: ids to go through, each once and in order.
  size_t size() const { return old_.size(); }
  const graph::Graph& result() const { return result_; }
  graph::GraphBuilder& builder() { return builder_; }

  // Starts on the next node: it, with its operands in the new graph, valid until the next call of begin or keep. What the
  // builder appends from here on comes from the same model nodes.
  const graph::Node& begin(graph::NodeId id);
  // The same for a copy of an old node that goes into the next one.
  graph::Node begin_copy(graph::Node node);
  // What the builder appends from here on also comes from these: those of a node that goes into the next one.
  void also_from(std::span<const uint32_t> sources);

  // The new value that stands for an old one.
  graph::Value moved(graph::Value old) const;
  // The node stays as it is.
  graph::Value keep(graph::NodeId id);
  // Lets a value of the new graph, of the same type, stand for the node's result; its node inherits the
  // sources unless it is an input or a constant, or another new node has them.
  enum class Sources : uint8_t { inherit, leave };
  void replace(graph::NodeId id, graph::Value value, Sources sources = Sources::inherit);

  // The new graph without the nodes that nothing needs any more. Every old node must be kept or replaced.
  Rewritten finish();

 private:
  graph::Graph old_, result_;
  graph::GraphBuilder builder_;
  std::vector<graph::Value> moved_;
  std::vector<uint32_t> sources_;
  graph::NodeId current_ = graph::no_node;  // begun on: its operands are in the new graph
  size_t old_constants_ = 0;
  bool replaced_ = false;
};

}  // namespace fusewise::rewrite
