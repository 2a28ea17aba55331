// Per-node figures of a whole graph, found once: what legality, candidates and the closed form read.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "cost/work.h"
#include "graph/graph.h"

namespace fusewise::cost {

struct NodeFacts {
  bool has_form = false;
  bool alone = false;   // work without a form: a step of its own
  double elements = 1;  // of the result
  double points = 1;    // of the domain: elements times what is reduced for each
  double bytes = 0;     // of the result
  double cycles = 0;    // of all points, in whole vectors
  double flops = 0;
  double point_operations = 0;
  bool accumulates = false, contracts = false, sequential = false;
  bool view = false;        // moves elements and computes nothing: one read without guards, or indices
  bool plain_view = false;  // a view whose index is affine: free inside its readers
  bool gathers = false, pieces = false;
  bool widens = false;         // a view with more elements than its operand: a broadcast
  bool literal = false;        // a constant of one element, which kernels have in their code
  bool constant_only = false;  // depends on constants alone and has a static shape
  uint64_t signature = 0;      // of form and types: equal for nodes that compute the same function
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

// The figures of all nodes, and what they read. Equal figures are kept once: the layers of a model are much alike, and so
// what is asked for over and over stays in a cache.
class NodeTable {
 public:
  // Nodes are added in order.
  void add(const NodeFacts& facts, std::span<const graph::Value> operands);
  const NodeFacts& at(graph::NodeId node) const { return different_[number_[node]]; }
  std::span<const graph::NodeId> operands(graph::NodeId node) const {
    return std::span(operands_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }

 private:
  std::vector<NodeFacts> different_;
  std::unordered_multimap<uint64_t, uint32_t> known_;  // by hash
  std::vector<uint32_t> number_;                       // by node, into `different_`
  std::vector<graph::NodeId> operands_;
  std::vector<size_t> begins_ = {0};  // by node, into `operands_`
};

// Copies share the figures.
struct GraphFacts {
  const graph::Graph* graph = nullptr;
  SymbolValues usual;
  std::shared_ptr<const NodeTable> nodes;
  double constant_bytes = 0;
  const NodeFacts& at(graph::NodeId node) const { return nodes->at(node); }
  // The nodes whose results it reads, as the graph has them: one behind the other, for who walks over many.
  std::span<const graph::NodeId> operands(graph::NodeId node) const { return nodes->operands(node); }
};

GraphFacts graph_facts(const graph::Graph& graph, const machine::Machine& machine, const SymbolValues& usual);

}  // namespace fusewise::cost
