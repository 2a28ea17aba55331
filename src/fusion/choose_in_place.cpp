#include "fusion/choose_in_place.h"

#include <algorithm>
#include <limits>
#include <map>

#include "cost/constants.h"
#include "fusion/evaluate.h"
#include "fusion/layouts.h"
#include "schedule/footprint.h"
#include "schedule/memory_index.h"

namespace fusewise::fusion {

namespace {

// Chains of decisions longer than that are cut short: the plan as a whole still has to be cheaper.
constexpr int most_rounds = 6;
// The runtime's loop around the rows of a copy.
constexpr double cycles_per_row = 15;

bool in_blocks(const PlanOptions& options, Value v) {
  const auto layout = options.layouts.find(v);
  return layout != options.layouts.end() && !layout->second.blocks.empty();
}

bool can_be_whole(const graph::Graph& graph, const PlanOptions& options, const std::vector<bool>& late,
                  NodeId node) {
  const graph::Node& n = graph.node(node);
  if (n.op != graph::Op::concat || n.operands.size() < 2 || bits_of(n.results[0].element) % 8 != 0)
    return false;
  if (!can_be_in_place(graph, late, node)) return false;
  return !in_blocks(options, {node, 0}) &&
         std::none_of(n.operands.begin(), n.operands.end(), [&](Value v) { return in_blocks(options, v); });
}

// What would be left of a region without some of its nodes: parts between which the removed ones lie are kernels of
// their own, and so are parts that nothing connects.
class Rest {
 public:
  Rest(const PlanContext& context, const graph::Region& region, const std::set<NodeId>& removed) {
    std::map<NodeId, int> level;  // removed nodes on the way from another member
    std::map<NodeId, size_t> part;
    for (NodeId node : region.nodes) {
      if (!context.is_work(node)) continue;
      int own = 0;
      bool behind = false;
      for (NodeId input : context.inputs[node])
        if (const auto it = level.find(input); it != level.end()) {
          own = std::max(own, it->second + (removed.count(input) ? 1 : 0));
          behind = true;
        }
      if (removed.count(node)) {
        if (behind) level[node] = own;
        continue;
      }
      level[node] = own;
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

// Nodes of one region that move elements and hang together. Seeds are those that there is something to gain by; the others
// are on the way to what they read.
struct Motion {
  size_t region = 0;
  std::set<NodeId> nodes, seeds;
};

class Chooser {
 public:
  Chooser(const graph::Graph& graph, const PlanOptions& options, const std::set<NodeId>& always,
          const FusionPlan& plan, const cost::GraphFacts& facts)
      : graph_(graph),
        options_(options),
        always_(always),
        plan_(plan),
        facts_(facts),
        late_(sized_in_run(graph)),
        kept_(graph.size(), false) {
    for (const graph::GraphOutput& output : graph.outputs) kept_[output.value.node] = true;
  }

  std::set<NodeId> choose(MovePrices& prices) {
    for (size_t r = 0; r < plan_.regions.size(); ++r) {
      if (plan_.regions[r].once || plan_.regions[r].assembled) continue;
      for (NodeId node : plan_.regions[r].region.nodes) homes_[node].push_back(r);
      for (Value v : plan_.regions[r].region.outputs) users_[v].push_back(r);
      for (Value v : graph::region_inputs(graph_, plan_.regions[r].region)) users_[v].push_back(r);
      find_motions(r);
    }
    // Whether one pays depends on which others are there (a shared part is in place in one only): until all do.
    for (int round = 1; !motions_.empty(); ++round)
      if (!drop_dear_ones(prices, round >= most_rounds) || round > most_rounds) break;
    return all();
  }

 private:
  const graph::Graph& graph_;
  const PlanOptions& options_;
  const std::set<NodeId>& always_;
  const FusionPlan& plan_;
  const cost::GraphFacts& facts_;
  const std::vector<bool> late_;
  std::vector<bool> kept_;                       // outputs of the model
  std::map<NodeId, std::vector<size_t>> homes_;  // the regions that compute a node
  std::map<Value, std::vector<size_t>> users_;   // the regions that store or read a value
  std::vector<Motion> motions_;

  std::set<NodeId> all() const {
    std::set<NodeId> nodes = always_;
    for (const Motion& motion : motions_) nodes.insert(motion.nodes.begin(), motion.nodes.end());
    return nodes;
  }

  bool can_move(NodeId node) const {
    const graph::Node& n = graph_.node(node);
    return !facts_.at(node).constant_only && is_movable_view(graph_, node) &&
           can_be_in_place(graph_, late_, node) && !in_blocks(options_, {node, 0}) &&
           !in_blocks(options_, n.operands[0]);
  }

  // Concatenations; views that are kernels or make others divide; the views that those read.
  void find_motions(size_t r) {
    const graph::Region& region = plan_.regions[r].region;
    std::set<NodeId> moved, seeds;
    for (size_t i = region.nodes.size(); i-- > 0;) {
      const NodeId node = region.nodes[i];
      if (can_be_whole(graph_, options_, late_, node) ||
          ((!facts_.at(node).plain_view || kept_[node]) && can_move(node)))
        seeds.insert(node);
      if (seeds.count(node)) moved.insert(node);
      if (!moved.count(node)) continue;
      for (Value v : graph_.node(node).operands)
        if (graph::contains(region, v.node) && can_move(v.node)) moved.insert(v.node);
    }
    // Those that one leads to from another are chosen together.
    std::map<NodeId, NodeId> leader;
    const auto leader_of = [&](NodeId node) {
      while (leader.at(node) != node) node = leader.at(node);
      return node;
    };
    for (NodeId node : moved) {
      leader[node] = node;
      for (Value v : graph_.node(node).operands)
        if (moved.count(v.node)) leader[leader_of(v.node)] = node;
    }
    std::map<NodeId, Motion> motions;
    for (NodeId node : moved) {
      Motion& motion = motions.try_emplace(leader_of(node), Motion{r, {}, {}}).first->second;
      motion.nodes.insert(node);
      if (seeds.count(node)) motion.seeds.insert(node);
    }
    for (auto& [first, motion] : motions) motions_.push_back(std::move(motion));
  }

  // Of those that share a region, which price each other, one at a time goes: the dearest.
  bool drop_dear_ones(MovePrices& prices, bool all_at_once) {
    const PlanOptions changed = with_in_place(graph_, options_, all());
    const PlanContext context = make_context(graph_, changed, changed.constraints.stored_views, &facts_);
    Evaluator evaluator(context);
    std::map<size_t, std::optional<double>> rests;
    const auto rest_of = [&](size_t r) {
      const auto [it, fresh] = rests.try_emplace(r);
      if (fresh) it->second = price_rest(context, evaluator, r);
      return it->second;
    };
    std::vector<std::pair<double, size_t>> dear;  // loss, which one
    for (size_t m = 0; m < motions_.size(); ++m) {
      const Motion& motion = motions_[m];
      MovePrice price;
      bool possible = std::any_of(motion.seeds.begin(), motion.seeds.end(),
                                  [&](NodeId node) { return changed.assemblies.in_place(node); });
      for (NodeId node : motion.nodes) price.in_place += copy_microseconds(context, node);
      for (size_t r : affected(motion)) {
        const std::optional<double> rest = rest_of(r);
        possible = possible && rest;
        price.in_place += rest.value_or(0);
        price.apart += plan_.regions[r].predicted_microseconds;
      }
      if (!possible) {
        dear.emplace_back(-std::numeric_limits<double>::infinity(), m);
        continue;
      }
      for (NodeId node : motion.nodes) prices[node] = price;
      if (price.in_place > price.apart) dear.emplace_back(price.apart - price.in_place, m);
    }
    std::sort(dear.begin(), dear.end());
    std::set<size_t> changing, dropped;
    for (const auto& [gain, m] : dear) {
      const std::set<size_t> regions = affected(motions_[m]);
      const bool alone =
          std::none_of(regions.begin(), regions.end(), [&](size_t r) { return changing.count(r); });
      if (!alone && !all_at_once) continue;
      changing.insert(regions.begin(), regions.end());
      dropped.insert(m);
    }
    size_t index = 0;
    std::erase_if(motions_, [&](const Motion&) { return dropped.count(index++) != 0; });
    return !dropped.empty();
  }

  // The regions that change: that compute its nodes, and that store or read what they read or are.
  std::set<size_t> affected(const Motion& motion) const {
    std::set<size_t> regions = {motion.region};
    const auto add = [&](const auto& map, const auto& key) {
      if (const auto it = map.find(key); it != map.end())
        regions.insert(it->second.begin(), it->second.end());
    };
    for (NodeId node : motion.nodes) {
      add(homes_, node);
      add(users_, Value{node, 0});
      for (Value v : graph_.node(node).operands) add(users_, v);
    }
    return regions;
  }

  // Microseconds of a region without what is in place; nothing where that cannot be.
  std::optional<double> price_rest(const PlanContext& context, Evaluator& evaluator, size_t r) const {
    const graph::Region& region = plan_.regions[r].region;
    if (context.stands_alone(region.nodes[0])) return plan_.regions[r].predicted_microseconds;
    std::set<NodeId> removed;
    for (NodeId node : region.nodes) {
      const auto home = homes_.find(node);
      // A view that is stored now is stored once.
      const bool elsewhere =
          facts_.at(node).view && context.is_work(node) && home->second.front() != r &&
          std::none_of(region.outputs.begin(), region.outputs.end(), [&](Value v) { return v.node == node; });
      if (context.options->assemblies.in_place(node) || elsewhere) removed.insert(node);
    }
    double sum = 0;
    for (const std::vector<NodeId>& nodes : Rest(context, region, removed).parts) {
      const graph::Region part = region_of(context, nodes);
      if (part.outputs.empty()) continue;
      const Evaluated& evaluated = evaluator.evaluate(part);
      if (!evaluated.verdict) return std::nullopt;
      sum += evaluated.estimate.microseconds;
    }
    return sum;
  }
};

// Elements that lie one after the other on both sides of a copy.
double row_elements(const PlanContext& context, const PartCopy& copy) {
  const Shape& shape = context.graph->type(copy.part).shape;
  const auto it = context.options->layouts.find(copy.part);
  const schedule::Layout from =
      it == context.options->layouts.end() ? schedule::row_major(static_cast<int>(shape.size())) : it->second;
  if (!from.blocks.empty()) return 1;
  const std::vector<Dim> source = schedule::strides_of(from, shape),
                         target = schedule::strides_of(copy.to.memory, shape.size());
  const std::vector<int> order = schedule::with_strides(from.order, target, shape).order;
  Dim row = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const auto d = static_cast<size_t>(order[i]);
    if (shape[d].is(1)) continue;
    if (source[d] != row || target[d] != row) break;
    row = row * shape[d];
  }
  return static_cast<double>(schedule::usual_value(row, context.options->usual));
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
    sums.cycles += facts.elements / row_elements(context, copy) * cycles_per_row;
    sum += cost::price_closed_form(sums, context.options->machine, context.cost).microseconds;
  }
  return sum;
}

PlanOptions with_in_place(const graph::Graph& graph, const PlanOptions& options,
                          const std::set<NodeId>& nodes) {
  PlanOptions result = options;
  if (nodes.empty()) return result;
  result.assemblies = place_in_memory(graph, nodes, constant_only(graph), options.layouts, options.appends);
  result.layouts = with_places(options.layouts, graph, result.assemblies);
  // What is in place is no part of a kernel, and neither is what it reads (views, iotas): that lies in memory.
  const auto store = [&](Value v) {
    if (graph::has_form(graph, v.node)) result.constraints.stored_views.insert(v.node);
  };
  for (const auto* in_place : {&result.assemblies.wholes, &result.assemblies.views})
    for (NodeId node : *in_place) {
      store({node, 0});
      for (Value operand : graph.node(node).operands) store(operand);
    }
  return result;
}

std::set<NodeId> choose_in_place(const graph::Graph& graph, const PlanOptions& options,
                                 const std::set<NodeId>& always, const FusionPlan& plan,
                                 const cost::GraphFacts& facts, MovePrices& prices) {
  return Chooser(graph, options, always, plan, facts).choose(prices);
}

}  // namespace fusewise::fusion
