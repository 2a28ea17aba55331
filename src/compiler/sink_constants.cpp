#include "compiler/sink_constants.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "fusion/layouts.h"
#include "graph/shape_rules.h"

namespace fusewise::compiler {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;

namespace {

// A body with some of its last inputs replaced by what they are made of in the graph around it.
class BodySinker {
 public:
  BodySinker(const Graph& outer, const Graph& body) : outer_(outer), body_(body) {
    result_.name = body.name;
    result_.model_nodes = body.model_nodes;
    result_.constants = body.constants;
  }

  // `made_of`: by input of the body; no_node: stays an input.
  graph::Body run(const std::vector<NodeId>& made_of) {
    std::map<NodeId, NodeId> inside;  // of the body's inputs
    for (size_t i = 0; i < made_of.size(); ++i)
      if (made_of[i] != graph::no_node) inside[body_.inputs[i].node] = copy_of(made_of[i]);
    std::vector<NodeId> moved(body_.size());
    for (NodeId n = 0; n < body_.size(); ++n) {
      if (const auto it = inside.find(n); it != inside.end()) {
        moved[n] = it->second;
        continue;
      }
      Node node = body_.node(n);
      for (Value& v : node.operands) v.node = moved[v.node];
      moved[n] = result_.append(std::move(node));
    }
    for (size_t i = 0; i < made_of.size(); ++i)
      if (made_of[i] == graph::no_node)
        result_.inputs.push_back({moved[body_.inputs[i].node], body_.inputs[i].name});
    for (const graph::GraphOutput& o : body_.outputs)
      result_.outputs.push_back({{moved[o.value.node], o.value.result}, o.name});
    return std::make_shared<const Graph>(std::move(result_));
  }

 private:
  const Graph& outer_;
  const Graph& body_;
  Graph result_;
  std::map<NodeId, NodeId> copies_;       // of nodes of the graph around it
  std::map<uint32_t, uint32_t> sources_;  // of its model nodes

  NodeId copy_of(NodeId wanted) {
    std::set<NodeId> all;
    std::vector<NodeId> work = {wanted};
    while (!work.empty()) {
      const NodeId n = work.back();
      work.pop_back();
      if (copies_.count(n) || !all.insert(n).second) continue;
      for (Value v : outer_.node(n).operands) work.push_back(v.node);
    }
    for (NodeId n : all) {
      Node node = outer_.node(n);
      for (Value& v : node.operands) v.node = copies_.at(v.node);
      for (uint32_t& source : node.sources) source = source_of(source);
      if (node.op == Op::constant) {
        auto& attributes = std::get<graph::ConstantAttributes>(node.attributes);
        result_.constants.push_back(outer_.constants[attributes.constant]);
        attributes.constant = static_cast<uint32_t>(result_.constants.size() - 1);
      }
      copies_[n] = result_.append(std::move(node));
    }
    return copies_.at(wanted);
  }

  uint32_t source_of(uint32_t source) {
    const auto [it, fresh] = sources_.try_emplace(source, static_cast<uint32_t>(result_.model_nodes.size()));
    if (fresh) result_.model_nodes.push_back(outer_.model_nodes[source]);
    return it->second;
  }
};

// Where captures begin among the operands, and among the inputs of a body.
std::pair<size_t, size_t> captures_of(const Node& node) {
  if (node.op == Op::branch) return {1, 0};
  const graph::LoopPlaces places = graph::loop_places(graph::attributes<graph::LoopAttributes>(node));
  return {places.captures, 1 + places.captures - places.carried};
}

void sink_into(const Graph& outer, const std::vector<bool>& constant, Node& node) {
  const auto [first, input] = captures_of(node);
  std::vector<NodeId> made_of(input, graph::no_node);
  std::vector<Value> operands(node.operands.begin(),
                              node.operands.begin() + static_cast<std::ptrdiff_t>(first));
  for (size_t i = first; i < node.operands.size(); ++i) {
    const Value v = node.operands[i];
    made_of.push_back(constant[v.node] ? v.node : graph::no_node);
    if (!constant[v.node]) operands.push_back(v);
  }
  const bool any = std::any_of(made_of.begin(), made_of.end(), [](NodeId n) { return n != graph::no_node; });
  for (graph::Body& body : node.bodies) {
    if (any) body = BodySinker(outer, *body).run(made_of);
    body = std::make_shared<const Graph>(sink_constants(*body));
  }
  node.operands = std::move(operands);
}

}  // namespace

Graph sink_constants(Graph graph) {
  std::vector<bool> constant;
  for (NodeId n = 0; n < graph.size(); ++n) {
    if (graph.node(n).bodies.empty()) continue;
    if (constant.empty()) constant = fusion::constant_only(graph);
    sink_into(graph, constant, graph.mutable_node(n));
  }
  return graph;
}

}  // namespace fusewise::compiler
