#include "fusion/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace fusewise::fusion {

void NodeLists::append(std::vector<NodeId>& nodes) {
  std::sort(nodes.begin(), nodes.end());
  all_.insert(all_.end(), nodes.begin(), std::unique(nodes.begin(), nodes.end()));
  begins_.push_back(all_.size());
}

// Counts first, so that every list has its place.
template <class Counts>
NodeLists NodeLists::inverted(const Counts& counts) const {
  NodeLists result;
  const size_t size = begins_.size() - 1;
  result.begins_.assign(size + 1, 0);
  const auto visit = [&](const auto& entry) {
    for (NodeId node = 0; node < size; ++node)
      for (NodeId named : (*this)[node])
        if (counts(node, named)) entry(node, named);
  };
  visit([&](NodeId, NodeId named) { ++result.begins_[named + 1]; });
  for (size_t i = 1; i <= size; ++i) result.begins_[i] += result.begins_[i - 1];
  result.all_.resize(result.begins_.back());
  std::vector<size_t> next(result.begins_.begin(), result.begins_.end() - 1);
  visit([&](NodeId node, NodeId named) { result.all_[next[named]++] = node; });
  return result;
}

namespace {

// Chains of views longer than this are stored in between, so that no region drags an endless chain along.
constexpr int deepest_view = 12;

void mark_needed(PlanContext& context) {
  const graph::Graph& graph = *context.graph;
  context.needed.assign(graph.size(), false);
  context.is_output.assign(graph.size(), false);
  for (const graph::GraphOutput& output : graph.outputs) {
    context.needed[output.value.node] = true;
    context.is_output[output.value.node] = true;
  }
  const auto binders = graph::symbol_binders(graph);
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    if (!context.needed[id]) continue;
    for (NodeId operand : context.facts.operands(id)) context.needed[operand] = true;
    if (!binders.empty())
      for (NodeId binder : binders[id]) context.needed[binder] = true;
  }
}

void mark_free(PlanContext& context, const std::set<NodeId>& stored) {
  const graph::Graph& graph = *context.graph;
  context.free.assign(graph.size(), false);
  if (context.options->mode == FusionMode::off) return;
  // What stands alone reads its operands whole.
  std::vector<bool> read_whole(graph.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id)
    if (context.stands_alone(id))
      for (NodeId operand : context.facts.operands(id)) read_whole[operand] = true;
  std::vector<int> depth(graph.size(), 0);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const cost::NodeFacts& facts = context.facts.at(id);
    if (!facts.has_form || !facts.plain_view || context.is_output[id] || read_whole[id] || stored.count(id))
      continue;
    int d = 1;
    for (NodeId operand : context.facts.operands(id))
      if (context.free[operand]) d = std::max(d, depth[operand] + 1);
    context.free[id] = d <= deepest_view;
    depth[id] = context.free[id] ? d : 0;
  }
  for (NodeId barrier : context.options->constraints.barriers) context.free[barrier] = false;
}

void connect(PlanContext& context) {
  const graph::Graph& graph = *context.graph;
  const auto binders = graph::symbol_binders(graph);
  std::vector<NodeId> inputs, views;
  const auto add_binders = [&](NodeId node) {
    if (!binders.empty()) inputs.insert(inputs.end(), binders[node].begin(), binders[node].end());
  };
  const auto control_of = [&](NodeId id) {  // whose result it takes out
    return context.is_source(id) && graph.node(id).op == graph::Op::result ? context.facts.operands(id)[0]
                                                                           : graph::no_node;
  };
  // A free view hands on what it reads.
  for (NodeId id = 0; id < graph.size(); ++id) {
    const std::span<const NodeId> operands = context.facts.operands(id);
    inputs.clear();
    if (context.needed[id] && !context.is_source(id)) {
      for (NodeId operand : operands) {
        if (context.free[operand])
          inputs.insert(inputs.end(), context.inputs[operand].begin(), context.inputs[operand].end());
        else if (const NodeId control = control_of(operand); control != graph::no_node)
          inputs.push_back(control);
        else if (!context.facts.at(operand).literal)
          inputs.push_back(operand);
        if (context.is_source(operand)) add_binders(operand);  // dimensions
      }
      add_binders(id);
    }
    context.inputs.append(inputs);
    views.clear();
    for (NodeId operand : operands) {
      if (!context.free[operand]) continue;
      views.insert(views.end(), context.views[operand].begin(), context.views[operand].end());
      views.push_back(operand);
    }
    context.views.append(views);
    if (context.needed[id])
      if (const NodeId control = control_of(id); control != graph::no_node)
        context.results[control].push_back(id);
  }
  context.readers = context.inputs.inverted(
      [&](NodeId reader, NodeId input) { return !context.free[reader] && !context.is_source(input); });
}

}  // namespace

PlanContext make_context(const graph::Graph& graph, const PlanOptions& options,
                         const std::set<NodeId>& stored, const cost::GraphFacts* facts) {
  PlanContext context;
  context.graph = &graph;
  context.options = &options;
  context.facts = facts ? *facts : cost::graph_facts(graph, options.machine, options.usual);
  context.cost = {options.threads, options.usual, context.facts.constant_bytes};
  mark_needed(context);
  mark_free(context, stored);
  connect(context);
  return context;
}

namespace {

graph::Region region_of_control(const PlanContext& context, NodeId control) {
  graph::Region region;
  region.nodes = {control};
  const auto results = context.results.find(control);
  if (results == context.results.end()) return region;
  for (NodeId id : results->second) {
    region.nodes.push_back(id);
    region.outputs.push_back({id, 0});
  }
  return region;
}

// Readers are behind what they read, most of them right behind it.
bool is_read_outside(const PlanContext& context, std::span<const NodeId> nodes, size_t place) {
  const std::span<const NodeId> rest = nodes.subspan(place + 1);
  return std::ranges::any_of(context.readers[nodes[place]], [&](NodeId reader) {
    return rest.empty() || (rest[0] != reader && !std::ranges::binary_search(rest, reader));
  });
}

}  // namespace

graph::Region region_of(const PlanContext& context, std::span<const NodeId> nodes) {
  if (nodes.size() == 1 && context.is_control(nodes[0])) return region_of_control(context, nodes[0]);
  graph::Region region;
  std::vector<NodeId> views;
  for (NodeId node : nodes) views.insert(views.end(), context.views[node].begin(), context.views[node].end());
  std::ranges::sort(views);
  views.erase(std::ranges::unique(views).begin(), views.end());
  region.nodes.reserve(nodes.size() + views.size());
  std::ranges::merge(nodes, views, std::back_inserter(region.nodes));
  for (size_t i = 0; i < nodes.size(); ++i)
    if (context.is_output[nodes[i]] || is_read_outside(context, nodes, i))
      region.outputs.push_back({nodes[i], 0});
  return region;
}

std::string describe(const graph::Graph& graph, NodeId node) {
  const graph::Node& n = graph.node(node);
  if (n.sources.empty()) return fmt::format("{} %{}", graph::name_of(n.op), node);
  const graph::ModelNode& model = graph.model_nodes[n.sources[0]];
  const std::string& name = model.name.empty() ? model.first_output : model.name;
  return fmt::format("{} '{}' ({} %{})", model.op_type, name, graph::name_of(n.op), node);
}

}  // namespace fusewise::fusion
