#include "graph/graph.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <unordered_map>

#include "base/error.h"
#include "graph/text_internal.h"

namespace fusewise::graph {

namespace {

struct Row {
  std::string_view name;
  Kind kind;
  int arity;
};

constexpr auto rows = std::to_array<Row>({
#define OP(name, kind, arity) {#name, Kind::kind, arity},
#include "graph/ops.def"
#undef OP
});

// A node's attributes are the alternative with the number of its operation.
static_assert(rows.size() == std::variant_size_v<Attributes>);

const Row& row_of(Op op) {
  check(static_cast<size_t>(op) < rows.size(), "operation out of range");
  return rows[static_cast<size_t>(op)];
}

}  // namespace

void Graph::arrange(std::span<const NodeId> order) {
  std::vector<NodeId> moved(nodes_.size(), no_node);
  std::vector<Indirect<Node>> arranged;
  arranged.reserve(order.size());
  const auto moved_to = [&](NodeId id) {
    check(moved[id] != no_node, "an arranged graph reads a node that is not in it, or not in it yet");
    return moved[id];
  };
  for (const NodeId id : order) {
    for (Value& operand : nodes_[id]->operands) operand.node = moved_to(operand.node);
    moved[id] = static_cast<NodeId>(arranged.size());
    arranged.push_back(std::move(nodes_[id]));
  }
  nodes_ = std::move(arranged);
  for (GraphInput& input : inputs) input.node = moved_to(input.node);
  for (GraphOutput& output : outputs) output.value.node = moved_to(output.value.node);
}

void Graph::add_sources(NodeId id, std::span<const uint32_t> sources) {
  std::vector<uint32_t>& known = nodes_[id]->sources;
  for (uint32_t source : sources) {
    if (known.size() >= most_sources) return;
    if (std::ranges::find(known, source) == known.end()) known.push_back(source);
  }
}

std::string_view name_of(Op op) { return row_of(op).name; }
Kind kind_of(Op op) { return row_of(op).kind; }
int arity_of(Op op) { return row_of(op).arity; }

std::optional<Op> op_of(std::string_view name) {
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].name == name) return static_cast<Op>(i);
  return std::nullopt;
}

std::string to_string(const TensorType& type) {
  return std::string(name_of(type.element)) + to_string(type.shape);
}

std::span<const std::string> bound_symbols(const Node& node) {
  return std::visit(
      [](const auto& a) -> std::span<const std::string> {
        if constexpr (requires { a.symbols; }) return a.symbols;
        return {};
      },
      node.attributes);
}

namespace {

template <class T>
void add_symbols(std::set<std::string>& symbols, const T& field) {
  if constexpr (std::is_same_v<T, Dim>) {
    if (!field.is_constant()) symbols.merge(field.symbols());
  } else if constexpr (std::is_same_v<T, std::optional<Dim>>) {
    if (field) add_symbols(symbols, *field);
  } else if constexpr (std::is_same_v<T, Shape>) {
    for (const Dim& dim : field) add_symbols(symbols, dim);
  }
}

}  // namespace

std::set<std::string> symbols_of(const Node& node) {
  std::set<std::string> symbols;
  for (const TensorType& type : node.results) add_symbols(symbols, type.shape);
  Attributes attributes = node.attributes;
  const auto field = [&](std::string_view, const auto& member) { add_symbols(symbols, member); };
  std::visit([&](auto& a) { text_internal::visit_fields(field, a); }, attributes);
  for (const Body& body : node.bodies)
    for (NodeId id = 0; id < body->size(); ++id) symbols.merge(symbols_of(body->node(id)));
  return symbols;
}

std::vector<std::vector<NodeId>> symbol_binders(const Graph& graph) {
  std::unordered_map<std::string_view, NodeId> binders;
  for (NodeId id = 0; id < graph.size(); ++id)
    for (const std::string& symbol : bound_symbols(graph.node(id))) binders.emplace(symbol, id);
  if (binders.empty()) return {};
  std::vector<std::vector<NodeId>> result(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    std::vector<NodeId>& own = result[id];
    for (const std::string& symbol : symbols_of(graph.node(id)))
      if (const auto found = binders.find(symbol); found != binders.end() && found->second != id)
        own.push_back(found->second);
    std::ranges::sort(own);
    own.erase(std::ranges::unique(own).begin(), own.end());
  }
  return result;
}

std::vector<std::vector<NodeId>> users(const Graph& graph) {
  std::vector<std::vector<NodeId>> result(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id)
    for (const Value& operand : graph.node(id).operands) result[operand.node].push_back(id);
  return result;
}

bool same_bodies(const Node& a, const Node& b) {
  return std::ranges::equal(a.bodies, b.bodies,
                            [](const Body& x, const Body& y) { return x == y || same_graph(*x, *y); });
}

namespace {

bool same_node(const Node& a, const Node& b) {
  return a.op == b.op && a.operands == b.operands && a.results == b.results && a.sources == b.sources &&
         a.attributes == b.attributes && same_bodies(a, b);
}

}  // namespace

bool same_graph(const Graph& a, const Graph& b) {
  if (a.size() != b.size() || a.constants.size() != b.constants.size()) return false;
  for (NodeId id = 0; id < a.size(); ++id)
    if (!same_node(a.node(id), b.node(id))) return false;
  const auto same_data = [](const ConstantData& x, const ConstantData& y) {
    return x.bytes.data() == y.bytes.data() && x.type == y.type;
  };
  const auto same_input = [](const GraphInput& x, const GraphInput& y) { return x.node == y.node; };
  const auto same_output = [](const GraphOutput& x, const GraphOutput& y) { return x.value == y.value; };
  return std::ranges::equal(a.constants, b.constants, same_data) &&
         std::ranges::equal(a.inputs, b.inputs, same_input) &&
         std::ranges::equal(a.outputs, b.outputs, same_output);
}

std::vector<const Graph*> with_bodies(const Graph& graph) {
  std::vector<const Graph*> all = {&graph};
  for (size_t i = 0; i < all.size(); ++i)
    for (NodeId id = 0; id < all[i]->size(); ++id)
      for (const Body& body : all[i]->node(id).bodies) all.push_back(body.get());
  return all;
}

const ConstantData* constant_of(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  if (node.op != Op::constant) return nullptr;
  return &graph.constants.at(attributes<ConstantAttributes>(node).constant);
}

}  // namespace fusewise::graph
