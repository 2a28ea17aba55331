#include "fusion/search/cluster_price.h"

#include <algorithm>

namespace fusewise::fusion {

double ClusterPrice::closed_form(const std::vector<NodeId>& nodes) {
  cost::RegionSums sums;
  border_.clear();
  for (NodeId node : nodes) {
    sums.cycles += context_.facts.at(node).cycles;
    bool outside = context_.is_output[node];
    for (NodeId reader : context_.readers[node])
      outside = outside || !std::binary_search(nodes.begin(), nodes.end(), reader);
    if (outside)
      sums.add_value(context_.facts.at(node).bytes, false, context_.options->machine, context_.cost);
    for (NodeId input : context_.inputs[node])
      if (!std::binary_search(nodes.begin(), nodes.end(), input)) border_.push_back(input);
  }
  std::sort(border_.begin(), border_.end());
  border_.erase(std::unique(border_.begin(), border_.end()), border_.end());
  for (NodeId input : border_)
    sums.add_value(context_.facts.at(input).bytes, context_.facts.at(input).constant_only,
                   context_.options->machine, context_.cost);
  return cost::price_closed_form(sums, context_.options->machine, context_.cost).microseconds;
}

double ClusterPrice::tree(const graph::Region& region) {
  const Evaluated& evaluated = evaluator_.evaluate(region);
  return evaluated.verdict ? evaluated.estimate.microseconds : -1;
}

bool ClusterPrice::reads_directly(NodeId reader, NodeId producer) const {
  const auto& operands = context_.graph->node(reader).operands;
  return std::any_of(operands.begin(), operands.end(), [&](Value v) {
    // A reshape keeps the order of the elements.
    while (v.node != producer && context_.free[v.node] &&
           context_.graph->node(v.node).op == graph::Op::reshape)
      v = context_.graph->node(v.node).operands[0];
    return v.node == producer;
  });
}

bool ClusterPrice::plain_merge(const std::vector<NodeId>& a, const std::vector<NodeId>& b) const {
  const auto& facts = context_.facts;
  const auto elementwise = [&](NodeId n) {
    const cost::NodeFacts& f = facts.at(n);
    return !f.accumulates && !f.gathers && !f.pieces && (!f.view || f.plain_view);
  };
  const double elements = facts.at(b.back()).elements;
  // Through a view the elements come in another order, which the closed form does not see.
  for (NodeId n : b)
    for (NodeId input : context_.inputs[n])
      if (std::binary_search(a.begin(), a.end(), input) && !reads_directly(n, input)) return false;
  if (!std::all_of(b.begin(), b.end(),
                   [&](NodeId n) { return elementwise(n) && facts.at(n).elements == elements; }))
    return false;
  int held = 0;
  for (NodeId n : a) {
    if (elementwise(n) && facts.at(n).elements == elements) continue;
    if (!facts.at(n).sequential || facts.at(n).elements != elements || ++held > 1) return false;
  }
  return true;
}

}  // namespace fusewise::fusion
