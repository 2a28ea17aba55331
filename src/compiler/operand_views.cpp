#include "compiler/operand_views.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace fusewise::compiler {

using graph::NodeId;
using graph::Value;

namespace {

bool is_view(const graph::Graph& graph, NodeId node) {
  const graph::Node& n = graph.node(node);
  if (n.op != graph::Op::transpose) return false;
  const std::vector<int>& permutation = graph::attributes<graph::TransposeAttributes>(n).permutation;
  return std::is_sorted(permutation.begin(), permutation.end());
}

bool is_contraction(const graph::Graph& graph, NodeId node) {
  return graph::kind_of(graph.node(node).op) == graph::Kind::contract;
}

// Members that no output needs go.
void keep_needed_nodes(const graph::Graph& graph, graph::Region& region) {
  std::set<NodeId> needed;
  for (Value v : region.outputs) needed.insert(v.node);
  for (size_t i = region.nodes.size(); i-- > 0;) {
    if (!needed.contains(region.nodes[i])) continue;
    for (Value v : graph.node(region.nodes[i]).operands)
      if (graph::contains(region, v.node)) needed.insert(v.node);
  }
  region.nodes.assign(needed.begin(), needed.end());
}

}  // namespace

graph::Graph view_operands(graph::Graph graph) {
  graph::Graph result;
  result.name = std::move(graph.name);
  result.model_nodes = std::move(graph.model_nodes);
  result.constants = std::move(graph.constants);
  std::vector<NodeId> moved(graph.size());
  for (NodeId n = 0; n < graph.size(); ++n) {
    Indirect<graph::Node> node = graph.release(n);
    for (Value& v : node->operands) v.node = moved[v.node];
    if (graph::kind_of(node->op) == graph::Kind::contract)
      for (Value& v : node->operands) {
        graph::TransposeAttributes identity;
        identity.permutation.resize(static_cast<size_t>(result.type(v).rank()));
        std::iota(identity.permutation.begin(), identity.permutation.end(), 0);
        v = {result.append({graph::Op::transpose, {v}, identity, {result.type(v)}, node->sources}), 0};
      }
    moved[n] = result.append(std::move(node));
  }
  for (const graph::GraphInput& i : graph.inputs) result.inputs.push_back({moved[i.node], i.name});
  for (const graph::GraphOutput& o : graph.outputs)
    result.outputs.push_back({{moved[o.value.node], o.value.result}, o.name});
  return result;
}

void keep_views_inside(const graph::Graph& graph, fusion::FusionPlan& plan) {
  std::set<NodeId> moved;
  for (fusion::PlannedRegion& planned : plan.regions) {
    std::set<NodeId> nodes(planned.region.nodes.begin(), planned.region.nodes.end());
    for (NodeId n : planned.region.nodes)
      if (is_contraction(graph, n))
        for (Value v : graph.node(n).operands)
          if (is_view(graph, v.node) && nodes.insert(v.node).second) moved.insert(v.node);
    planned.region.nodes.assign(nodes.begin(), nodes.end());
  }
  std::set<Value> made;
  for (const fusion::PlannedRegion& planned : plan.regions)
    made.insert(planned.region.outputs.begin(), planned.region.outputs.end());
  // What such a view reads is now read where the view itself was, unless another region makes it anyway.
  for (fusion::PlannedRegion& planned : plan.regions) {
    std::set<Value> outputs(planned.region.outputs.begin(), planned.region.outputs.end());
    for (Value v : planned.region.outputs) {
      if (!moved.contains(v.node)) continue;
      const Value operand = graph.node(v.node).operands[0];
      if (graph::contains(planned.region, operand.node) && made.insert(operand).second)
        outputs.insert(operand);
    }
    planned.region.outputs.assign(outputs.begin(), outputs.end());
  }
  // What is read: from the last region to the first, because regions stand in the order in which they run.
  std::set<Value> wanted;
  for (const graph::GraphOutput& o : graph.outputs) wanted.insert(o.value);
  std::vector<fusion::PlannedRegion> kept;
  for (size_t i = plan.regions.size(); i-- > 0;) {
    fusion::PlannedRegion& planned = plan.regions[i];
    std::erase_if(planned.region.outputs, [&](Value v) { return !wanted.contains(v); });
    if (planned.region.outputs.empty()) continue;
    keep_needed_nodes(graph, planned.region);
    for (NodeId n : planned.region.nodes)
      for (Value v : graph.node(n).operands)
        if (!graph::contains(planned.region, v.node)) wanted.insert(v);
    kept.push_back(std::move(planned));
  }
  std::reverse(kept.begin(), kept.end());
  plan.regions = std::move(kept);
}

}  // namespace fusewise::compiler
