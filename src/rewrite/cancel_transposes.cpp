#include "rewrite/cancel_transposes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "rewrite/match.h"
#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

namespace {

using graph::BroadcastAttributes;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;

const std::vector<int>& permutation_of(const Node& node) {
  return graph::attributes<graph::TransposeAttributes>(node).permutation;
}

bool undo_each_other(const std::vector<int>& p, const std::vector<int>& q) {
  for (size_t i = 0; i < q.size(); ++i)
    if (p[static_cast<size_t>(q[i])] != static_cast<int>(i)) return false;
  return p.size() == q.size();
}

// A single element, or a broadcast of a tensor with one dimension that is not 1.
bool follows_any_order(const Graph& graph, Value value) {
  if (uniform_source(graph, value)) return true;
  const Node* node = node_of(graph, value, Op::broadcast);
  if (!node) return false;
  const Shape& shape = graph.type(node->operands[0]).shape;
  return std::ranges::count_if(shape, [](const Dim& d) { return !d.is(1); }) == 1;
}

// The maps between two transposes, from the first one's reader on.
struct Chain {
  Node upper;  // the first transpose
  std::vector<Node> maps;
  std::vector<size_t> through;  // for each map, which operand comes down the chain
};

// Walks up from a transpose. Every value on the way has one use, so each map is visited by one walk only.
std::optional<Chain> chain_above(const Graph& graph, NodeId last, const std::vector<int>& uses) {
  std::vector<NodeId> maps;
  std::vector<size_t> all_through;
  NodeId at = graph.node(last).operands[0].node;
  while (uses[at] == 1 && graph.node(at).op == Op::map) {
    const Node& node = graph.node(at);
    std::optional<size_t> through;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (follows_any_order(graph, node.operands[i])) continue;
      if (through) return std::nullopt;
      through = i;
    }
    if (!through) return std::nullopt;
    maps.push_back(at);
    all_through.push_back(*through);
    at = node.operands[*through].node;
  }
  if (maps.empty() || graph.node(at).op != Op::transpose ||
      !undo_each_other(permutation_of(graph.node(at)), permutation_of(graph.node(last))))
    return std::nullopt;
  Chain chain{graph.node(at), {}, {all_through.rbegin(), all_through.rend()}};
  for (size_t i = maps.size(); i-- > 0;) chain.maps.push_back(graph.node(maps[i]));
  return chain;
}

// The operand (of the new graph) as it is in the order before the upper transpose with this permutation.
Value before(Rebuilder& r, Value operand, const std::vector<int>& permutation, const Shape& shape) {
  if (const std::optional<Value> one = uniform_source(r.result(), operand))
    return spread(r.builder(), *one, shape);
  const Node node = r.result().node(operand.node);
  const Shape& own = r.builder().shape(node.operands[0]);
  for (size_t d = 0; d < own.size(); ++d) {
    if (own[d].is(1)) continue;
    const int place = graph::attributes<BroadcastAttributes>(node).dims[d];
    const Value line = r.builder().reshape(node.operands[0], {own[d]});
    return r.builder().broadcast(line, shape, {permutation[static_cast<size_t>(place)]});
  }
  return operand;
}

Value rebuilt(Rebuilder& r, const Chain& chain) {
  Value value = r.moved(chain.upper.operands[0]);
  const Shape shape = r.builder().shape(value);
  for (size_t i = 0; i < chain.maps.size(); ++i) {
    const Node node = r.begin_copy(chain.maps[i]);
    std::vector<Value> operands;
    for (size_t k = 0; k < node.operands.size(); ++k)
      operands.push_back(
          k == chain.through[i] ? value : before(r, node.operands[k], permutation_of(chain.upper), shape));
    value = r.builder().append(Op::map, std::move(operands), node.attributes,
                               graph::TensorType{node.results[0].element, shape});
  }
  return value;
}

}  // namespace

Rewritten cancel_transposes(Graph graph, const RewriteContext&) {
  const std::vector<int> uses = count_uses(graph);
  std::map<NodeId, Chain> chains;  // by the lower transpose
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.node(id).op == Op::transpose)
      if (std::optional<Chain> chain = chain_above(graph, id, uses)) chains.emplace(id, std::move(*chain));
  Rebuilder rebuilder(std::move(graph));
  for (NodeId id = 0; id < rebuilder.size(); ++id) {
    const auto chain = chains.find(id);
    if (chain != chains.end()) {
      rebuilder.replace(id, rebuilt(rebuilder, chain->second));
    } else {
      rebuilder.keep(id);
    }
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite
