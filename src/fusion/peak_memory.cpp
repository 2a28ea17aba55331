#include "fusion/peak_memory.h"

#include <algorithm>
#include <unordered_map>

namespace fusewise::fusion {

namespace {

using graph::NodeId;
using graph::Value;

struct Life {
  size_t first = 0, last = 0;
};

}  // namespace

double peak_bytes(const graph::Graph& graph, const FusionPlan& plan, const cost::GraphFacts& facts) {
  std::vector<bool> is_output(graph.size(), false);
  for (const graph::GraphOutput& output : graph.outputs) is_output[output.value.node] = true;
  const auto host = [&](Value v) {
    const auto it = plan.assemblies.places.find(v);
    return it == plan.assemblies.places.end() ? v.node : it->second.host.node;
  };
  std::unordered_map<NodeId, Life> lives;
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    if (plan.regions[r].once) continue;
    for (Value v : plan.regions[r].region.outputs)
      if (!is_output[host(v)]) lives.try_emplace(host(v), Life{r, r}).first->second.last = r;
    for (Value v : graph::region_inputs(graph, plan.regions[r].region))
      if (const auto it = lives.find(host(v)); it != lives.end()) it->second.last = r;
  }
  std::vector<double> change(plan.regions.size() + 1, 0);
  for (const auto& [node, life] : lives) {
    change[life.first] += facts.at(node).bytes;
    change[life.last + 1] -= facts.at(node).bytes;
  }
  double alive = 0, most = 0;
  for (const double bytes : change) {
    alive += bytes;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace fusewise::fusion
