#include "schedule/region_forms.h"

#include <algorithm>

namespace fusewise::schedule {

bool RegionForms::is_output(NodeId node) const {
  return std::any_of(region.outputs.begin(), region.outputs.end(), [&](Value v) { return v.node == node; });
}

std::optional<Scalar> literal_of(const Graph& graph, Value value) {
  const graph::ConstantData* data = graph::constant_of(graph, value);
  if (!data || !is_computable(data->type.element) || !product(data->type.shape).is(1)) return std::nullopt;
  return load_scalar(data->bytes.data(), data->type.element);
}

RegionForms region_forms(const Graph& graph, const Region& region) {
  RegionForms result;
  result.graph = &graph;
  result.region = region;
  for (NodeId node : region.nodes) result.forms.emplace(node, graph::form_of(graph, node));
  for (Value v : graph::region_inputs(graph, region))
    if (!literal_of(graph, v)) result.inputs.push_back(v);
  return result;
}

}  // namespace fusewise::schedule
