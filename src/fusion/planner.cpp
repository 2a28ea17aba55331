#include "fusion/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "cost/lower_bound.h"
#include "fusion/choose_in_place.h"
#include "fusion/cuts.h"
#include "fusion/layouts.h"
#include "fusion/peak_memory.h"
#include "fusion/search/search.h"
#include "schedule/footprint.h"

namespace fusewise::fusion {

namespace {

// Gains below this share are within what the model cannot tell apart.
constexpr double least_split_gain = 0.01;
// A view is stored only for a clear gain: storing it takes memory, and the whole plan is made again.
constexpr double least_view_gain = 0.1;
// A whole lives as long as its first part: putting it together in place may take that much more memory at once.
constexpr double most_memory_growth = 1.1;

// Iterations to reckon with where their number depends on data.
constexpr double usual_trips = 16;
// What the runtime does for an iteration or a branch, in microseconds.
constexpr double control_microseconds = 0.05;

using BodyPlans = std::map<NodeId, std::vector<FusionPlan>>;

// A plan with the reasons of its cut edges, or no more of it than its price.
enum class Wanted : uint8_t { plan, price };

class Planner {
 public:
  Planner(const PlanContext& context, std::set<NodeId>& stored, const BodyPlans& bodies, Wanted wanted)
      : context_(context),
        wanted_(wanted),
        stored_(stored),
        bodies_(bodies),
        partition_(context),
        evaluator_(context),
        legality_{context, partition_, evaluator_},
        fixed_(context.graph->size(), false) {
    for (const auto& [control, plans] : bodies) fixed_[control] = true;
  }

  // Nothing when a view had to be stored after all (it is in `stored` now): start over.
  std::optional<FusionPlan> plan() {
    plan_.mode = context_.options->mode;
    plan_.layouts = context_.options->layouts;
    plan_.assemblies = context_.options->assemblies;
    plan_.appends = context_.options->appends;
    plan_.machine = context_.options->machine.name;
    plan_.notes = context_.options->constraints.notes;
    for (const auto* nodes : {&plan_.assemblies.wholes, &plan_.assemblies.views})
      for (NodeId node : *nodes) fixed_[node] = true;
    apply_groups();
    search();
    for (int cluster : partition_.order()) finish(cluster);
    if (restart_) return std::nullopt;
    if (wanted_ == Wanted::price) return std::move(plan_);
    sort_regions();
    plan_.candidates += evaluator_.evaluations();
    add_cuts(context_, partition_, evaluator_, plan_);
    return std::move(plan_);
  }

 private:
  const PlanContext& context_;
  Wanted wanted_;
  std::set<NodeId>& stored_;
  const BodyPlans& bodies_;
  Partition partition_;
  Evaluator evaluator_;
  LegalityContext legality_;
  std::vector<bool> fixed_;
  FusionPlan plan_;
  bool restart_ = false;
  std::map<NodeId, const GroupConstraint*> group_of_;

  void apply_groups() {
    for (const GroupConstraint& group : context_.options->constraints.groups) {
      std::vector<NodeId> nodes;
      for (NodeId node : group.nodes)
        if (context_.is_work(node) && !context_.stands_alone(node)) nodes.push_back(node);
      if (!group.schedule) leave_out_constants(nodes);
      if (nodes.empty()) continue;
      Candidate whole;
      whole.nodes = nodes;
      whole.region = region_of(context_, nodes);
      Verdict verdict = is_legal(whole, legality_, !group.schedule && group.grid_tile == 0);
      if (verdict && group.schedule)
        verdict = evaluate_schedule(context_, whole.region, *group.schedule).verdict;
      if (verdict && !group.schedule && group.grid_tile > 0)
        verdict = evaluator_.evaluate(whole.region, group.grid_tile).verdict;
      if (verdict) verdict = merge_all(nodes);
      if (!verdict)
        throw UserError(
            fmt::format("group '{}' cannot be one kernel: {} [{}]", group.name, verdict.detail, verdict.code),
            {.node = describe(*context_.graph, nodes.front())});
      for (NodeId node : nodes) {
        fixed_[node] = group.pin;
        group_of_[node] = &group;
      }
    }
  }

  // A group of model nodes means what runs each time, not the packing of their weights.
  void leave_out_constants(std::vector<NodeId>& nodes) const {
    const auto once = [&](NodeId node) { return context_.is_once(node); };
    if (!std::all_of(nodes.begin(), nodes.end(), once)) std::erase_if(nodes, once);
  }

  Verdict merge_all(const std::vector<NodeId>& nodes) {
    // Several rounds: a pair that closes a cycle through a third member can merge once that one is inside.
    for (size_t round = 0; round < nodes.size(); ++round) {
      int first = partition_.cluster_of(nodes[0]);
      bool all = true, progress = false;
      for (NodeId node : nodes) {
        const int own = partition_.cluster_of(node);
        if (own == first) continue;
        if (fixed_[node])
          return Verdict::forbid("pinned", "one of its nodes belongs to another group already", {node});
        if (partition_.would_cycle(first, own)) {
          all = false;
          continue;
        }
        first = partition_.merge(first, own);
        progress = true;
      }
      if (all) return Verdict::allow();
      if (!progress) break;
    }
    return Verdict::forbid("cycle", "a node outside the group lies between its members", nodes);
  }

  void search() {
    switch (context_.options->mode) {
      case FusionMode::off:
        plan_.search = "off";
        break;
      case FusionMode::operators:
        plan_.search = "operators";
        plan_.operators_split = group_operators(partition_, legality_, fixed_);
        break;
      case FusionMode::on: {
        const SearchResult result = search_greedy(partition_, legality_, fixed_);
        plan_.search_complete = result.complete;
        if (!result.complete)
          plan_.notes.push_back("the budget of regions ended the search; what came later was not priced");
        plan_.candidates = result.candidates;
        break;
      }
    }
  }

  // A cluster that turns out to have no kernel is taken apart into what it was merged from, which keeps the quotient
  // acyclic.
  void finish(int cluster) {
    std::vector<int> work = {cluster};
    while (!work.empty()) {
      const int c = work.back();
      work.pop_back();
      const std::vector<NodeId> nodes = partition_.nodes_of_part(c);
      if (plan_.assemblies.in_place(nodes.front())) {
        add_in_place(nodes.front());
        continue;
      }
      if (context_.is_control(nodes.front())) {
        add_control(nodes.front());
        continue;
      }
      if (context_.stands_alone(nodes.front())) {
        add_alone(nodes.front());
        continue;
      }
      const auto group = group_of_.find(nodes.front());
      const GroupConstraint* constraint = group == group_of_.end() ? nullptr : group->second;
      const graph::Region region = region_of(context_, nodes);
      Evaluated evaluated;
      if (constraint && constraint->schedule && region.nodes.size() >= constraint->nodes.size() &&
          constraint->pin)
        evaluated = evaluate_schedule(context_, region, *constraint->schedule);
      else
        evaluated = evaluator_.evaluate(region, constraint ? constraint->grid_tile : 0);
      const auto [first, second] = partition_.parts(c);
      const bool free_to_split = first >= 0 && !(constraint && constraint->pin);
      if (evaluated.verdict && free_to_split && cheaper_apart(nodes, evaluated, first, second)) {
        if (plan_.mode == FusionMode::operators && c == cluster) ++plan_.operators_split;
        work.push_back(second);
        work.push_back(first);
      } else if (evaluated.verdict && !constraint && store_dear_views(region, evaluated)) {
        restart_ = true;
      } else if (evaluated.verdict) {
        add_region(region, evaluated, constraint);
      } else if (free_to_split) {
        work.push_back(second);
        work.push_back(first);
      } else {
        store_views(nodes, evaluated.verdict);
      }
    }
  }

  // Merges were priced one by one; what came later may have spoilt an earlier one. Elementwise chains cannot be spoilt.
  bool cheaper_apart(const std::vector<NodeId>& nodes, const Evaluated& together, int first, int second) {
    const bool plain = std::none_of(nodes.begin(), nodes.end(), [&](NodeId n) {
      const cost::NodeFacts& facts = context_.facts.at(n);
      return facts.accumulates || facts.pieces || facts.gathers;
    });
    if (plain || evaluator_.evaluations() >= context_.options->budget) return false;
    double apart = 0;
    for (int part : {first, second}) {
      const Evaluated& evaluated = evaluator_.evaluate(region_of(context_, partition_.nodes_of_part(part)));
      if (!evaluated.verdict) return false;
      apart += evaluated.estimate.microseconds;
    }
    return apart < together.estimate.microseconds * (1 - least_split_gain);
  }

  // A view inside a reduction or contraction is read over and over in an order that may not suit: where a kernel that
  // stores it first is cheaper by far, it gets one.
  bool store_dear_views(const graph::Region& region, const Evaluated& inside) {
    const bool accumulates = std::any_of(region.nodes.begin(), region.nodes.end(),
                                         [&](NodeId n) { return context_.facts.at(n).accumulates; });
    if (!accumulates || evaluator_.evaluations() >= context_.options->budget) return false;
    bool found = false;
    for (NodeId view : region.nodes) {
      const cost::NodeFacts& facts = context_.facts.at(view);
      if (!context_.free[view] || facts.widens || facts.constant_only || !read_by_work(region, view))
        continue;
      const graph::Region stored = view_region(region, view);
      const Evaluated& first = evaluator_.evaluate(stored);
      const Evaluated& rest = evaluator_.evaluate(without_view(region, view));
      if (!first.verdict || !rest.verdict) continue;
      const double apart = first.estimate.microseconds + rest.estimate.microseconds;
      if (apart < inside.estimate.microseconds * (1 - least_view_gain))
        found = stored_.insert(view).second || found;
    }
    return found;
  }

  bool read_by_work(const graph::Region& region, NodeId view) const {
    return std::any_of(region.nodes.begin(), region.nodes.end(), [&](NodeId n) {
      const auto& operands = context_.graph->node(n).operands;
      return !context_.free[n] &&
             std::any_of(operands.begin(), operands.end(), [&](Value v) { return v.node == view; });
    });
  }

  // The kernel that stores a view: it and the free views above it.
  graph::Region view_region(const graph::Region& region, NodeId view) const {
    graph::Region result;
    result.nodes.assign(context_.views[view].begin(), context_.views[view].end());
    std::erase_if(result.nodes, [&](NodeId n) { return !graph::contains(region, n); });
    result.nodes.push_back(view);
    result.outputs = {{view, 0}};
    return result;
  }

  // The region as it reads the stored view; views that only that one needed are gone.
  graph::Region without_view(const graph::Region& region, NodeId view) const {
    graph::Region result = region;
    std::erase(result.nodes, view);
    for (size_t i = result.nodes.size(); i-- > 0;) {
      const NodeId n = result.nodes[i];
      if (!context_.free[n]) continue;
      const bool used = std::any_of(result.nodes.begin(), result.nodes.end(), [&](NodeId reader) {
        const auto& operands = context_.graph->node(reader).operands;
        return std::any_of(operands.begin(), operands.end(), [&](Value v) { return v.node == n; });
      });
      if (!used) result.nodes.erase(result.nodes.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return result;
  }

  void add_control(NodeId control) {
    PlannedRegion planned;
    planned.region = region_of(context_, std::vector<NodeId>{control});
    planned.bodies = bodies_.at(control);
    const graph::Node& node = context_.graph->node(control);
    double price = 0;
    for (const FusionPlan& body : planned.bodies) {
      price += body.predicted_microseconds / static_cast<double>(planned.bodies.size());
      plan_.candidates += body.candidates;
      plan_.search_complete = plan_.search_complete && body.search_complete;
      plan_.operators_split += body.operators_split;
    }
    double trips = 1;
    if (node.op == graph::Op::loop) {
      const std::optional<Dim>& most = graph::attributes<graph::LoopAttributes>(node).trips;
      trips = most ? static_cast<double>(schedule::usual_value(*most, context_.options->usual)) : usual_trips;
    }
    planned.predicted_microseconds = trips * (price + control_microseconds);
    add(std::move(planned));
  }

  void add_region(const graph::Region& region, const Evaluated& evaluated,
                  const GroupConstraint* constraint) {
    PlannedRegion planned;
    planned.predicted_microseconds = evaluated.estimate.microseconds;
    planned.once = context_.is_once(region.outputs.front().node);
    if (wanted_ == Wanted::price) return add(std::move(planned));
    planned.region = region;
    planned.schedule = with_nodes(evaluated.schedule, region);
    for (Value v : region.outputs) planned.parallel_from += context_.facts.at(v.node).elements;
    planned.parallel_from *=
        cost::serial_share(evaluated.estimate, context_.options->machine, context_.options->threads);
    planned.fork_join_microseconds =
        cost::fork_join_microseconds(evaluated.estimate, context_.options->machine);
    planned.pinned = constraint && constraint->pin;
    if (constraint) planned.measured_microseconds = constraint->measured_microseconds;
    add(std::move(planned));
  }

  void add(PlannedRegion planned) {
    if (!planned.once) plan_.predicted_microseconds += planned.predicted_microseconds;
    if (wanted_ == Wanted::plan) plan_.regions.push_back(std::move(planned));
  }

  // It may run once its operands are there, and those who read it behind it; but it has no kernel.
  void add_in_place(NodeId node) {
    PlannedRegion planned;
    planned.region.nodes = {node};
    planned.region.outputs = {{node, 0}};
    planned.assembled = true;
    planned.predicted_microseconds = copy_microseconds(context_, node);
    add(std::move(planned));
  }

  void add_alone(NodeId node) {
    PlannedRegion planned;
    planned.region.nodes = {node};
    for (uint32_t i = 0; i < context_.graph->node(node).results.size(); ++i)
      planned.region.outputs.push_back({node, i});
    planned.once = context_.is_once(node);
    planned.predicted_microseconds =
        cost::price_closed_form(context_.facts, planned.region, context_.options->machine, context_.cost)
            .microseconds;
    add(std::move(planned));
  }

  // A primitive that cannot be computed through the views it reads gets them stored.
  void store_views(const std::vector<NodeId>& nodes, const Verdict& verdict) {
    bool found = false;
    for (NodeId node : nodes)
      for (NodeId view : context_.views[node]) found = stored_.insert(view).second || found;
    if (!found)
      throw UnsupportedError(fmt::format("not supported yet: no kernel for {}: {} [{}]",
                                         describe(*context_.graph, nodes.front()), verdict.detail,
                                         verdict.code));
    restart_ = true;
  }

  // A loop may have no results.
  static NodeId first_output(const graph::Region& region) {
    return region.outputs.empty() ? region.nodes.front() : region.outputs.front().node;
  }

  // Producers first; among those that are ready, the one whose first output comes first in the graph.
  void sort_regions() {
    const size_t count = plan_.regions.size();
    std::vector<int> writer(context_.graph->size(), -1);
    for (size_t r = 0; r < count; ++r)
      for (Value v : plan_.regions[r].region.outputs) writer[v.node] = static_cast<int>(r);
    std::vector<std::vector<size_t>> next(count);
    std::vector<int> waits(count, 0);
    for (size_t r = 0; r < count; ++r) {
      std::set<int> from;
      for (Value v : graph::region_inputs(*context_.graph, plan_.regions[r].region))
        if (writer[v.node] >= 0) from.insert(writer[v.node]);
      for (NodeId node : plan_.regions[r].region.nodes)  // and who binds the symbols that it speaks of
        for (NodeId input : context_.inputs[node])
          if (writer[input] >= 0 && writer[input] != static_cast<int>(r)) from.insert(writer[input]);
      waits[r] = static_cast<int>(from.size());
      for (int f : from) next[static_cast<size_t>(f)].push_back(r);
    }
    using Ready = std::pair<NodeId, size_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    const auto offer = [&](size_t r) { ready.push({first_output(plan_.regions[r].region), r}); };
    for (size_t r = 0; r < count; ++r)
      if (waits[r] == 0) offer(r);
    std::vector<PlannedRegion> sorted;
    while (!ready.empty()) {
      const size_t r = ready.top().second;
      ready.pop();
      sorted.push_back(std::move(plan_.regions[r]));
      for (size_t n : next[r])
        if (--waits[n] == 0) offer(n);
    }
    check(sorted.size() == count, "the quotient of a plan has a cycle");
    plan_.regions = std::move(sorted);
  }
};

}  // namespace

namespace {

FusionPlan plan_once(const graph::Graph& graph, const PlanOptions& options, const cost::GraphFacts& facts,
                     const BodyPlans& bodies, Wanted wanted) {
  std::set<NodeId> stored = options.constraints.stored_views;
  for (size_t round = 0; round <= graph.size(); ++round) {
    const PlanContext context = make_context(graph, options, stored, &facts);
    if (auto plan = Planner(context, stored, bodies, wanted).plan()) return std::move(*plan);
  }
  throw InternalError("the planner does not come to an end");
}

// Bodies are nested no deeper than graph::deepest_body.
BodyPlans plan_bodies(const graph::Graph& graph, const PlanOptions& options) {
  BodyPlans plans;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const std::vector<graph::Body>& bodies = graph.node(id).bodies;
    const auto constraints = options.constraints.bodies.find(id);
    for (size_t b = 0; b < bodies.size(); ++b) {
      PlanOptions inside = options;
      inside.constraints = {};
      inside.appends.clear();
      if (constraints != options.constraints.bodies.end() && b < constraints->second.size())
        inside.constraints = constraints->second[b];
      settle_layouts(*bodies[b], inside);
      plans[id].push_back(make_plan(*bodies[b], inside));
    }
  }
  return plans;
}

// `facts`: of the graph.
FusionPlan best_plan(const graph::Graph& graph, const PlanOptions& options, const cost::GraphFacts& facts) {
  const BodyPlans bodies = plan_bodies(graph, options);
  std::set<NodeId> always = options.constraints.assembled;
  for (const Append& append : options.appends) always.insert(append.whole.node);
  const std::vector<bool> late = sized_in_run(graph);
  for (NodeId node : always)
    if (!can_be_in_place(graph, late, node))
      throw UnsupportedError(
          "not supported yet: only the run knows a size of " + describe(graph, node) +
          ", which therefore cannot be put together in place; leave it out of the plan file");
  const auto planned = [&](FusionMode mode, const std::set<NodeId>& in_place, Wanted wanted) {
    PlanOptions changed = with_in_place(graph, options, in_place);
    changed.mode = mode;
    return plan_once(graph, changed, facts, bodies, wanted);
  };
  FusionPlan plan = planned(options.mode, always, Wanted::plan);
  if (options.mode != FusionMode::on || !options.constraints.groups.empty()) return plan;
  // The same plan with what moves elements in place, if that is cheaper.
  const auto moved = [&](FusionMode mode, FusionPlan first) {
    if (!options.assemble) return first;
    MovePrices prices;
    const std::set<NodeId> in_place = choose_in_place(graph, options, always, first, facts, prices);
    if (in_place != always) {
      FusionPlan assembled = planned(mode, in_place, Wanted::plan);
      assembled.candidates += first.candidates;
      const double memory = peak_bytes(graph, first, facts), then = peak_bytes(graph, assembled, facts);
      if (then > memory * most_memory_growth)
        first.notes.push_back(
            "concatenations and views are not put in place: that would take more memory at once");
      else if (assembled.predicted_microseconds <= first.predicted_microseconds)
        first = std::move(assembled);
    }
    first.assemblies.prices = std::move(prices);
    return first;
  };
  plan = moved(FusionMode::on, std::move(plan));
  // Greedy merges can end above where they began: the plan is never dearer than the unfused ones.
  for (const FusionMode mode : {FusionMode::operators, FusionMode::off}) {
    if (planned(mode, always, Wanted::price).predicted_microseconds >= plan.predicted_microseconds) continue;
    FusionPlan other = moved(mode, planned(mode, always, Wanted::plan));
    other.mode = FusionMode::on;
    other.candidates += plan.candidates;
    other.notes.push_back("an unfused plan is priced lower than the greedy one and taken instead");
    for (CutEdge& cut : other.cuts)
      if (cut.reason == "mode") cut.reason = "cost";
    plan = std::move(other);
  }
  return plan;
}

}  // namespace

void settle_layouts(const graph::Graph& graph, PlanOptions& options) {
  options.layouts = assign_layouts(graph, options.machine, options.usual);
  // Packed constants are made once, by a kernel of their own.
  const std::vector<bool> constant = constant_only(graph);
  for (const auto& [value, layout] : options.layouts)
    if (constant[value.node]) options.constraints.stored_views.insert(value.node);
}

FusionPlan make_plan(const graph::Graph& graph, const PlanOptions& options) {
  const cost::GraphFacts facts = cost::graph_facts(graph, options.machine, options.usual);
  FusionPlan plan = best_plan(graph, options, facts);
  std::set<Value> grown;
  for (const Append& append : options.appends) grown.insert(append.whole);
  plan.lower_bound_microseconds = cost::lower_bound_microseconds(
      facts, options.machine, {options.threads, options.usual, facts.constant_bytes}, grown);
  return plan;
}

}  // namespace fusewise::fusion
