// Works out values that depend on constants alone, where importing a node needs them now: sizes, axes,
// indices. (Folding for speed is the rewriter's.)
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace fusewise::onnx {

class ConstantFolder {
 public:
  explicit ConstantFolder(const graph::Graph& graph) : graph_(graph) {}

  // Whether nothing but constants goes into the value.
  bool is_constant(graph::Value value);
  // The value's data; nothing when it is not constant or larger than what is worked out while importing.
  std::optional<graph::ConstantData> fold(graph::Value value);

 private:
  bool depends_on_constants(graph::NodeId id) const;

  const graph::Graph& graph_;
  std::vector<bool> constant_;  // by node, as far as the graph was looked at
  std::map<graph::Value, std::optional<graph::ConstantData>> folded_;
};

}  // namespace fusewise::onnx
