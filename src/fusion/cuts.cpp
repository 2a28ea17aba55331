#include "fusion/cuts.h"

#include <algorithm>
#include <map>

#include "fusion/legality/list.h"

namespace fusewise::fusion {

namespace {

struct Reason {
  std::string code, detail;
  double fused = 0, now = 0;
};

Reason reason_of(const LegalityContext& context, const FusionPlan& plan, int a, int b) {
  const PlannedRegion& first = plan.regions[static_cast<size_t>(a)];
  const PlannedRegion& second = plan.regions[static_cast<size_t>(b)];
  Reason reason;
  reason.now = first.predicted_microseconds + second.predicted_microseconds;
  if (plan.mode != FusionMode::on) {
    reason.code = "mode";
    reason.detail = plan.mode == FusionMode::off ? "fusion is off: every primitive is a kernel"
                                                 : "fusion stops at the borders of the model's operators";
    return reason;
  }
  if ((first.pinned || second.pinned) && !first.assembled && !second.assembled) {
    reason.code = "pinned";
    reason.detail = "the plan file fixes one of the groups";
    return reason;
  }
  std::vector<NodeId> work;
  for (const PlannedRegion* r : {&first, &second})
    for (NodeId n : r->region.nodes)
      if (context.plan.is_work(n)) work.push_back(n);
  const int ca = context.partition.cluster_of(first.region.outputs.front().node);
  const int cb = context.partition.cluster_of(second.region.outputs.front().node);
  Candidate candidate;
  std::sort(work.begin(), work.end());
  candidate.nodes = std::move(work);
  candidate.region = region_of(context.plan, candidate.nodes);
  if (ca != cb) {
    candidate.a = ca;
    candidate.b = cb;
  }
  Verdict verdict = is_legal(candidate, context, false);
  if (verdict && context.evaluator.evaluations() >= context.plan.options->budget &&
      !context.evaluator.known(candidate.region)) {
    reason.code = "budget";
    reason.detail = "the search ended before this pair was priced";
    return reason;
  }
  if (verdict) verdict = is_legal(candidate, context, true);
  if (!verdict) {
    reason.code = verdict.code;
    reason.detail = verdict.detail;
    return reason;
  }
  const cost::Estimate& estimate = context.evaluator.evaluate(candidate.region).estimate;
  reason.code = "cost";
  reason.fused = estimate.microseconds;
  reason.detail = "one kernel would be bound by " + estimate.bound();
  return reason;
}

}  // namespace

void add_cuts(const PlanContext& context, const Partition& partition, Evaluator& evaluator,
              FusionPlan& plan) {
  const LegalityContext legality{context, partition, evaluator};
  std::vector<int> region_of_node(context.graph->size(), -1);
  for (size_t r = 0; r < plan.regions.size(); ++r)
    for (NodeId node : plan.regions[r].region.nodes)
      if (!context.free[node]) region_of_node[node] = static_cast<int>(r);
  std::map<std::pair<int, int>, Reason> reasons;
  for (NodeId node = 0; node < context.graph->size(); ++node) {
    if (!context.is_work(node)) continue;
    for (NodeId input : context.inputs[node]) {
      if (context.is_source(input)) continue;
      const int a = region_of_node[input], b = region_of_node[node];
      if (a == b) continue;
      auto it = reasons.find({a, b});
      if (it == reasons.end()) it = reasons.emplace(std::pair{a, b}, reason_of(legality, plan, a, b)).first;
      plan.cuts.push_back(
          {input, node, it->second.code, it->second.detail, it->second.fused, it->second.now});
    }
  }
}

}  // namespace fusewise::fusion
