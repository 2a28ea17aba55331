#include "schedule/pieces.h"

#include <algorithm>
#include <vector>

namespace fusewise::schedule {

using graph::Form;

namespace {

constexpr size_t most_borders = 64;
// Operations that all copies of the body together may have.
constexpr int64_t most_operations = 512;
constexpr int64_t operations_of_function = 24;

}  // namespace

std::set<int64_t> piece_borders(const RegionForms& forms, const Stage& stage, int axis) {
  std::set<int64_t> borders;
  if (forms.form(stage.node).accumulation) return borders;
  std::vector<NodeId> nodes = {stage.node};
  nodes.insert(nodes.end(), stage.inlined.rbegin(), stage.inlined.rend());
  const bool any = std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) {
    const auto& reads = forms.form(node).reads;
    return std::any_of(reads.begin(), reads.end(), [](const graph::Read& r) { return !r.guards.empty(); });
  });
  if (!any) return borders;
  const auto axes = equal_axes(forms, nodes);
  for (NodeId node : nodes) {
    const auto own = axes.find(node);
    if (own == axes.end()) continue;
    for (const graph::Read& read : forms.form(node).reads)
      for (const graph::Guard& guard : read.guards) {
        const graph::LinearIndex& at = guard.expr.linear;
        const bool along = guard.expr.quasi.empty() && !guard.expr.gathered && at.terms.size() == 1 &&
                           at.terms[0].coefficient.is(1) && at.constant.is_constant() &&
                           own->second[static_cast<size_t>(at.terms[0].axis)] == axis;
        if (!along) continue;
        if (guard.low.is_constant()) borders.insert(guard.low.value() - at.constant.value());
        if (guard.high.is_constant()) borders.insert(guard.high.value() - at.constant.value());
      }
  }
  const auto copies = static_cast<int64_t>(borders.size());
  if (borders.size() > most_borders || body_operations(forms, stage) * copies > most_operations) return {};
  return borders;
}

int64_t body_operations(const RegionForms& forms, const Stage& stage) {
  const auto of_node = [&](NodeId node) {
    int64_t operations = 0;
    for (const graph::BodyNode& b : forms.form(node).body)
      if (b.kind == graph::BodyNode::Kind::apply)
        operations += class_of(b.op) == ScalarClass::function ? operations_of_function : 1;
    return operations;
  };
  int64_t operations = of_node(stage.node);
  for (NodeId node : stage.inlined) operations += of_node(node);
  return operations;
}

}  // namespace fusewise::schedule
