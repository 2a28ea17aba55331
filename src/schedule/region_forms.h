// The region as schedule, cost and legality see it: the form of every member, where each read leads, and the
// values at the border. Computed once per region.
#pragma once

#include <map>
#include <vector>

#include "graph/form.h"
#include "graph/region.h"

namespace fusewise::schedule {

using graph::Form;
using graph::Graph;
using graph::NodeId;
using graph::Region;
using graph::Value;

struct RegionForms {
  const Graph* graph = nullptr;
  Region region;
  std::map<NodeId, Form> forms;
  // Border values in order of first use; constants of a single element are not listed, they become literals.
  std::vector<Value> inputs;
  bool is_member(NodeId node) const { return forms.count(node) != 0; }
  bool is_output(NodeId node) const;
  const Form& form(NodeId node) const { return forms.at(node); }
  Value operand(NodeId node, const graph::Read& read) const {
    return graph->node(node).operands[static_cast<size_t>(read.operand)];
  }
};

RegionForms region_forms(const Graph& graph, const Region& region);

// The value of a constant with one element, which kernels hold as a literal.
std::optional<Scalar> literal_of(const Graph& graph, Value value);

}  // namespace fusewise::schedule
