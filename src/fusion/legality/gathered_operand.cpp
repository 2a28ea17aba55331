#include <algorithm>

#include "fusion/legality/check.h"
#include "graph/form.h"

namespace fusewise::fusion {

namespace {

// Operations that may be repeated for each gathered element: as dear as the gather itself.
constexpr double most_operations = 4;

// What computes the operand of a gathered read, as far as it lies in the region.
Verdict recomputable(const Candidate& candidate, const LegalityContext& context, NodeId operand,
                     NodeId reader) {
  double operations = 0;
  std::vector<NodeId> work = {operand}, seen = {operand};
  while (!work.empty()) {
    const NodeId node = work.back();
    work.pop_back();
    const cost::NodeFacts& facts = context.plan.facts.at(node);
    const bool stored =
        std::binary_search(candidate.region.outputs.begin(), candidate.region.outputs.end(), Value{node, 0});
    operations += facts.point_operations;
    if (facts.accumulates || stored || operations > most_operations)
      return Verdict::forbid("gathered-operand",
                             "an operand that is gathered from must be complete in memory, or cheap "
                             "to compute point by point",
                             {node, reader});
    for (Value v : context.plan.graph->node(node).operands)
      if (graph::contains(candidate.region, v.node) &&
          std::find(seen.begin(), seen.end(), v.node) == seen.end()) {
        seen.push_back(v.node);
        work.push_back(v.node);
      }
  }
  return Verdict::allow();
}

}  // namespace

Verdict gathered_operand(const Candidate& candidate, const LegalityContext& context) {
  for (NodeId node : candidate.region.nodes) {
    if (!context.plan.facts.at(node).gathers) continue;
    const graph::Form form = graph::form_of(*context.plan.graph, node);
    for (const graph::Read& read : form.reads) {
      const bool gathered = std::any_of(read.index.begin(), read.index.end(),
                                        [](const auto& e) { return e.gathered.has_value(); });
      const NodeId operand = context.plan.graph->node(node).operands[static_cast<size_t>(read.operand)].node;
      if (!gathered || !graph::contains(candidate.region, operand)) continue;
      if (Verdict verdict = recomputable(candidate, context, operand, node); !verdict) return verdict;
    }
  }
  return Verdict::allow();
}

}  // namespace fusewise::fusion
