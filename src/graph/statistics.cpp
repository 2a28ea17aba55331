#include "graph/statistics.h"

#include "base/error.h"

namespace fusewise::graph {

std::map<std::string, int64_t> histogram(const Graph& graph) {
  std::map<std::string, int64_t> counts;
  for (const Graph* one : with_bodies(graph))
    for (NodeId id = 0; id < one->size(); ++id) {
      const Node& node = one->node(id);
      std::string name(name_of(node.op));
      if (node.op == Op::map) name += " " + std::string(name_of(attributes<MapAttributes>(node).op));
      if (node.op == Op::host)
        name += " " + std::string(hostops::name_of(attributes<HostAttributes>(node).function));
      ++counts[name];
    }
  return counts;
}

namespace {

Dim flops_of_control(const Node& node) {
  if (node.op == Op::branch) return max(flops_of(*node.bodies.at(0)), flops_of(*node.bodies.at(1)));
  const std::optional<Dim>& trips = attributes<LoopAttributes>(node).trips;
  return (trips ? *trips : Dim(1)) * flops_of(*node.bodies.at(0));
}

}  // namespace

Dim flops_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (kind_of(node.op) == Kind::control) return flops_of_control(node);
  const Dim elements = product(node.results.at(0).shape);
  switch (node.op) {
    case Op::branch:
    case Op::loop:
      break;
    case Op::map:
    case Op::prefix:
      return elements;
    case Op::scatter:
      return product(graph.type(node.operands[2]).shape);
    case Op::reduce:
      return product(graph.type(node.operands[0]).shape);
    case Op::window_reduce: {
      Dim taps = 1;
      for (int64_t extent : attributes<WindowReduceAttributes>(node).window) taps = taps * Dim(extent);
      return elements * taps;
    }
    case Op::dot: {
      Dim contracted = 1;
      for (int d : attributes<DotAttributes>(node).lhs_contract)
        contracted = contracted * graph.type(node.operands[0]).shape[static_cast<size_t>(d)];
      return elements * contracted * Dim(2);
    }
    case Op::convolution: {
      Dim taps = 2;
      const Shape& weights = graph.type(node.operands[1]).shape;
      for (size_t d = 1; d < weights.size(); ++d) taps = taps * weights[d];
      return elements * taps;
    }
    case Op::broadcast:
    case Op::concat:
    case Op::constant:
    case Op::dims:
    case Op::gather:
    case Op::host:
    case Op::input:
    case Op::iota:
    case Op::pad:
    case Op::reshape:
    case Op::result:
    case Op::slice:
    case Op::transpose:
      return 0;
  }
  throw InternalError("unknown operation");
}

Dim flops_of(const Graph& graph) {
  Dim sum;
  for (NodeId id = 0; id < graph.size(); ++id) sum = sum + flops_of(graph, id);
  return sum;
}

}  // namespace fusewise::graph
