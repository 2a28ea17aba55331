#include "cost/closed_form.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cost/constants.h"

namespace fusewise::cost {

using graph::NodeId;
using graph::Value;

int home_level(double bytes, bool constant, const machine::Machine& machine, const CostOptions& options) {
  const double shared = static_cast<double>(machine.l3_bytes) * cache_share;
  if (constant)
    return options.constant_bytes <= static_cast<double>(machine.l2_bytes) * cache_share ? 2
           : options.constant_bytes <= shared                                            ? 3
                                                                                         : 4;
  if (bytes <= static_cast<double>(machine.l2_bytes) * cache_share * std::max(options.threads, 1)) return 2;
  return bytes <= shared ? 3 : 4;
}

void RegionSums::add_value(double bytes, bool constant, const machine::Machine& machine,
                           const CostOptions& options, double sign) {
  const int level = home_level(bytes, constant, machine, options);
  (level == 2 ? bytes_l2 : level == 3 ? bytes_l3 : bytes_memory) += sign * bytes;
}

Estimate price_closed_form(const RegionSums& sums, const machine::Machine& machine,
                           const CostOptions& options) {
  Estimate e;
  e.cycles.vector = sums.cycles;
  e.flops = sums.flops;
  e.l1_bytes = sums.bytes_l2 + sums.bytes_l3 + sums.bytes_memory;
  e.l2_bytes = sums.bytes_l3 + sums.bytes_memory;
  e.l3_bytes = sums.bytes_memory;
  // A tile is worth about ten thousand cycles; small regions do not fill the threads.
  const double work = std::max(sums.cycles, e.l1_bytes / machine.l2_bandwidth);
  e.tiles = std::clamp(std::floor(work / 1e4), 1.0, 8.0 * std::max(options.threads, 1));
  finish(e, machine, options.threads);
  return e;
}

Estimate price_closed_form(const GraphFacts& facts, const graph::Region& region,
                           const machine::Machine& machine, const CostOptions& options) {
  RegionSums sums;
  for (NodeId node : region.nodes) {
    sums.cycles += facts.at(node).cycles;
    sums.flops += facts.at(node).flops;
  }
  for (Value v : graph::region_inputs(*facts.graph, region))
    sums.add_value(facts.at(v.node).bytes, facts.at(v.node).constant_only, machine, options);
  for (Value v : region.outputs) sums.add_value(facts.at(v.node).bytes, false, machine, options);
  return price_closed_form(sums, machine, options);
}

}  // namespace fusewise::cost
