// What all parts of the planner know of the graph: figures per node, which nodes are free inside their readers, and
// who reads whom once those are out of the way.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "cost/facts.h"
#include "fusion/planner.h"

namespace fusewise::fusion {

using graph::NodeId;
using graph::Value;

// A list of nodes for each node, one behind the other.
class NodeLists {
 public:
  std::span<const NodeId> operator[](NodeId node) const {
    return {all_.data() + begins_[node], begins_[node + 1] - begins_[node]};
  }
  // The list of the next node; it gets each of the nodes once, in order.
  void append(std::vector<NodeId>& nodes);
  // For each node those whose lists name it, in order, as far as `counts(node, named)`.
  template <class Counts>
  NodeLists inverted(const Counts& counts) const;

 private:
  std::vector<size_t> begins_ = {0};
  std::vector<NodeId> all_;
};

struct PlanContext {
  const graph::Graph* graph = nullptr;
  const PlanOptions* options = nullptr;
  cost::GraphFacts facts;
  cost::CostOptions cost;
  std::vector<bool> needed;  // something leads from it to an output
  std::vector<bool> is_output;
  // Views that are computed inside whoever reads them and are no kernel of their own.
  std::vector<bool> free;
  // For nodes that are neither free nor sources: the nodes and sources that they read, and the nodes that read them,
  // through free views; each once. Who speaks of a symbol reads the node that binds it.
  NodeLists inputs, readers;
  // The free views that a node reads, directly or through others.
  NodeLists views;
  // Of loops and branches: the nodes that take out the results that somebody needs.
  std::map<NodeId, std::vector<NodeId>> results;

  bool stands_alone(NodeId node) const { return facts.at(node).alone; }
  // A loop or a branch. Who reads one of its results reads it.
  bool is_control(NodeId node) const { return graph::kind_of(graph->node(node).op) == graph::Kind::control; }
  bool is_work(NodeId node) const { return needed[node] && !is_source(node) && !free[node]; }
  bool is_source(NodeId node) const { return !facts.at(node).has_form && !facts.at(node).alone; }
  // Has to run once only, when the program is loaded.
  bool is_once(NodeId node) const { return facts.at(node).constant_only; }
};

// `stored`: views that must not be free. `facts` of the graph and these options, where they are known already.
PlanContext make_context(const graph::Graph& graph, const PlanOptions& options,
                         const std::set<NodeId>& stored, const cost::GraphFacts* facts = nullptr);

// The region that computes `nodes` (sorted, all of them work): the free views that they read come with it.
graph::Region region_of(const PlanContext& context, std::span<const NodeId> nodes);

// A node in words: "MatMul 'encoder/layer.0/query' (dot)".
std::string describe(const graph::Graph& graph, NodeId node);

}  // namespace fusewise::fusion
