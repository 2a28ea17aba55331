#include "fusion/evaluate.h"

#include <algorithm>

#include "cost/tree_price.h"
#include "fusion/plain_schedule.h"
#include "fusion/tiles/choose_schedule.h"
#include "fusion/tiles/reduction_forms.h"
#include "numerics/mixer.h"
#include "schedule/region_forms.h"
#include "schedule/tree.h"

namespace fusewise::fusion {

using graph::Region;
using schedule::Schedule;

namespace {

// Another form of a reduction must be worth more than the model can tell apart.
constexpr double least_form_gain = 0.02;

uint64_t position_of(const Region& region, NodeId node) {
  return static_cast<uint64_t>(std::lower_bound(region.nodes.begin(), region.nodes.end(), node) -
                               region.nodes.begin());
}

void add_layout(Mixer& mixer, const schedule::Layouts& layouts, Value value) {
  const auto it = layouts.find(value);
  if (it == layouts.end() || it->second.is_row_major()) return mixer.add(0);
  mixer.add(it->second.order.size());
  for (int d : it->second.order) mixer.add(static_cast<uint64_t>(d));
  for (const auto& b : it->second.blocks) {
    mixer.add(static_cast<uint64_t>(b.dim));
    mixer.add(static_cast<uint64_t>(b.block));
  }
  mixer.add(it->second.strides.size());
  for (const Dim& stride : it->second.strides) mixer.add(stride);
}

void add_operand(Mixer& mixer, const PlanContext& context, const Region& region, NodeId operand,
                 std::vector<NodeId>& border) {
  if (graph::contains(region, operand)) return mixer.add(position_of(region, operand) << 2 | 1);
  auto it = std::find(border.begin(), border.end(), operand);
  const bool fresh = it == border.end();
  if (fresh) it = border.insert(border.end(), operand);
  mixer.add(static_cast<uint64_t>(it - border.begin()) << 2 | 2);
  if (!fresh) return;
  add_layout(mixer, context.options->layouts, {operand, 0});
  const cost::NodeFacts& facts = context.facts.at(operand);
  mixer.add((facts.constant_only ? 1 : 0) + (facts.literal ? 2 : 0));
}

}  // namespace

Hash128 structure_of(const PlanContext& context, const Region& region, int64_t grid_tile) {
  Mixer low, high;
  high.add(static_cast<uint64_t>(grid_tile) + 1);
  std::vector<NodeId> border;
  for (NodeId node : region.nodes) {
    low.add(context.facts.at(node).signature);
    high.add(context.facts.at(node).signature);
    for (NodeId operand : context.facts.operands(node)) add_operand(low, context, region, operand, border);
  }
  for (Value v : region.outputs) {
    low.add(position_of(region, v.node));
    add_layout(low, context.options->layouts, v);
  }
  high.add(low.hash());
  return {high.hash(), low.hash()};
}

Schedule with_nodes(const Schedule& schedule, const Region& region) {
  Schedule result = schedule;
  for (auto& stage : result.stages) stage.node = region.nodes[stage.node];
  return result;
}

Schedule with_positions(const Schedule& schedule, const Region& region) {
  Schedule result = schedule;
  for (auto& stage : result.stages) stage.node = static_cast<NodeId>(position_of(region, stage.node));
  return result;
}

namespace {

Evaluated price(const PlanContext& context, const Region& region, const schedule::RegionForms& forms,
                const Schedule& schedule) {
  Evaluated result;
  schedule::TreeResult tree = schedule::build_tree(forms, schedule, context.options->layouts);
  result.verdict = tree.verdict;
  if (!tree.verdict) return result;
  // A split reduction brings a phase of its own, with a price.
  int splits = 0;
  for (const schedule::Chain& chain : tree.tree.chains) splits += chain.split() ? 1 : 0;
  if (tree.tree.phases > 1 + splits)
    result.verdict = Verdict::forbid("phases",
                                     "part of it has to be complete before the rest can begin, which takes a "
                                     "second phase with a barrier");
  result.estimate = cost::price_tree(forms, tree.tree, context.options->machine, context.cost);
  result.schedule = with_positions(schedule, region);
  return result;
}

}  // namespace

Evaluated evaluate_schedule(const PlanContext& context, const Region& region, const Schedule& schedule) {
  return price(context, region, schedule::region_forms(*context.graph, region), schedule);
}

const Evaluated* Evaluator::known(const Region& region, int64_t grid_tile) const {
  const auto it = memo_.find(structure_of(context_, region, grid_tile));
  return it == memo_.end() ? nullptr : &it->second;
}

// What a worker's cache holds comes before what it does not: that would be refused.
bool Evaluator::better_form(const cost::Estimate& other, const cost::Estimate& best) const {
  const auto most = static_cast<double>(context_.options->machine.l2_bytes);
  if ((other.scratch_bytes <= most) != (best.scratch_bytes <= most)) return other.scratch_bytes <= most;
  return other.microseconds <= best.microseconds * (1 - least_form_gain);
}

// Each chain of reductions in the form that makes the region cheapest, the others being as they are by then.
void Evaluator::try_reduction_forms(const schedule::RegionForms& forms, const TileOptions& tiles,
                                    Schedule schedule, Evaluated& best) {
  for (NodeId last : chain_ends(forms, tiles.usual)) {
    Schedule cheapest = schedule;
    for (const Schedule& other : reduction_forms(forms, context_.options->layouts, context_.options->machine,
                                                 tiles, schedule, last)) {
      Evaluated evaluated = price(context_, forms.region, forms, other);
      if (!evaluated.verdict || !better_form(evaluated.estimate, best.estimate)) continue;
      best = std::move(evaluated);
      cheapest = other;
    }
    schedule = std::move(cheapest);
  }
}

// What computes elements one by one either reads or writes across rows, where they differ. Concatenations are left out,
// whose loops are split at their pieces, and so is what moves elements and computes nothing: a contraction that reads
// them where they lie gains less than its price says by having them moved first.
void Evaluator::try_other_vectors(const schedule::RegionForms& forms, TileOptions tiles,
                                  const Schedule& schedule, Evaluated& best) {
  bool computes = false;
  for (NodeId node : forms.region.nodes) {
    const cost::NodeFacts& facts = context_.facts.at(node);
    if (facts.accumulates || facts.pieces) return;
    computes = computes || !facts.view;
  }
  if (!computes) return;
  tiles.along_inputs = true;
  const Schedule other = choose_schedule(forms, context_.options->layouts, context_.options->machine, tiles);
  const auto same_axes = [](const schedule::StageChoice& a, const schedule::StageChoice& b) {
    return a.node == b.node && a.vector_axis == b.vector_axis;
  };
  if (std::equal(other.stages.begin(), other.stages.end(), schedule.stages.begin(), schedule.stages.end(),
                 same_axes))
    return;
  Evaluated evaluated = price(context_, forms.region, forms, other);
  if (evaluated.verdict && better_form(evaluated.estimate, best.estimate)) best = std::move(evaluated);
}

Evaluated Evaluator::with_tiles(const schedule::RegionForms& forms, const TileOptions& tiles) {
  Schedule schedule = choose_schedule(forms, context_.options->layouts, context_.options->machine, tiles);
  Evaluated result = price(context_, forms.region, forms, schedule);
  if (result.verdict) try_other_vectors(forms, tiles, schedule, result);
  if (result.verdict) try_reduction_forms(forms, tiles, std::move(schedule), result);
  return result;
}

const Evaluated& Evaluator::evaluate(const Region& region, int64_t grid_tile) {
  const auto [it, fresh] = memo_.try_emplace(structure_of(context_, region, grid_tile));
  if (!fresh) return it->second;
  const schedule::RegionForms forms = schedule::region_forms(*context_.graph, region);
  TileOptions tiles;
  tiles.threads = context_.options->threads;
  tiles.order = context_.options->order;
  tiles.usual = context_.options->usual;
  tiles.grid_tile = grid_tile;
  it->second = with_tiles(forms, tiles);
  if (tiles.threads > 1 && it->second.estimate.on_one_thread()) {
    // Blocks for several threads are smaller than one has use for.
    tiles.threads = 1;
    Evaluated alone = with_tiles(forms, tiles);
    if (alone.verdict && (!it->second.verdict || better_form(alone.estimate, it->second.estimate)))
      it->second = std::move(alone);
  }
  if (!it->second.verdict)
    if (const auto plain = plain_schedule(forms, context_.options->machine, tiles.order, tiles.usual)) {
      Evaluated simple = price(context_, region, forms, *plain);
      if (simple.verdict) it->second = std::move(simple);
    }
  return it->second;
}

}  // namespace fusewise::fusion
