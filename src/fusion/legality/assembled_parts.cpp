#include <algorithm>

#include "fusion/legality/check.h"

namespace fusewise::fusion {

namespace {

bool is_member(const Candidate& candidate, NodeId node) {
  return std::binary_search(candidate.nodes.begin(), candidate.nodes.end(), node);
}

Verdict of_whole(const Candidate& candidate, const LegalityContext& context, NodeId whole) {
  for (Value part : context.plan.graph->node(whole).operands) {
    if (!is_member(candidate, part.node)) continue;
    if (const PartCopy* copy = context.plan.options->assemblies.copy_of(part, whole))
      return Verdict::forbid(copy->reason, "it is copied into the concatenation: " + copy->detail,
                             {part.node});
    return Verdict::forbid("in-place", "it is written straight into its part of the concatenation",
                           {part.node, whole});
  }
  return Verdict::forbid("assembled",
                         "the concatenation is put together in place, by the kernels of its parts", {whole});
}

Verdict of_view(const LegalityContext& context, NodeId view) {
  const Assemblies& assemblies = context.plan.options->assemblies;
  const Value operand = context.plan.graph->node(view).operands[0];
  const auto own = assemblies.places.find(Value{view, 0}), there = assemblies.places.find(operand);
  // Whose memory it is: the operand's, unless that has been laid into the view's.
  const bool laid =
      there != assemblies.places.end() && (there->second.host == Value{view, 0} ||
                                           (own != assemblies.places.end() && own->second.host.node > view));
  return laid ? Verdict::forbid("in-place", "the view's operand is written straight to where the view lies",
                                {view})
              : Verdict::forbid("view", "no copy is made: the view is read where its operand lies", {view});
}

}  // namespace

// What is put in place has no kernel: what it reads is complete in memory before a reader of it begins.
Verdict assembled_parts(const Candidate& candidate, const LegalityContext& context) {
  const Assemblies& assemblies = context.plan.options->assemblies;
  if (candidate.nodes.size() < 2 || (assemblies.wholes.empty() && assemblies.views.empty()))
    return Verdict::allow();
  for (NodeId node : candidate.nodes) {
    if (assemblies.wholes.count(node)) return of_whole(candidate, context, node);
    if (assemblies.views.count(node)) return of_view(context, node);
  }
  return Verdict::allow();
}

}  // namespace fusewise::fusion
