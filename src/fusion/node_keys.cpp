#include "fusion/node_keys.h"

#include <fmt/format.h>

#include "base/error.h"
#include "fusion/model_nodes.h"

namespace fusewise::fusion {

using Json = nlohmann::ordered_json;
using graph::NodeId;

NodeKeys::NodeKeys(const graph::Graph& graph)
    : graph_(graph), owned_(graph.model_nodes.size() + 1), ordinal_(graph.size(), 0) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto& sources = graph.node(id).sources;
    std::vector<NodeId>& owned = owned_[sources.empty() ? 0 : size_t{sources[0]} + 1];
    ordinal_[id] = static_cast<int>(owned.size());
    owned.push_back(id);
  }
}

Json NodeKeys::key_of(NodeId node) const {
  const graph::Node& n = graph_.node(node);
  Json::object_t key;
  key.reserve(5);
  key.emplace("source", n.sources.empty() ? -1 : static_cast<int64_t>(n.sources[0]));
  if (!n.sources.empty()) {
    key.emplace("name", model_node_name(graph_, n.sources[0]));
    key.emplace("op", graph_.model_nodes[n.sources[0]].op_type);
  }
  key.emplace("primitive", ordinal_[node]);
  key.emplace("kind", std::string(graph::name_of(n.op)));
  return key;
}

const std::vector<NodeId>& NodeKeys::primitives_of(int64_t model_node) const {
  static const std::vector<NodeId> none;
  const auto place = static_cast<size_t>(model_node + 1);
  return place < owned_.size() ? owned_[place] : none;
}

NodeId NodeKeys::node_of(const Json& key, const std::string& where) const {
  const auto refuse = [&](const std::string& why) -> NodeId {
    throw UserError(fmt::format("{} does not fit this model: {}", where, why),
                    {.node = key.value("name", std::string())});
  };
  if (!key.is_object()) return refuse("a node's key is an object");
  int64_t source = key.value("source", int64_t{-1});
  const std::string name = key.value("name", std::string()), op = key.value("op", std::string());
  const auto same = [&](int64_t s) {
    return s >= 0 && s < static_cast<int64_t>(graph_.model_nodes.size()) &&
           model_node_name(graph_, static_cast<uint32_t>(s)) == name &&
           graph_.model_nodes[static_cast<size_t>(s)].op_type == op;
  };
  // The file may have been edited around the node: its name finds it again.
  if (source >= 0 && !same(source)) {
    int64_t found = -1;
    for (size_t i = 0; i < graph_.model_nodes.size(); ++i)
      if (same(static_cast<int64_t>(i))) found = found < 0 ? static_cast<int64_t>(i) : -2;
    if (found < 0) return refuse(fmt::format("it has no node #{} '{}' of type {}", source, name, op));
    source = found;
  }
  const std::vector<NodeId>& owned = primitives_of(source);
  const auto ordinal = key.value("primitive", int64_t{0});
  if (ordinal < 0 || ordinal >= static_cast<int64_t>(owned.size()))
    return refuse(
        fmt::format("'{}' has {} primitives, the plan speaks of number {}", name, owned.size(), ordinal));
  const NodeId node = owned[static_cast<size_t>(ordinal)];
  const std::string kind = key.value("kind", std::string());
  if (!kind.empty() && kind != graph::name_of(graph_.node(node).op))
    return refuse(fmt::format("primitive {} of '{}' is a {}, the plan says {}", ordinal, name,
                              graph::name_of(graph_.node(node).op), kind));
  return node;
}

}  // namespace fusewise::fusion
