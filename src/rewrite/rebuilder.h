// Makes a new graph of an old one node by node, with replacements: the frame of every rewrite. Both are one Graph: what
// stays stays where it is, what is new is appended, and `finish` brings all into the order in which it was kept and
// appended, so a pass that finds nothing to do only looks. Operands are looked up in a table, so one pass over the ids
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
  size_t size() const { return old_size_; }
  // The new graph: nodes that were kept or appended may be looked at, by the values that `moved` and the builder give.
  const graph::Graph& result() const { return graph_; }
  graph::GraphBuilder& builder();

  // Starts on the next node: it, with its operands in the new graph. What the builder appends from here on comes from the
  // same model nodes.
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

  // The new graph without the nodes that nothing needs any more; where nothing was replaced or appended, the old one as
  // it was. Every old node that something reads must be kept or replaced.
  Rewritten finish();

 private:
  void take_operands(graph::Node& node) const;
  std::vector<graph::NodeId> order();

  graph::Graph graph_;
  graph::GraphBuilder builder_;
  size_t old_size_ = 0, old_constants_ = 0;
  std::vector<graph::Value> moved_;       // by old node
  std::vector<bool> kept_;                // by old node
  std::vector<graph::NodeId> followers_;  // by appended node, the old node that was kept next
  size_t kept_nodes_ = 0;
  std::vector<uint32_t> sources_;  // of what the builder appends next, once it is asked for
  bool has_sources_ = false;
  graph::NodeId current_ = graph::no_node;  // begun on: its operands are in the new graph
  bool replaced_ = false;
};

}  // namespace fusewise::rewrite
