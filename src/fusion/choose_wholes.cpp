#include "fusion/choose_wholes.h"

#include <algorithm>
#include <map>

#include "cost/constants.h"
#include "fusion/evaluate.h"
#include "fusion/layouts.h"

namespace fusewise::fusion {

namespace {

// Chains of decisions longer than that are cut short: the plan as a whole still has to be cheaper.
constexpr int most_rounds = 6;

bool can_be_whole(const graph::Graph& graph, const PlanOptions& options, const std::vector<bool>& late,
                  NodeId node) {
  const graph::Node& n = graph.node(node);
  if (n.op != graph::Op::concat || n.operands.size() < 2 || bits_of(n.results[0].element) % 8 != 0)
    return false;
  if (!can_be_assembled(graph, late, node)) return false;
  const auto blocked = [&](Value v) {
    const auto layout = options.layouts.find(v);
    return layout != options.layouts.end() && !layout->second.blocks.empty();
  };
  return !blocked({node, 0}) && std::none_of(n.operands.begin(), n.operands.end(), blocked);
}

// What would be left of a region without some of its nodes: parts between which the removed ones lie are kernels of
// their own, and so are parts that nothing connects.
class Rest {
 public:
  Rest(const PlanContext& context, const graph::Region& region, const std::set<NodeId>& removed) {
    std::map<NodeId, int> level;  // removed nodes on the way
    std::map<NodeId, size_t> part;
    for (NodeId node : region.nodes) {
      if (!context.is_work(node)) continue;
      int own = 0;
      for (NodeId input : context.inputs[node])
        if (const auto it = level.find(input); it != level.end())
          own = std::max(own, it->second + (removed.count(input) ? 1 : 0));
      level[node] = own;
      if (removed.count(node)) continue;
      part[node] = parts.size();
      parts.push_back({node});
      for (NodeId input : context.inputs[node])
        if (const auto it = part.find(input); it != part.end() && level[input] == own)
          join(part, it->second, part[node]);
    }
    std::erase_if(parts, [](const std::vector<NodeId>& nodes) { return nodes.empty(); });
    for (auto& nodes : parts) std::sort(nodes.begin(), nodes.end());
  }

  std::vector<std::vector<NodeId>> parts;

 private:
  void join(std::map<NodeId, size_t>& part, size_t into, size_t from) {
    if (into == from) return;
    for (NodeId node : parts[from]) part[node] = into;
    parts[into].insert(parts[into].end(), parts[from].begin(), parts[from].end());
    parts[from].clear();
  }
};

// Microseconds of the region with these concatenations put together in place; nothing where that cannot be.
std::optional<double> price_without(const PlanContext& context, Evaluator& evaluator,
                                    const graph::Region& region, const std::set<NodeId>& wholes) {
  double sum = 0;
  for (NodeId whole : wholes) sum += copy_microseconds(context, whole);
  for (const std::vector<NodeId>& nodes : Rest(context, region, wholes).parts) {
    const Evaluated& evaluated = evaluator.evaluate(region_of(context, nodes));
    if (!evaluated.verdict) return std::nullopt;
    sum += evaluated.estimate.microseconds;
  }
  return sum;
}

}  // namespace

double copy_microseconds(const PlanContext& context, NodeId whole) {
  double sum = 0;
  for (const PartCopy& copy : context.options->assemblies.copies) {
    if (copy.whole != whole || copy.reason == "part-grown") continue;
    cost::RegionSums sums;
    const cost::NodeFacts& facts = context.facts.at(copy.part.node);
    sums.add_value(facts.bytes, facts.constant_only, context.options->machine, context.cost);
    sums.add_value(facts.bytes, false, context.options->machine, context.cost);
    // Between layouts element by element.
    if (copy.reason == "part-layout")
      sums.cycles += facts.elements * (cost::load_cycles + cost::store_cycles);
    sum += cost::price_closed_form(sums, context.options->machine, context.cost).microseconds;
  }
  return sum;
}

PlanOptions with_wholes(const graph::Graph& graph, const PlanOptions& options,
                        const std::set<NodeId>& wholes) {
  PlanOptions result = options;
  if (wholes.empty()) return result;
  result.assemblies = place_parts(graph, wholes, constant_only(graph), options.layouts, options.appends);
  result.layouts = with_places(options.layouts, graph, result.assemblies);
  // Parts that would be free inside of their readers (views, iotas) are stored: where they belong.
  for (NodeId whole : result.assemblies.wholes)
    for (Value part : graph.node(whole).operands)
      if (graph::has_form(graph, part.node)) result.constraints.stored_views.insert(part.node);
  return result;
}

std::set<NodeId> choose_wholes(const graph::Graph& graph, const PlanOptions& options,
                               const std::set<NodeId>& always, const FusionPlan& plan,
                               const cost::GraphFacts& facts) {
  const std::vector<bool> late = sized_in_run(graph);
  std::map<size_t, std::set<NodeId>> chosen;  // by region
  for (size_t r = 0; r < plan.regions.size(); ++r)
    for (NodeId node : plan.regions[r].region.nodes)
      if (!plan.regions[r].once && !plan.regions[r].assembled && can_be_whole(graph, options, late, node))
        chosen[r].insert(node);
  const auto all = [&] {
    std::set<NodeId> wholes = always;
    for (const auto& [region, nodes] : chosen) wholes.insert(nodes.begin(), nodes.end());
    return wholes;
  };
  // Whether one pays depends on which others are there (a shared part is in place in one only): until all do.
  bool changed = true;
  for (int round = 0; changed && round < most_rounds && !chosen.empty(); ++round) {
    const PlanOptions changed_options = with_wholes(graph, options, all());
    const PlanContext context =
        make_context(graph, changed_options, changed_options.constraints.stored_views, &facts);
    Evaluator evaluator(context);
    changed = std::erase_if(chosen, [&](const auto& entry) {
                const PlannedRegion& now = plan.regions[entry.first];
                const auto price = price_without(context, evaluator, now.region, entry.second);
                return !price || *price > now.predicted_microseconds;
              }) > 0;
  }
  return all();
}

}  // namespace fusewise::fusion
