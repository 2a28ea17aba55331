// A legality check says whether a merged region can be one kernel; cost alone says whether it should be. Checks are
// small, one file each, in list.h from cheap to dear.
#pragma once

#include <vector>

#include "base/verdict.h"
#include "fusion/evaluate.h"
#include "fusion/partition.h"

namespace fusewise::fusion {

// Kernels beyond this size take longer to compile than they can save.
inline constexpr size_t most_region_nodes = 128;

// Two clusters that may become one.
struct Candidate {
  int a = -1, b = -1;         // clusters of the partition
  std::vector<NodeId> nodes;  // of both, sorted
  graph::Region region;
};

Candidate make_candidate(const PlanContext& context, const Partition& partition, int a, int b);

struct LegalityContext {
  const PlanContext& plan;
  const Partition& partition;
  Evaluator& evaluator;
};

// Reason codes: "alone", "once", "in-place", "assembled", "view" and those of PartCopy (assemblies.h), "barrier", "forbidden",
// "region-size", "cycle", "arguments", "gathered-operand", "scratch", "phases" and those of build_tree.
Verdict standing_alone(const Candidate& candidate, const LegalityContext& context);
Verdict assembled_parts(const Candidate& candidate, const LegalityContext& context);
Verdict once_separation(const Candidate& candidate, const LegalityContext& context);
Verdict user_constraints(const Candidate& candidate, const LegalityContext& context);
Verdict region_size(const Candidate& candidate, const LegalityContext& context);
Verdict convexity(const Candidate& candidate, const LegalityContext& context);
Verdict argument_count(const Candidate& candidate, const LegalityContext& context);
Verdict gathered_operand(const Candidate& candidate, const LegalityContext& context);
Verdict schedulable(const Candidate& candidate, const LegalityContext& context);
Verdict scratch_limit(const Candidate& candidate, const LegalityContext& context);

}  // namespace fusewise::fusion
