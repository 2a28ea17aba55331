// Whether a region can be one kernel, its schedule and its price: asked for many regions, found once for regions of
// equal structure.
#pragma once

#include <unordered_map>

#include "base/hash.h"
#include "base/verdict.h"
#include "cost/estimate.h"
#include "fusion/context.h"
#include "fusion/tiles/choose_schedule.h"

namespace fusewise::fusion {

struct Evaluated {
  Verdict verdict = Verdict::allow();
  schedule::Schedule schedule;  // node ids are positions in the region's sorted nodes
  cost::Estimate estimate;
};

class Evaluator {
 public:
  explicit Evaluator(const PlanContext& context) : context_(context) {}

  const Evaluated& evaluate(const graph::Region& region, int64_t grid_tile = 0);
  // Known already, or null: asks nothing dear.
  const Evaluated* known(const graph::Region& region, int64_t grid_tile = 0) const;
  int64_t evaluations() const { return static_cast<int64_t>(memo_.size()); }

 private:
  bool better_form(const cost::Estimate& other, const cost::Estimate& best) const;
  Evaluated with_tiles(const schedule::RegionForms& forms, const TileOptions& tiles);
  void try_other_vectors(const schedule::RegionForms& forms, TileOptions tiles,
                         const schedule::Schedule& schedule, Evaluated& best);
  void try_reduction_forms(const schedule::RegionForms& forms, const TileOptions& tiles,
                           schedule::Schedule schedule, Evaluated& best);

  const PlanContext& context_;
  std::unordered_map<Hash128, Evaluated> memo_;
};

// The price of a given schedule of a region, or the reason why it is refused.
Evaluated evaluate_schedule(const PlanContext& context, const graph::Region& region,
                            const schedule::Schedule& schedule);

// The schedule with positions replaced by the region's nodes, and back.
schedule::Schedule with_nodes(const schedule::Schedule& schedule, const graph::Region& region);
schedule::Schedule with_positions(const schedule::Schedule& schedule, const graph::Region& region);

// Equal for regions that compute the same function from values of the same types and layouts.
Hash128 structure_of(const PlanContext& context, const graph::Region& region, int64_t grid_tile = 0);

}  // namespace fusewise::fusion
