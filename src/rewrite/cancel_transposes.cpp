#include "rewrite/cancel_transposes.h"

#include <algorithm>
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

// The maps between two transposes, from the first one's reader on; `inner` is the operand that they work on.
struct Chain {
  NodeId first = graph::no_node;  // the upper transpose
  std::vector<NodeId> maps;
  std::vector<size_t> through;  // for each map, which operand comes down the chain
};

// Walks up from a transpose. Every value on the way has one use, so each map is visited by one walk only.
std::optional<Chain> chain_above(const Graph& graph, NodeId last, const std::vector<int>& uses) {
  Chain chain;
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
    chain.maps.push_back(at);
    chain.through.push_back(*through);
    at = node.operands[*through].node;
  }
  if (chain.maps.empty() || graph.node(at).op != Op::transpose ||
      !undo_each_other(permutation_of(graph.node(at)), permutation_of(graph.node(last))))
    return std::nullopt;
  chain.first = at;
  std::ranges::reverse(chain.maps);
  std::ranges::reverse(chain.through);
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
  const Graph& old = r.old();
  const Node& upper = old.node(chain.first);
  Value value = r.moved(upper.operands[0]);
  const Shape shape = r.builder().shape(value);
  for (size_t i = 0; i < chain.maps.size(); ++i) {
    const Node node = r.begin(chain.maps[i]);
    std::vector<Value> operands;
    for (size_t k = 0; k < node.operands.size(); ++k)
      operands.push_back(k == chain.through[i] ? value
                                               : before(r, node.operands[k], permutation_of(upper), shape));
    value = r.builder().append(Op::map, std::move(operands), node.attributes,
                               graph::TensorType{node.results[0].element, shape});
  }
  return value;
}

}  // namespace

Graph cancel_transposes(const Graph& graph, const RewriteContext&) {
  const std::vector<int> uses = count_uses(graph);
  Rebuilder rebuilder(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    std::optional<Chain> chain;
    if (graph.node(id).op == Op::transpose) chain = chain_above(graph, id, uses);
    if (chain) {
      rebuilder.replace(id, rebuilt(rebuilder, *chain));
    } else {
      rebuilder.keep(id);
    }
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite
