#include "compiler/pack_constants.h"

#include <map>
#include <numeric>
#include <utility>

namespace fusewise::compiler {

graph::Graph pack_constants(graph::Graph graph) {
  using graph::NodeId;
  using graph::Value;
  graph::Graph result;
  result.name = std::move(graph.name);
  result.model_nodes = std::move(graph.model_nodes);
  result.constants = std::move(graph.constants);
  result.reserve(graph.size());
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
    Indirect<graph::Node> node = graph.release(n);
    for (Value& v : node->operands) v.node = moved[v.node];
    for (graph::Body& body : node->bodies) body = std::make_shared<const graph::Graph>(pack_constants(*body));
    if (graph::kind_of(node->op) == graph::Kind::contract)
      for (size_t i = 1; i < node->operands.size(); ++i)
        if (graph::constant_of(result, node->operands[i]))
          node->operands[i] = copy_of(node->operands[i], node->sources);
    moved[n] = result.append(std::move(node));
  }
  for (graph::GraphInput& i : graph.inputs) result.inputs.push_back({moved[i.node], std::move(i.name)});
  for (graph::GraphOutput& o : graph.outputs)
    result.outputs.push_back({{moved[o.value.node], o.value.result}, std::move(o.name)});
  return result;
}

}  // namespace fusewise::compiler
