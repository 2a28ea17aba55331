#include "cost/tree_price.h"

#include <algorithm>
#include <cmath>

#include "cost/tree_boxes.h"

namespace fusewise::cost {

Estimate price_tree(const schedule::RegionForms& forms, const schedule::Tree& tree,
                    const machine::Machine& machine, const CostOptions& options) {
  const TreeBoxes boxes(forms, tree, options.usual);
  Estimate estimate;
  estimate.phases = tree.phases;
  add_work(boxes, machine, estimate);
  add_traffic(boxes, machine, options, estimate);
  // The phase with the fewest tiles limits how many threads have something to do.
  std::vector<double> tiles(static_cast<size_t>(std::max(tree.phases, 1)), 0);
  for (int s = 0; s < boxes.stages(); ++s) {
    const schedule::Stage& stage = boxes.stage(s);
    if (stage.parent >= 0) continue;
    double n = 1;
    for (int l = 0; l < stage.grid_loops; ++l) n *= std::ceil(boxes.trips(s, l));
    tiles[static_cast<size_t>(stage.phase)] += n;
  }
  estimate.tiles = std::max(1.0, *std::min_element(tiles.begin(), tiles.end()));
  finish(estimate, machine, options.threads);
  return estimate;
}

}  // namespace fusewise::cost
