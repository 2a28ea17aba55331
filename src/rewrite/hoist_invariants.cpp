#include "rewrite/hoist_invariants.h"

#include <memory>
#include <utility>
#include <vector>

#include "graph/dead_nodes.h"
#include "graph/shape_rules.h"
#include "rewrite/match.h"
#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

namespace {

using graph::Graph;
using graph::Kind;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;

// Which nodes of a body are the same in every iteration, and which of those read a capture.
struct Invariance {
  std::vector<bool> invariant, captured;

  Invariance(const Graph& body, size_t first_capture) : invariant(body.size()), captured(body.size()) {
    for (size_t i = first_capture; i < body.inputs.size(); ++i)
      invariant[body.inputs[i].node] = captured[body.inputs[i].node] = true;
    for (NodeId id = 0; id < body.size(); ++id) {
      const Node& node = body.node(id);
      // What a body inside is, is not looked into. What requires something of sizes may do so in iterations only.
      const Kind kind = graph::kind_of(node.op);
      if (node.op == Op::input || node.op == Op::result || kind == Kind::control || kind == Kind::opaque ||
          !requires_nothing(body, node))
        continue;
      bool all = true, any = false;
      for (const Value& operand : node.operands) {
        all = all && invariant[operand.node];
        any = any || captured[operand.node];
      }
      invariant[id] = all;
      captured[id] = all && any;
    }
  }
};

// The invariant values that the rest of the body reads and that are worth having: behind them is some work.
std::vector<NodeId> frontier_of(const Graph& body, const Invariance& known) {
  std::vector<bool> read(body.size()), works(body.size());
  for (const graph::GraphOutput& output : body.outputs) read[output.value.node] = true;
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body.node(id);
    const Kind kind = graph::kind_of(node.op);
    works[id] = known.captured[id] && kind != Kind::source && kind != Kind::view;
    for (const Value& operand : node.operands) {
      if (!known.invariant[id]) read[operand.node] = true;
      // A view of work is that work as long as it makes no more of it.
      if (known.captured[id] && works[operand.node] && node.op != Op::broadcast) works[id] = true;
    }
  }
  // A broadcast of work hands the demand on to what it repeats.
  for (size_t i = body.size(); i-- > 0;) {
    const Node& node = body.node(static_cast<NodeId>(i));
    if (read[i] && known.captured[i] && !works[i])
      for (const Value& operand : node.operands) read[operand.node] = true;
  }
  std::vector<NodeId> frontier;
  for (NodeId id = 0; id < body.size(); ++id)
    if (read[id] && works[id]) frontier.push_back(id);
  return frontier;
}

class Hoister {
 public:
  explicit Hoister(Graph graph) : result_of_(results_of(graph)), r_(std::move(graph)) {}

  Rewritten run() {
    for (NodeId id = 0; id < r_.size(); ++id) {
      if (result_of_[id].node != graph::no_node && take_result(id)) continue;
      const Node& node = r_.begin(id);
      if (node.op != Op::loop || !hoist(id, node)) r_.keep(id);
    }
    return r_.finish();
  }

 private:
  bool hoist(NodeId id, const Node& node) {
    const Graph& body = *node.bodies[0];
    const auto& attributes = graph::attributes<graph::LoopAttributes>(node);
    const size_t captures = graph::loop_places(attributes).captures;
    const size_t first = body.inputs.size() - (node.operands.size() - captures);
    const Invariance known(body, first);
    const std::vector<NodeId> frontier = frontier_of(body, known);
    if (frontier.empty()) return false;
    std::vector<Value> operands = node.operands;
    for (const Value& value : outside(body, node, first, captures, known, frontier))
      operands.push_back(value);
    results_.emplace_back(
        id, r_.builder().control(Op::loop, operands, attributes, {with_captures(body, frontier)}));
    return true;
  }

  // By `result` node, what it is a result of.
  static std::vector<Value> results_of(const Graph& graph) {
    std::vector<Value> all(graph.size());
    for (NodeId id = 0; id < graph.size(); ++id)
      if (graph.node(id).op == Op::result) all[id] = graph.node(id).operands[0];
    return all;
  }

  bool take_result(NodeId id) {
    const Value of = result_of_[id];
    for (const auto& [loop, values] : results_) {
      if (loop != of.node) continue;
      r_.replace(id, values[of.result], Rebuilder::Sources::leave);
      return true;
    }
    return false;
  }

  // The frontier's values in the graph around the loop.
  std::vector<Value> outside(const Graph& body, const Node& node, size_t first, size_t captures,
                             const Invariance& known, const std::vector<NodeId>& frontier) {
    std::vector<bool> needed(body.size());
    for (NodeId id : frontier) needed[id] = true;
    for (size_t i = body.size(); i-- > 0;)
      if (needed[i])
        for (const Value& operand : body.node(static_cast<NodeId>(i)).operands) needed[operand.node] = true;
    std::vector<Value> moved(body.size());
    for (size_t i = first; i < body.inputs.size(); ++i)
      moved[body.inputs[i].node] = node.operands[captures + i - first];
    graph::GraphBuilder& b = r_.builder();
    for (NodeId id = 0; id < body.size(); ++id) {
      const Node& inside = body.node(id);
      if (!needed[id] || !known.invariant[id] || inside.op == Op::input) continue;
      if (const graph::ConstantData* data = graph::constant_of(body, {id, 0})) {
        moved[id] = b.constant(data->type, data->bytes, data->owner, data->name);
        continue;
      }
      std::vector<Value> operands;
      for (const Value& operand : inside.operands) operands.push_back(moved[operand.node]);
      moved[id] = b.append(inside.op, std::move(operands), inside.attributes, inside.results[0]);
    }
    std::vector<Value> values;
    for (NodeId id : frontier) values.push_back(moved[id]);
    return values;
  }

  // The body with the frontier's nodes as further inputs.
  static graph::Body with_captures(const Graph& body, const std::vector<NodeId>& frontier) {
    Graph result;
    result.name = body.name;
    result.model_nodes = body.model_nodes;
    result.constants = body.constants;
    result.inputs = body.inputs;
    result.outputs = body.outputs;
    size_t next = 0;
    for (NodeId id = 0; id < body.size(); ++id) {
      Node node = body.node(id);
      if (next < frontier.size() && frontier[next] == id) {
        ++next;
        node.op = Op::input;
        node.attributes = graph::InputAttributes{};
        node.operands.clear();
        result.inputs.push_back({id, "invariant"});
      }
      result.append(std::move(node));
    }
    return std::make_shared<const Graph>(graph::without_dead_nodes(std::move(result)));
  }

  std::vector<Value> result_of_;
  Rebuilder r_;
  std::vector<std::pair<NodeId, std::vector<Value>>> results_;
};

}  // namespace

Rewritten hoist_invariants(Graph graph, const RewriteContext&) {
  bool any = false;
  for (NodeId id = 0; id < graph.size() && !any; ++id) any = graph.node(id).op == Op::loop;
  if (!any) return {std::move(graph), false};
  return Hoister(std::move(graph)).run();
}

}  // namespace fusewise::rewrite
