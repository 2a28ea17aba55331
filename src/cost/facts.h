// Per-node figures of a whole graph, found once: what legality, candidates and the closed form read.
#pragma once

#include <memory>
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
  bool constant_only = false;  // depends on constants alone and has a static shape
  uint64_t signature = 0;      // of form and types: equal for nodes that compute the same function
};

// Copies share the figures.
struct GraphFacts {
  const graph::Graph* graph = nullptr;
  SymbolValues usual;
  std::shared_ptr<const std::vector<NodeFacts>> nodes;
  double constant_bytes = 0;
  const NodeFacts& at(graph::NodeId node) const { return (*nodes)[node]; }
};

GraphFacts graph_facts(const graph::Graph& graph, const machine::Machine& machine, const SymbolValues& usual);

}  // namespace fusewise::cost
