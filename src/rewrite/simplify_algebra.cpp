#include "rewrite/simplify_algebra.h"

#include <map>
#include <optional>
#include <vector>

#include "rewrite/algebra/rule.h"

namespace fusewise::rewrite {

namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;

// The rules by what they look at.
class RuleTable {
 public:
  RuleTable() {
    for (const auto& family : {arithmetic_rules(), cast_rules(), logic_rules(), view_rules()})
      for (const AlgebraRule& rule : family) rules_[{rule.op, rule.map_op}].push_back(&rule);
  }
  const std::vector<const AlgebraRule*>& for_node(const Node& node) const {
    std::optional<ScalarOp> op;
    if (node.op == Op::map) op = graph::attributes<graph::MapAttributes>(node).op;
    const auto found = rules_.find({node.op, op});
    return found == rules_.end() ? none_ : found->second;
  }

 private:
  std::map<std::pair<Op, std::optional<ScalarOp>>, std::vector<const AlgebraRule*>> rules_;
  std::vector<const AlgebraRule*> none_;
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
