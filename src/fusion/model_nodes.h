// Names by which people point at nodes of the model: a node's name, else an output tensor's name, else "Conv#12"
// (the thirteenth Conv, counted from 0) or "#57" (node 57 of the file); with * and ? as wildcards in names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/region.h"

namespace fusewise::fusion {

// Indices into Graph::model_nodes, ascending; several for a pattern only. UserError when nothing fits, or when a name
// without wildcards fits several: the message lists the candidates.
std::vector<uint32_t> resolve_model_nodes(const graph::Graph& graph, std::string_view text);

// What the node is called in messages: its name, else its tensor, else "#57".
std::string model_node_name(const graph::Graph& graph, uint32_t model_node);

// The model nodes that a region computes, ascending. What comes from constants alone (a broadcast bound, which equal
// nodes all over the model share) counts only where there is nothing else.
std::vector<uint32_t> model_nodes_of(const graph::Graph& graph, const graph::Region& region);

bool matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace fusewise::fusion
