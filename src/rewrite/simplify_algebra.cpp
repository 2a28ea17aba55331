#include "rewrite/simplify_algebra.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "rewrite/algebra/rule.h"

namespace fusewise::rewrite {

namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;

// The rules by what they look at: an operation, or the scalar operation of a map.
class RuleTable {
 public:
  RuleTable() {
    for (const auto& family : {arithmetic_rules(), cast_rules(), logic_rules(), view_rules()})
      for (const AlgebraRule& rule : family) {
        const size_t place = place_of(rule.op, rule.map_op);
        rules_.resize(std::max(rules_.size(), place + 1));
        rules_[place].push_back(&rule);
      }
  }
  std::span<const AlgebraRule* const> for_node(const Node& node) const {
    std::optional<ScalarOp> op;
    if (node.op == Op::map) op = graph::attributes<graph::MapAttributes>(node).op;
    const size_t place = place_of(node.op, op);
    if (place >= rules_.size()) return {};
    return rules_[place];
  }

 private:
  std::vector<std::vector<const AlgebraRule*>> rules_;

  static size_t place_of(Op op, std::optional<ScalarOp> map_op) {
    return map_op ? 2 * static_cast<size_t>(*map_op) + 1 : 2 * static_cast<size_t>(op);
  }
};

std::optional<Value> apply_first(Rebuilder& rebuilder, const RuleTable& table, const Node& node) {
  for (const AlgebraRule* rule : table.for_node(node))
    if (const std::optional<Value> value = rule->apply(rebuilder, node)) return value;
  return std::nullopt;
}

// A rule's result may match again; each step makes the expression smaller, the limit is for safety alone.
std::optional<Value> simplified(Rebuilder& rebuilder, const RuleTable& table, const Node& node) {
  constexpr int most_steps = 16;
  NodeId known = static_cast<NodeId>(rebuilder.result().size());
  std::optional<Value> value = apply_first(rebuilder, table, node);
  for (int step = 0; step < most_steps && value && value->node >= known; ++step) {
    known = static_cast<NodeId>(rebuilder.result().size());
    const Node next = rebuilder.result().node(value->node);  // a copy: rules append
    const std::optional<Value> better = apply_first(rebuilder, table, next);
    if (!better) break;
    value = better;
  }
  return value;
}

}  // namespace

Rewritten simplify_algebra(Graph graph, const RewriteContext&) {
  const RuleTable table;
  Rebuilder rebuilder(std::move(graph));
  for (NodeId id = 0; id < rebuilder.size(); ++id) {
    const Node& node = rebuilder.begin(id);
    if (const std::optional<Value> value = simplified(rebuilder, table, node)) {
      rebuilder.replace(id, *value);
    } else {
      rebuilder.keep(id);
    }
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite
