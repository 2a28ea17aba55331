#include "rewrite/merge_equal_nodes.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "graph/text_internal.h"
#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

namespace {

using graph::ConstantData;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;

bool commutes(const Node& node) {
  if (node.op != Op::map) return false;
  switch (graph::attributes<graph::MapAttributes>(node).op) {
    case ScalarOp::add:
    case ScalarOp::and_:
    case ScalarOp::equal:
    case ScalarOp::max:
    case ScalarOp::min:
    case ScalarOp::mul:
    case ScalarOp::not_equal:
    case ScalarOp::or_:
    case ScalarOp::xor_:
      return true;
    default:
      return false;
  }
}

template <class T>
void add_field(Hasher& hasher, const T& field) {
  if constexpr (std::is_same_v<T, Dim>) {
    hasher.add(field.hash());
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    hasher.add(field);
  } else {
    hasher.add(field.size());
    for (const auto& entry : field) add_field(hasher, entry);
  }
}

void add_attributes(Hasher& hasher, graph::Attributes attributes) {
  const auto field = [&](const char*, const auto& member) { add_field(hasher, member); };
  std::visit([&](auto& a) { graph::text_internal::visit_fields(field, a); }, attributes);
}

// A few pages of a constant, so that only constants that are probably equal are read as a whole.
void add_sample(Hasher& hasher, std::span<const std::byte> bytes) {
  constexpr size_t page = 4096, pages = 4;
  hasher.add(bytes.size());
  if (bytes.size() <= page * pages) {
    hasher.add_bytes(bytes);
    return;
  }
  for (size_t i = 0; i < pages; ++i)
    hasher.add_bytes(bytes.subspan((bytes.size() - page) / (pages - 1) * i, page));
}

bool same_constant(const ConstantData& a, const ConstantData& b) {
  if (a.type != b.type || a.bytes.size() != b.bytes.size()) return false;
  return a.bytes.data() == b.bytes.data() || a.bytes.empty() ||
         std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

// For each node the first one that computes the same.
class Leaders {
 public:
  explicit Leaders(const Graph& graph) : graph_(graph), leaders_(graph.size()) {
    for (NodeId id = 0; id < graph.size(); ++id) leaders_[id] = find(id);
  }
  NodeId of(NodeId id) const { return leaders_[id]; }

 private:
  std::vector<Value> operands_of(const Node& node) const {
    std::vector<Value> operands = node.operands;
    for (Value& operand : operands) operand.node = leaders_[operand.node];
    if (commutes(node)) std::ranges::sort(operands);
    return operands;
  }

  Hash128 hash_of(const Node& node) const {
    Hasher hasher;
    hasher.add(node.op).add(node.results[0].element);
    add_field(hasher, node.results[0].shape);
    for (const Value& operand : operands_of(node)) hasher.add(operand.node).add(operand.result);
    if (node.op == Op::constant) {
      const uint32_t index = graph::attributes<graph::ConstantAttributes>(node).constant;
      add_sample(hasher, graph_.constants[index].bytes);
    } else {
      add_attributes(hasher, node.attributes);
    }
    return hasher.finish();
  }

  bool same(NodeId left, NodeId right) const {
    const Node &a = graph_.node(left), &b = graph_.node(right);
    if (a.op != b.op || a.results != b.results || operands_of(a) != operands_of(b)) return false;
    if (a.op != Op::constant) return a.attributes == b.attributes;
    return same_constant(*constant_of(graph_, {left, 0}), *constant_of(graph_, {right, 0}));
  }

  NodeId find(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == Op::input) return id;
    std::vector<NodeId>& bucket = buckets_[hash_of(node)];
    for (NodeId candidate : bucket)
      if (same(candidate, id)) return candidate;
    bucket.push_back(id);
    return id;
  }

  const Graph& graph_;
  std::vector<NodeId> leaders_;
  std::unordered_map<Hash128, std::vector<NodeId>> buckets_;
};

}  // namespace

Graph merge_equal_nodes(const Graph& graph, const RewriteContext&) {
  const Leaders leaders(graph);
  Rebuilder rebuilder(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeId leader = leaders.of(id);
    if (leader == id) {
      rebuilder.keep(id);
    } else {
      rebuilder.replace(id, rebuilder.moved({leader, 0}));
    }
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite
