#include "fusion/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/region_forms.h"

namespace fusewise::fusion {

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
    for (Value v : graph.node(id).operands) context.needed[v.node] = true;
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
      for (Value v : graph.node(id).operands) read_whole[v.node] = true;
  std::vector<int> depth(graph.size(), 0);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const cost::NodeFacts& facts = context.facts.at(id);
    if (!facts.has_form || !facts.plain_view || context.is_output[id] || read_whole[id] || stored.count(id))
      continue;
    int d = 1;
    for (Value v : graph.node(id).operands)
      if (context.free[v.node]) d = std::max(d, depth[v.node] + 1);
    context.free[id] = d <= deepest_view;
    depth[id] = context.free[id] ? d : 0;
  }
  for (NodeId barrier : context.options->constraints.barriers) context.free[barrier] = false;
}

void unique(std::vector<NodeId>& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

void connect(PlanContext& context) {
  const graph::Graph& graph = *context.graph;
  context.inputs.resize(graph.size());
  context.readers.resize(graph.size());
  const auto binders = graph::symbol_binders(graph);
  const auto add_binders = [&](std::vector<NodeId>& inputs, NodeId node) {
    if (!binders.empty()) inputs.insert(inputs.end(), binders[node].begin(), binders[node].end());
  };
  // A free view hands on what it reads.
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!context.needed[id] || context.is_source(id)) continue;
    std::vector<NodeId>& inputs = context.inputs[id];
    for (Value v : graph.node(id).operands) {
      if (context.free[v.node])
        inputs.insert(inputs.end(), context.inputs[v.node].begin(), context.inputs[v.node].end());
      else if (graph.node(v.node).op == graph::Op::result)
        inputs.push_back(graph.node(v.node).operands[0].node);
      else if (!schedule::literal_of(graph, v))
        inputs.push_back(v.node);
      if (context.is_source(v.node)) add_binders(inputs, v.node);  // dimensions
    }
    add_binders(inputs, id);
    unique(inputs);
    if (context.free[id]) continue;
    for (NodeId input : inputs)
      if (!context.is_source(input)) context.readers[input].push_back(id);
  }
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

std::vector<NodeId> free_views_of(const PlanContext& context, NodeId node) {
  std::vector<NodeId> views, work = {node};
  while (!work.empty()) {
    const NodeId next = work.back();
    work.pop_back();
    for (Value v : context.graph->node(next).operands)
      if (context.free[v.node] && std::find(views.begin(), views.end(), v.node) == views.end()) {
        views.push_back(v.node);
        work.push_back(v.node);
      }
  }
  unique(views);
  return views;
}

namespace {

graph::Region region_of_control(const PlanContext& context, NodeId control) {
  graph::Region region;
  region.nodes = {control};
  for (NodeId id = control + 1; id < context.graph->size(); ++id) {
    const graph::Node& node = context.graph->node(id);
    if (node.op != graph::Op::result || node.operands[0].node != control || !context.needed[id]) continue;
    region.nodes.push_back(id);
    region.outputs.push_back({id, 0});
  }
  return region;
}

}  // namespace

graph::Region region_of(const PlanContext& context, const std::vector<NodeId>& nodes) {
  if (nodes.size() == 1 && context.is_control(nodes[0])) return region_of_control(context, nodes[0]);
  graph::Region region;
  region.nodes = nodes;
  std::vector<NodeId> work = nodes;
  while (!work.empty()) {
    const NodeId next = work.back();
    work.pop_back();
    for (Value v : context.graph->node(next).operands) {
      if (!context.free[v.node]) continue;
      if (std::find(region.nodes.begin() + static_cast<std::ptrdiff_t>(nodes.size()), region.nodes.end(),
                    v.node) != region.nodes.end())
        continue;
      region.nodes.push_back(v.node);
      work.push_back(v.node);
    }
  }
  std::sort(region.nodes.begin(), region.nodes.end());
  for (NodeId node : nodes) {
    const bool outside =
        std::any_of(context.readers[node].begin(), context.readers[node].end(),
                    [&](NodeId reader) { return !std::binary_search(nodes.begin(), nodes.end(), reader); });
    if (outside || context.is_output[node]) region.outputs.push_back({node, 0});
  }
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
