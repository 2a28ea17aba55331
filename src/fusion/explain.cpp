#include "fusion/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "cost/tree_price.h"
#include "fusion/context.h"
#include "fusion/explain_words.h"
#include "fusion/layouts.h"
#include "fusion/legality/list.h"

namespace fusewise::fusion {

namespace {

// Which regions compute a primitive, and the cut between two regions.
class PlanIndex {
 public:
  PlanIndex(const graph::Graph& graph, const FusionPlan& plan)
      : graph_(graph), plan_(plan), regions_(graph.size()) {
    // What comes from constants alone is a matter of the kernels that run once only.
    const std::vector<bool> constant = constant_only(graph);
    for (size_t r = 0; r < plan.regions.size(); ++r)
      for (NodeId node : plan.regions[r].region.nodes)
        if (!constant[node] || plan.regions[r].once) regions_[node].push_back(static_cast<int>(r));
    for (const CutEdge& cut : plan.cuts)
      for (int a : regions_[cut.from])
        for (int b : regions_[cut.to]) cuts_.try_emplace({a, b}, &cut);
  }

  const std::vector<int>& regions_of(NodeId node) const { return regions_[node]; }
  // The region that stores the value, -1 if none does.
  int writer_of(NodeId node) const {
    for (int r : regions_[node])
      for (Value v : plan_.regions[static_cast<size_t>(r)].region.outputs)
        if (v.node == node) return r;
    return -1;
  }
  const CutEdge* cut_between(int a, int b) const {
    const auto it = cuts_.find({a, b});
    return it == cuts_.end() ? nullptr : it->second;
  }
  static int owner(const graph::Graph& graph, NodeId node) {
    const auto& sources = graph.node(node).sources;
    return sources.empty() ? -1 : static_cast<int>(sources[0]);
  }
  int common(NodeId a, NodeId b) const {
    for (int r : regions_[a])
      if (std::find(regions_[b].begin(), regions_[b].end(), r) != regions_[b].end()) return r;
    return -1;
  }
  double ms_of(int region) const {
    return plan_.regions[static_cast<size_t>(region)].predicted_microseconds / 1e3;
  }

  // Adds what one edge between primitives says about its two model nodes.
  void add_edge(ExplainRow& row, bool fresh, NodeId from, NodeId to) const {
    if (const int together = common(from, to); together >= 0) {
      if (!fresh) return;
      row.fused = true;
      row.reason = "fused";
      row.detail = "one kernel computes both";
      row.ms_now = ms_of(together);
      row.ms_if_fused = row.ms_now;
      return;
    }
    // One cut edge among several decides: the tensor goes through memory.
    if (!fresh && !row.fused) return;
    row.fused = false;
    const int a = writer_of(from), b = regions_[to].empty() ? -1 : regions_[to].front();
    const CutEdge* cut = cut_between(a, b);
    row.reason = cut ? cut->reason : "stored";
    row.detail = cut ? cut->detail : "the tensor is stored";
    row.detail += move_words(plan_.assemblies, from, to);
    row.ms_now = (a >= 0 ? ms_of(a) : 0) + (b >= 0 ? ms_of(b) : 0);
    row.ms_if_fused.reset();
    if (cut && cut->fused_microseconds > 0) row.ms_if_fused = cut->fused_microseconds / 1e3;
    row.needs = needs_of(row);
  }

  std::vector<ExplainRow> rows() const {
    std::vector<ExplainRow> result;
    std::map<std::pair<int, int>, size_t> known;
    for (NodeId node = 0; node < graph_.size(); ++node) {
      if (regions_[node].empty()) continue;
      const int to = owner(graph_, node);
      for (Value v : graph_.node(node).operands) {
        const int from = owner(graph_, v.node);
        if (regions_[v.node].empty() || from < 0 || to < 0 || from == to) continue;
        const auto [it, fresh] = known.try_emplace({from, to}, result.size());
        if (fresh)
          result.push_back(
              {static_cast<uint32_t>(from), static_cast<uint32_t>(to), false, {}, {}, 0, {}, {}, {}});
        add_edge(result[it->second], fresh, v.node, node);
      }
    }
    std::sort(result.begin(), result.end(), [](const ExplainRow& a, const ExplainRow& b) {
      return std::pair(a.from, a.to) < std::pair(b.from, b.to);
    });
    return result;
  }

  // What prepares its constants counts only where nothing else is left of it.
  std::vector<int> regions_of_model_node(uint32_t model_node) const {
    std::vector<int> result;
    for (NodeId node = 0; node < graph_.size(); ++node)
      if (owner(graph_, node) == static_cast<int>(model_node))
        result.insert(result.end(), regions_[node].begin(), regions_[node].end());
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    const auto once = [&](int region) { return plan_.regions[static_cast<size_t>(region)].once; };
    if (!std::all_of(result.begin(), result.end(), once)) std::erase_if(result, once);
    return result;
  }

 private:
  const graph::Graph& graph_;
  const FusionPlan& plan_;
  std::vector<std::vector<int>> regions_;
  std::map<std::pair<int, int>, const CutEdge*> cuts_;
};

std::vector<NodeId> work_of(const PlanContext& context, const graph::Region& region) {
  std::vector<NodeId> nodes;
  for (NodeId node : region.nodes)
    if (context.is_work(node)) nodes.push_back(node);
  return nodes;
}

PlanContext context_of(const graph::Graph& graph, const FusionPlan& plan, const PlanOptions& options) {
  std::set<NodeId> stored = options.constraints.stored_views;
  for (const PlannedRegion& planned : plan.regions)
    for (Value v : planned.region.outputs)
      if (graph::kind_of(graph.node(v.node).op) == graph::Kind::view) stored.insert(v.node);
  return make_context(graph, options, stored);
}

// The two kernels that a fused one would be if it were cut in front of `model_node`.
std::optional<double> price_apart(const PlanContext& context, Evaluator& evaluator,
                                  const graph::Region& region, uint32_t model_node) {
  std::vector<NodeId> first, second;
  for (NodeId node : work_of(context, region)) {
    bool behind = PlanIndex::owner(*context.graph, node) == static_cast<int>(model_node);
    for (NodeId input : context.inputs[node])
      behind = behind || std::binary_search(second.begin(), second.end(), input);
    (behind ? second : first).push_back(node);
  }
  if (first.empty() || second.empty()) return std::nullopt;
  double sum = 0;
  for (const auto* part : {&first, &second}) {
    const Evaluated& evaluated = evaluator.evaluate(region_of(context, *part));
    if (!evaluated.verdict) return std::nullopt;
    sum += evaluated.estimate.microseconds / 1e3;
  }
  return sum;
}

void price_together(const PlanContext& context, Evaluator& evaluator, const FusionPlan& plan, int a, int b,
                    ExplainRow& row) {
  Candidate candidate;
  for (int r : {a, b})
    for (NodeId node : work_of(context, plan.regions[static_cast<size_t>(r)].region))
      candidate.nodes.push_back(node);
  std::sort(candidate.nodes.begin(), candidate.nodes.end());
  candidate.nodes.erase(std::unique(candidate.nodes.begin(), candidate.nodes.end()), candidate.nodes.end());
  candidate.region = region_of(context, candidate.nodes);
  // The plan's kernels as a partition, to see whether a third one lies between.
  Partition partition(context);
  for (const PlannedRegion& planned : plan.regions) {
    const std::vector<NodeId> nodes = work_of(context, planned.region);
    for (size_t i = 1; i < nodes.size(); ++i) {
      const int first = partition.cluster_of(nodes[0]), next = partition.cluster_of(nodes[i]);
      if (first != next && !partition.would_cycle(first, next)) partition.merge(first, next);
    }
  }
  const auto cluster = [&](int r) {
    return partition.cluster_of(work_of(context, plan.regions[static_cast<size_t>(r)].region).front());
  };
  candidate.a = cluster(a);
  candidate.b = cluster(b);
  if (const Verdict verdict = is_legal(candidate, {context, partition, evaluator}); !verdict) {
    row.reason = verdict.code;
    row.detail = verdict.detail;
    row.ms_if_fused.reset();
    return;
  }
  const cost::Estimate& estimate = evaluator.evaluate(candidate.region).estimate;
  row.ms_if_fused = estimate.microseconds / 1e3;
  if (row.reason == "apart" || row.reason == "budget") {
    row.reason = "cost";
    row.detail = "one kernel would be bound by " + estimate.bound();
  }
}

}  // namespace

std::vector<ExplainRow> explain_model(const graph::Graph& graph, const FusionPlan& plan) {
  return PlanIndex(graph, plan).rows();
}

std::vector<ExplainRow> explain_node(const graph::Graph& graph, const FusionPlan& plan, uint32_t model_node) {
  std::vector<ExplainRow> rows = explain_model(graph, plan);
  std::erase_if(rows, [&](const ExplainRow& row) { return row.from != model_node && row.to != model_node; });
  return rows;
}

ExplainRow explain_pair(const graph::Graph& graph, const FusionPlan& plan, const PlanOptions& options,
                        uint32_t from, uint32_t to) {
  const PlanIndex index(graph, plan);
  ExplainRow row;
  row.from = from;
  row.to = to;
  const std::vector<int> a = index.regions_of_model_node(from), b = index.regions_of_model_node(to);
  if (a.empty() || b.empty()) {
    row.reason = "folded";
    row.detail = "one of them was computed or removed when the model was prepared, and runs in no kernel";
    return row;
  }
  const PlanContext context = context_of(graph, plan, options);
  Evaluator evaluator(context);
  std::vector<int> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  const std::vector<ExplainRow> rows = index.rows();
  const auto edge = std::find_if(rows.begin(), rows.end(),
                                 [&](const ExplainRow& r) { return r.from == from && r.to == to; });
  if (edge != rows.end()) row = *edge;
  if (!common.empty() && (edge == rows.end() || edge->fused)) {
    row.fused = true;
    row.reason = "fused";
    row.detail = "one kernel computes both";
    row.ms_now = index.ms_of(common.front());
    row.ms_if_fused = row.ms_now;
    row.ms_if_apart =
        price_apart(context, evaluator, plan.regions[static_cast<size_t>(common.front())].region, to);
    return row;
  }
  if (edge == rows.end()) {
    row.reason = "apart";
    row.detail = "neither reads what the other computes";
    row.ms_now = index.ms_of(a.back()) + index.ms_of(b.front());
  }
  price_together(context, evaluator, plan, a.back(), b.front(), row);
  row.needs = needs_of(row);
  return row;
}

namespace {

std::string describe_regions(const graph::Graph& graph, const FusionPlan& plan, const PlanOptions& options,
                             const std::vector<int>& regions) {
  const PlanContext context = context_of(graph, plan, options);
  std::string text;
  for (int r : regions) {
    const PlannedRegion& planned = plan.regions[static_cast<size_t>(r)];
    if (planned.assembled) continue;
    text += kernel_title(graph, planned.region, r);
    if (!context.stands_alone(planned.region.nodes[0]))
      text += cost::to_text(evaluate_schedule(context, planned.region, planned.schedule).estimate);
    for (size_t b = 0; b < planned.bodies.size(); ++b) {
      const graph::Graph& body = *graph.node(planned.region.nodes.front()).bodies[b];
      std::vector<int> all(planned.bodies[b].regions.size());
      std::iota(all.begin(), all.end(), 0);
      text += fmt::format("its body{}:\n", planned.bodies.size() > 1 ? fmt::format(" {}", b) : "");
      PlanOptions inside = options;
      inside.constraints = {};
      inside.layouts = planned.bodies[b].layouts;
      text += describe_regions(body, planned.bodies[b], inside, all);
    }
  }
  return text;
}

}  // namespace

std::string describe_kernels(const graph::Graph& graph, const FusionPlan& plan, const PlanOptions& options,
                             uint32_t model_node) {
  const PlanIndex index(graph, plan);
  return describe_regions(graph, plan, options, index.regions_of_model_node(model_node));
}

}  // namespace fusewise::fusion
