#include "cost/tree_price.h"

#include <algorithm>
#include <cmath>

#include "cost/tree_boxes.h"

namespace fusewise::cost {

namespace {

// One phase by itself: how many tiles it has limits how many threads have something to do.
Estimate price_phase(const TreeBoxes& boxes, int phase, const machine::Machine& machine,
                     const CostOptions& options) {
  Estimate estimate;
  add_work(boxes, phase, machine, estimate);
  add_traffic(boxes, phase, machine, options, estimate);
  double tiles = 0;
  for (int s = 0; s < boxes.stages(); ++s) {
    const schedule::Stage& stage = boxes.stage(s);
    if (stage.parent >= 0 || stage.phase != phase) continue;
    double n = 1;
    for (int l = 0; l < stage.grid_loops; ++l) n *= std::ceil(boxes.trips(s, l));
    tiles += n;
  }
  estimate.tiles = std::max(1.0, tiles);
  finish(estimate, machine, options.threads);
  return estimate;
}

}  // namespace

Estimate price_tree(const schedule::RegionForms& forms, const schedule::Tree& tree,
                    const machine::Machine& machine, const CostOptions& options) {
  const TreeBoxes boxes(forms, tree, options.usual);
  Estimate estimate = price_phase(boxes, 0, machine, options);
  for (int phase = 1; phase < tree.phases; ++phase)
    add_phase(estimate, price_phase(boxes, phase, machine, options));
  return estimate;
}

}  // namespace fusewise::cost
