// Keys that find a primitive again after the model was imported anew.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace fusewise::fusion {

class NodeKeys {
 public:
  explicit NodeKeys(const graph::Graph& graph);
  nlohmann::ordered_json key_of(graph::NodeId node) const;
  // UserError, beginning with `where`, for a key that fits no node.
  graph::NodeId node_of(const nlohmann::ordered_json& key, const std::string& where) const;
  // The primitives that a model node owns.
  const std::vector<graph::NodeId>& primitives_of(int64_t model_node) const;

 private:
  const graph::Graph& graph_;
  std::vector<std::vector<graph::NodeId>> owned_;  // by model node, behind those of none
  std::vector<int> ordinal_;
};

}  // namespace fusewise::fusion
