// A 64-bit signature of what a node computes: its form, its operands' types and its result's. Names and node ids
// do not enter, so that equal layers have equal signatures.
#pragma once

#include "graph/form.h"

namespace fusewise::cost {

// `form` is null for sources that have none.
uint64_t signature_of(const graph::Graph& graph, graph::NodeId node, const graph::Form* form);

}  // namespace fusewise::cost
