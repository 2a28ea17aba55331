#include "stress/random_plan.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "compiler/random_schedule.h"
#include "cost/facts.h"
#include "cost/tree_price.h"
#include "fusion/choose_in_place.h"
#include "fusion/plain_schedule.h"
#include "fusion/tiles/choose_schedule.h"
#include "graph/form.h"
#include "schedule/tree.h"

namespace fusewise::test {

namespace {

using graph::NodeId;
using graph::Value;

// What is computed again and again at every level is right, and takes for ever.
constexpr double most_random_cycles = 2e5;

class Chooser {
 public:
  Chooser(const compiler::Planned& planned, const SymbolValues& symbols, uint64_t seed)
      : planned_(planned),
        symbols_(symbols),
        graph_(planned.graph),
        random_(seed),
        once_(graph_.size(), false),
        needed_(graph_.size(), false),
        cluster_(graph_.size(), -1),
        again_(graph_.size()),
        binders_(graph::symbol_binders(graph_)) {
    binders_.resize(graph_.size());
    const cost::GraphFacts facts = cost::graph_facts(graph_, planned.plan_options.machine, symbols);
    for (NodeId n = 0; n < graph_.size(); ++n) once_[n] = facts.at(n).constant_only;
    for (const graph::GraphOutput& o : graph_.outputs) needed_[o.value.node] = true;
    for (NodeId n = static_cast<NodeId>(graph_.size()); n-- > 0;) {
      if (needed_[n]) {
        for (Value v : graph_.node(n).operands) needed_[v.node] = true;
        for (NodeId binder : binders_[n]) needed_[binder] = true;
      }
      needed_[n] = needed_[n] && (graph::has_form(graph_, n) || graph::stands_alone(graph_, n));
      if (needed_[n]) cluster_[n] = static_cast<int>(n);
    }
  }

  std::vector<fusion::PlannedRegion> choose() {
    merge_some();
    compute_some_again();
    for (;;) {
      std::optional<std::vector<fusion::PlannedRegion>> regions = schedule_all();
      if (regions) return std::move(*regions);
    }
  }

 private:
  const compiler::Planned& planned_;
  const SymbolValues& symbols_;
  const graph::Graph& graph_;
  Random random_;
  std::vector<bool> once_, needed_;
  std::vector<int> cluster_;                  // by node; the clusters are numbered by one of their nodes
  std::vector<std::set<NodeId>> again_;       // by cluster: nodes of others that it computes, too
  std::vector<std::vector<NodeId>> binders_;  // by node: of the symbols that it speaks of

  // What a kernel computes before this node: operands, and what binds symbols of the node or of dimensions that it reads.
  std::set<NodeId> producers_of(NodeId node) const {
    std::set<NodeId> producers(binders_[node].begin(), binders_[node].end());
    for (Value v : graph_.node(node).operands) {
      const NodeId producer = producer_of(v);
      if (cluster_[producer] >= 0)
        producers.insert(producer);
      else
        producers.insert(binders_[producer].begin(), binders_[producer].end());
    }
    return producers;
  }
  // Results of loops and branches come from these.
  NodeId producer_of(Value v) const {
    const graph::Node& node = graph_.node(v.node);
    return node.op == graph::Op::result ? node.operands[0].node : v.node;
  }
  bool in_place(NodeId node) const { return planned_.plan.assemblies.in_place(node); }
  bool alone(NodeId node) const { return graph::stands_alone(graph_, node) || in_place(node); }

  // Producers before consumers; empty where clusters wait for each other.
  std::vector<int> order() const {
    std::vector<std::set<int>> before(graph_.size());
    std::set<int> waiting;
    for (NodeId n = 0; n < graph_.size(); ++n) {
      if (cluster_[n] < 0) continue;
      waiting.insert(cluster_[n]);
      for (NodeId producer : producers_of(n))
        if (cluster_[producer] != cluster_[n])
          before[static_cast<size_t>(cluster_[n])].insert(cluster_[producer]);
    }
    std::vector<int> result;
    while (!waiting.empty()) {
      const auto ready = std::find_if(waiting.begin(), waiting.end(), [&](int c) {
        return std::none_of(before[static_cast<size_t>(c)].begin(), before[static_cast<size_t>(c)].end(),
                            [&](int b) { return waiting.contains(b); });
      });
      if (ready == waiting.end()) return {};
      result.push_back(*ready);
      waiting.erase(ready);
    }
    return result;
  }

  void merge(NodeId a, NodeId b) {
    if (cluster_[a] < 0 || cluster_[b] < 0 || cluster_[a] == cluster_[b] || once_[a] != once_[b]) return;
    if (alone(a) || alone(b)) return;
    const std::vector<int> kept = cluster_;
    const int from = cluster_[a], to = cluster_[b];
    for (int& c : cluster_)
      if (c == from) c = to;
    if (order().empty()) cluster_ = kept;
  }

  void merge_some() {
    const int percent = random_.one_of({0, 30, 60, 90, 100});
    std::vector<std::pair<NodeId, NodeId>> pairs;
    std::vector<NodeId> members;
    for (NodeId n = 0; n < graph_.size(); ++n) {
      if (cluster_[n] < 0) continue;
      members.push_back(n);
      for (Value v : graph_.node(n).operands)
        if (random_.chance(percent)) pairs.push_back({v.node, n});
    }
    if (members.size() > 1)
      for (int64_t k = random_.between(0, 2); k > 0; --k)
        pairs.push_back({random_.one_of(members), random_.one_of(members)});
    random_.shuffle(pairs);
    if (pairs.size() > 60) pairs.resize(60);  // each takes a look at the whole graph
    for (const auto& [a, b] : pairs) merge(a, b);
  }

  // What a node's operands need has been computed before whatever reads the node, so no cycle can come of it.
  void compute_some_again() {
    const int percent = random_.one_of({0, 15, 40});
    if (percent == 0) return;
    for (NodeId n = static_cast<NodeId>(graph_.size()); n-- > 0;) {
      if (alone(n)) continue;
      for (const int c : readers_of(n))
        if (c != cluster_[n] && cluster_[n] >= 0 && !alone(static_cast<NodeId>(c)) &&
            once_[n] == once_[static_cast<size_t>(c)] && random_.chance(percent))
          again_[static_cast<size_t>(c)].insert(n);
    }
  }
  std::set<int> readers_of(NodeId node) const {
    std::set<int> readers;
    for (NodeId n = 0; n < graph_.size(); ++n)
      for (Value v : graph_.node(n).operands) {
        if (v.node != node) continue;
        if (cluster_[n] >= 0) readers.insert(cluster_[n]);
        for (size_t c = 0; c < again_.size(); ++c)
          if (again_[c].contains(n)) readers.insert(static_cast<int>(c));
      }
    return readers;
  }

  bool computes(int cluster, NodeId node) const {
    return cluster_[node] == cluster || again_[static_cast<size_t>(cluster)].contains(node);
  }

  // From consumers to producers, so that nothing is computed that nobody reads. Nothing after a cluster that cannot
  // be scheduled has been taken apart.
  std::optional<std::vector<fusion::PlannedRegion>> schedule_all() {
    std::vector<int> clusters = order();
    check(!clusters.empty() || std::count(needed_.begin(), needed_.end(), true) == 0,
          "a random plan has a cycle");
    std::vector<bool> demanded(graph_.size(), false);
    for (const graph::GraphOutput& o : graph_.outputs) demanded[producer_of(o.value)] = true;
    std::vector<fusion::PlannedRegion> regions;
    for (size_t i = clusters.size(); i-- > 0;) {
      const int c = clusters[i];
      if (graph::kind_of(graph_.node(static_cast<NodeId>(c)).op) == graph::Kind::control) {
        if (!demanded[static_cast<size_t>(c)]) continue;
        regions.push_back(planned_control(static_cast<NodeId>(c)));
        for (NodeId producer : producers_of(static_cast<NodeId>(c))) demanded[producer] = true;
        continue;
      }
      std::vector<bool> member(graph_.size(), false);
      fusion::PlannedRegion planned;
      for (NodeId n = static_cast<NodeId>(graph_.size()); n-- > 0;) {
        if (cluster_[n] == c && demanded[n]) {
          for (auto r = static_cast<uint32_t>(graph_.node(n).results.size()); r-- > 0;)
            planned.region.outputs.push_back({n, r});
          member[n] = true;
        }
        if (!member[n]) continue;
        planned.region.nodes.push_back(n);
        for (NodeId producer : producers_of(n)) (computes(c, producer) ? member : demanded)[producer] = true;
      }
      if (planned.region.outputs.empty()) continue;
      std::reverse(planned.region.nodes.begin(), planned.region.nodes.end());
      std::reverse(planned.region.outputs.begin(), planned.region.outputs.end());
      planned.once = once_[planned.region.nodes.front()];
      planned.assembled = in_place(planned.region.nodes.front());
      if (!alone(planned.region.nodes.front()) && !schedule(planned)) {
        take_apart(c, planned.region);
        return std::nullopt;
      }
      regions.push_back(std::move(planned));
    }
    std::reverse(regions.begin(), regions.end());
    return regions;
  }

  // As the planner has it.
  fusion::PlannedRegion planned_control(NodeId node) const {
    const auto& regions = planned_.plan.regions;
    const auto found = std::ranges::find_if(
        regions, [&](const fusion::PlannedRegion& region) { return region.region.nodes.front() == node; });
    check(found != regions.end(), "a loop or a branch that the planner leaves out");
    return *found;
  }

  bool schedule(fusion::PlannedRegion& planned) {
    const schedule::RegionForms forms = schedule::region_forms(graph_, planned.region);
    const fusion::PlanOptions& options = planned_.plan_options;
    const auto take = [&](schedule::Schedule schedule, double most_cycles = 1e30) {
      schedule.order = options.order;
      const schedule::TreeResult built = schedule::build_tree(forms, schedule, planned_.plan.layouts);
      if (!built.verdict.allowed()) return false;
      if (most_cycles < 1e30 &&
          cost::price_tree(forms, built.tree, options.machine, {1, symbols_}).cycles.total() > most_cycles)
        return false;
      planned.schedule = std::move(schedule);
      return true;
    };
    if (random_.chance(60))
      for (int attempt = 0; attempt < 4; ++attempt)
        if (take(random_schedule(forms, random_), most_random_cycles)) return true;
    fusion::TileOptions tiles;
    tiles.threads = options.threads;
    tiles.order = options.order;
    tiles.usual = symbols_;
    if (take(fusion::choose_schedule(forms, planned_.plan.layouts, options.machine, tiles))) return true;
    const auto plain = fusion::plain_schedule(forms, options.machine, options.order, options.usual);
    return plain && take(*plain);
  }

  void take_apart(int cluster, const graph::Region& region) {
    int members = 0;
    for (NodeId n = 0; n < graph_.size(); ++n)
      if (cluster_[n] == cluster) {
        cluster_[n] = static_cast<int>(n);
        ++members;
      }
    const bool repeats = !again_[static_cast<size_t>(cluster)].empty();
    if (members == 1 && !repeats)
      throw UnsupportedError("not supported yet: no kernel for a primitive on its own: " +
                             std::string(graph::name_of(graph_.node(region.nodes.back()).op)));
    again_[static_cast<size_t>(cluster)].clear();
  }
};

bool can_move(const graph::Graph& graph, const schedule::Layouts& layouts, NodeId node) {
  const auto in_blocks = [&](Value v) {
    const auto it = layouts.find(v);
    return it != layouts.end() && !it->second.blocks.empty();
  };
  if (graph.node(node).op != graph::Op::concat && !fusion::is_movable_view(graph, node)) return false;
  const std::vector<Value>& operands = graph.node(node).operands;
  return bits_of(graph.type({node, 0}).element) % 8 == 0 && !in_blocks({node, 0}) &&
         std::none_of(operands.begin(), operands.end(), in_blocks);
}

}  // namespace

void take_random_plan(compiler::Planned& planned, const SymbolValues& symbols, uint64_t seed) {
  fusion::PlanOptions options = planned.plan_options;
  options.assemblies = {};
  options.layouts = planned.plan.layouts;
  for (auto it = options.layouts.begin(); it != options.layouts.end();) {
    it->second.strides.clear();
    it = it->second.is_row_major() ? options.layouts.erase(it) : std::next(it);
  }
  Random random(~seed);
  const int percent = random.one_of({0, 30, 80, 100});
  std::set<NodeId> moved;
  for (NodeId n = 0; n < planned.graph.size(); ++n)
    if (random.chance(percent) && can_move(planned.graph, options.layouts, n)) moved.insert(n);
  options = fusion::with_in_place(planned.graph, options, moved);
  planned.plan.assemblies = options.assemblies;
  planned.plan.layouts = options.layouts;
  planned.plan.regions = Chooser(planned, symbols, seed).choose();
  // Bodies have random plans as well.
  for (fusion::PlannedRegion& region : planned.plan.regions)
    for (size_t b = 0; b < region.bodies.size(); ++b) {
      compiler::Planned body;
      body.graph = *planned.graph.node(region.region.nodes.front()).bodies[b];
      body.plan = std::move(region.bodies[b]);
      body.plan_options = planned.plan_options;
      take_random_plan(body, symbols, seed + 1 + b);
      region.bodies[b] = std::move(body.plan);
    }
}

}  // namespace fusewise::test
