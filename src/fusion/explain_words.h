// The words of explanations.
#pragma once

#include "fusion/explain.h"

namespace fusewise::fusion {

// What would have to change for the pair to become one kernel.
std::string needs_of(const ExplainRow& row);

// Where one of the two moves elements, what it costs in place and otherwise: "; in place ...", or nothing.
std::string move_words(const Assemblies& assemblies, graph::NodeId from, graph::NodeId to);

// "kernel 3: Conv 'conv1', Relu 'relu1'\n"
std::string kernel_title(const graph::Graph& graph, const graph::Region& region, int number);

}  // namespace fusewise::fusion
