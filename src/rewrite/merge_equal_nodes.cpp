#include "rewrite/merge_equal_nodes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "graph/mix.h"
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

// A few pages of a constant, so that only constants that are probably equal are read as a whole.
void add_sample(Mixer& mixer, std::span<const std::byte> bytes) {
  constexpr size_t page = 4096, pages = 4;
  mixer.add(bytes.size());
  const bool whole = bytes.size() <= page * pages;
  for (size_t i = 0; i < (whole ? 1 : pages); ++i)
    mixer.add(hash_bytes(whole ? bytes : bytes.subspan((bytes.size() - page) / (pages - 1) * i, page)).low);
}

bool same_constant(const ConstantData& a, const ConstantData& b) {
  if (a.type != b.type || a.bytes.size() != b.bytes.size()) return false;
  return a.bytes.data() == b.bytes.data() || a.bytes.empty() ||
         std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

// For each node the first one that computes the same.
class Leaders {
 public:
  explicit Leaders(const Graph& graph)
      : graph_(graph), leaders_(graph.size()), table_(std::bit_ceil(2 * graph.size() + 1), graph::no_node) {}

  std::vector<NodeId> find_all() {
    for (NodeId id = 0; id < graph_.size(); ++id) leaders_[id] = find(id);
    return std::move(leaders_);
  }

 private:
  Value leader(Value v) const { return {leaders_[v.node], v.result}; }

  // Of what commutes, which has two operands: in one order.
  std::pair<Value, Value> both_operands(const Node& node) const {
    const Value x = leader(node.operands[0]), y = leader(node.operands[1]);
    return std::minmax(x, y);
  }

  bool same_operands(const Node& a, const Node& b) const {
    if (commutes(a) && commutes(b)) return both_operands(a) == both_operands(b);
    return std::ranges::equal(a.operands, b.operands,
                              [&](Value x, Value y) { return leader(x) == leader(y); });
  }

  uint64_t hash_of(const Node& node) const {
    Mixer mixer;
    mixer.add(static_cast<uint64_t>(node.op));
    graph::mix(mixer, node.results[0]);
    const auto add = [&](Value v) { mixer.add(uint64_t{v.result} << 32 | v.node); };
    if (commutes(node)) {
      const auto [x, y] = both_operands(node);
      add(x);
      add(y);
    } else {
      for (Value operand : node.operands) add(leader(operand));
    }
    if (node.op == Op::constant) {
      const uint32_t index = graph::attributes<graph::ConstantAttributes>(node).constant;
      add_sample(mixer, graph_.constants[index].bytes);
    } else {
      graph::mix(mixer, node.attributes);
    }
    return mixer.hash();
  }

  bool same(NodeId left, NodeId right) const {
    const Node &a = graph_.node(left), &b = graph_.node(right);
    if (a.op != b.op || a.results != b.results || !same_operands(a, b)) return false;
    if (a.op != Op::constant) return a.attributes == b.attributes && same_bodies(a, b);
    return same_constant(*constant_of(graph_, {left, 0}), *constant_of(graph_, {right, 0}));
  }

  NodeId find(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == Op::input || !graph::bound_symbols(node).empty()) return id;
    const uint64_t hash = hash_of(node);
    hashes_.resize(id + 1);
    hashes_[id] = hash;
    // At most half of the table is taken.
    for (uint64_t place = hash;; ++place) {
      NodeId& entry = table_[place & (table_.size() - 1)];
      if (entry == graph::no_node) entry = id;
      if (entry == id || (hashes_[entry] == hash && same(entry, id))) return entry;
    }
  }

  const Graph& graph_;
  std::vector<NodeId> leaders_;
  std::vector<NodeId> table_;  // the leaders, from where their hashes point to on
  std::vector<uint64_t> hashes_;
};

}  // namespace

Rewritten merge_equal_nodes(Graph graph, const RewriteContext&) {
  const std::vector<NodeId> leaders = Leaders(graph).find_all();
  Rebuilder rebuilder(std::move(graph));
  for (NodeId id = 0; id < rebuilder.size(); ++id) {
    const NodeId leader = leaders[id];
    if (leader == id) {
      rebuilder.keep(id);
    } else {
      rebuilder.replace(id, rebuilder.moved({leader, 0}));
    }
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite
