// Tier 0 of the price: a closed form over sums that a planner keeps as it merges; no tiles, no maps.
#pragma once

#include "cost/facts.h"
#include "graph/region.h"

namespace fusewise::cost {

struct CostOptions {
  int threads = 1;
  SymbolValues usual;
  double constant_bytes = 0;  // of the whole model: what does not fit a cache is read from memory
};

// What a region adds up to: cycles of its members in whole vectors, bytes of the values at its border.
struct RegionSums {
  double cycles = 0;
  double bytes_l2 = 0, bytes_l3 = 0, bytes_memory = 0;  // by the level in which the value lies
  double flops = 0;
  void add_value(double bytes, bool constant, const machine::Machine& machine, const CostOptions& options,
                 double sign = 1);
};

Estimate price_closed_form(const RegionSums& sums, const machine::Machine& machine,
                           const CostOptions& options);

// The same for any region of a graph.
Estimate price_closed_form(const GraphFacts& facts, const graph::Region& region,
                           const machine::Machine& machine, const CostOptions& options);

// The level in which a value of that size is found by a kernel that runs a while after its producer: 2, 3 or 4
// (memory).
int home_level(double bytes, bool constant, const machine::Machine& machine, const CostOptions& options);

}  // namespace fusewise::cost
