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

namespace {

// Per node: some reader needs all of its value. A table that is only gathered from is not read whole.
std::vector<bool> read_whole(const graph::Graph& graph) {
  std::vector<bool> whole(graph.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    const bool gathers = graph::kind_of(node.op) == graph::Kind::gather;
    for (size_t i = gathers ? 1 : 0; i < node.operands.size(); ++i) whole[node.operands[i].node] = true;
  }
  return whole;
}

}  // namespace

// Bytes are charged at the rate of the shared cache, wherever they come from: what is cached when a run begins is not
// known, and nothing outside a core's own caches is faster, so the bound holds in every case.
double lower_bound_microseconds(const GraphFacts& facts, const machine::Machine& machine, int threads) {
  double bytes = 0, flops = 0;
  const graph::Graph& graph = *facts.graph;
  const std::vector<bool> whole = read_whole(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op == graph::Op::result) continue;  // what a loop or a branch does is at least nothing
    if (!facts.at(id).has_form && !facts.at(id).alone) {
      if (whole[id]) bytes += facts.at(id).bytes;
    } else if (!facts.at(id).constant_only) {
      flops += facts.at(id).flops;
    }
  }
  for (const graph::GraphOutput& output : graph.outputs)
    if (facts.at(output.value.node).has_form) bytes += facts.at(output.value.node).bytes;
  const double per_microsecond = machine.gigahertz * 1e3, workers = std::max(threads, 1);
  const double compute = flops / (2 * machine.fma_per_cycle()) / per_microsecond / workers;
  return std::max(compute, bytes / machine.l3_bandwidth / per_microsecond / workers);
}

}  // namespace fusewise::cost
