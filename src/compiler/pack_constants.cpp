#include "compiler/pack_constants.h"

#include <map>
#include <numeric>

namespace fusewise::compiler {

graph::Graph pack_constants(const graph::Graph& graph) {
  using graph::NodeId;
  using graph::Value;
  graph::Graph result;
  result.name = graph.name;
  result.model_nodes = graph.model_nodes;
  result.constants = graph.constants;
  std::vector<NodeId> moved(graph.size());
  std::map<NodeId, NodeId> copies;  // of constants, by their new id
  const auto copy_of = [&](Value constant, const std::vector<uint32_t>& sources) {
    const auto it = copies.find(constant.node);
    if (it != copies.end()) return Value{it->second, 0};
    graph::TransposeAttributes identity;
    identity.permutation.resize(static_cast<size_t>(result.type(constant).rank()));
    std::iota(identity.permutation.begin(), identity.permutation.end(), 0);
    graph::Node node{graph::Op::transpose, {constant}, identity, {result.type(constant)}, sources};
    const NodeId id = result.append(std::move(node));
    copies.emplace(constant.node, id);
    return Value{id, 0};
  };
  for (NodeId n = 0; n < graph.size(); ++n) {
    graph::Node node = graph.node(n);
    for (Value& v : node.operands) v.node = moved[v.node];
    if (graph::kind_of(node.op) == graph::Kind::contract)
      for (size_t i = 1; i < node.operands.size(); ++i)
        if (graph::constant_of(result, node.operands[i]))
          node.operands[i] = copy_of(node.operands[i], node.sources);
    moved[n] = result.append(std::move(node));
  }
  for (const graph::GraphInput& i : graph.inputs) result.inputs.push_back({moved[i.node], i.name});
  for (const graph::GraphOutput& o : graph.outputs)
    result.outputs.push_back({{moved[o.value.node], o.value.result}, o.name});
  return result;
}

}  // namespace fusewise::compiler
