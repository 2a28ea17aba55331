#include "fusion/plan.h"

#include <algorithm>

namespace fusewise::fusion {

KernelCounts count_kernels(const FusionPlan& plan) {
  KernelCounts counts;
  for (const PlannedRegion& region : plan.regions) {
    for (const FusionPlan& body : region.bodies) {
      const KernelCounts inside = count_kernels(body);
      counts.groups += inside.groups;
      counts.kernels += inside.kernels;
      counts.once += inside.once;
      counts.phases += inside.phases;
    }
    if (!region.bodies.empty()) continue;
    ++counts.groups;
    if (region.assembled) continue;
    int last = 0;
    for (const schedule::StageChoice& stage : region.schedule.stages) last = std::max(last, stage.phase);
    ++(region.once ? counts.once : counts.kernels);
    counts.phases += region.once ? 0 : last + 1;
  }
  return counts;
}

}  // namespace fusewise::fusion
