// Copies a graph node by node, with replacements: the frame of every rewrite. Operands of the copy are looked
// up in a table, so one pass over the ids rewrites whole chains, and nothing recurses along the graph.
#pragma once

#include <span>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"

namespace fusewise::rewrite {

class Rebuilder {
 public:
  explicit Rebuilder(const graph::Graph& old);
  Rebuilder(const Rebuilder&) = delete;
  Rebuilder& operator=(const Rebuilder&) = delete;

  const graph::Graph& old() const { return old_; }
  const graph::Graph& result() const { return result_; }
  graph::GraphBuilder& builder() { return builder_; }

  // Starts on the next node: a copy of it with its operands in the new graph. What the builder appends from
  // here on comes from the same model nodes.
  graph::Node begin(graph::NodeId id);
  // What the builder appends from here on also comes from these: those of a node that goes into the next one.
  void also_from(std::span<const uint32_t> sources);

  // The new value that stands for an old one.
  graph::Value moved(graph::Value old) const;
  // Copies the node as it is.
  graph::Value keep(graph::NodeId id);
  // Lets a value of the new graph, of the same type, stand for the node's result; its node inherits the
  // sources unless it is an input or a constant, or another new node has them.
  enum class Sources : uint8_t { inherit, leave };
  void replace(graph::NodeId id, graph::Value value, Sources sources = Sources::inherit);

  // The new graph without the nodes that nothing needs any more. Every old node must be kept or replaced.
  graph::Graph finish();

 private:
  const graph::Graph& old_;
  graph::Graph result_;
  graph::GraphBuilder builder_;
  std::vector<graph::Value> moved_;
  std::vector<uint32_t> sources_;
};

}  // namespace fusewise::rewrite
