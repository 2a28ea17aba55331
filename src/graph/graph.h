// Graph IR: nodes owned by id, primitives only, logical (no layouts). A value is (node, result index); only loops and
// branches have several results, and only `result` nodes read those, so that everybody else may go by nodes. Node ids are
// in topological order: operands have smaller ids than their users (the builder appends; rewrites arrange what they
// appended in the end), so every pass is a loop over ids and nothing recurses along the graph.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/indirect.h"
#include "graph/attributes.h"
#include "numerics/data_type.h"
#include "numerics/dim.h"

namespace fusewise::graph {

enum class Op : uint8_t {
#define OP(name, kind, arity) name,
#include "graph/ops.def"
#undef OP
};

// What fusion and scheduling reason by.
// opaque: no expression over an index space; a step of its own, whose operands and results are complete in memory.
// sweep: steps that follow each other (graph/sweep.h); a kernel of its own.
// control: loops and branches, whose bodies are graphs.
enum class Kind : uint8_t { source, map, view, reduce, contract, window, gather, opaque, sweep, control };

std::string_view name_of(Op op);
Kind kind_of(Op op);
int arity_of(Op op);
std::optional<Op> op_of(std::string_view name);

using NodeId = uint32_t;
inline constexpr NodeId no_node = UINT32_MAX;

struct Value {
  NodeId node = no_node;
  uint32_t result = 0;
  friend auto operator<=>(const Value&, const Value&) = default;
};

struct TensorType {
  DataType element = DataType::undefined;
  Shape shape;
  int rank() const { return static_cast<int>(shape.size()); }
  friend bool operator==(const TensorType& a, const TensorType& b) {
    return a.element == b.element && a.shape == b.shape;
  }
};
std::string to_string(const TensorType& type);  // "float32[batch, 768]"

// A node of the model file, for messages, plans and traces.
struct ModelNode {
  std::string name;     // may be empty
  std::string op_type;  // with its domain if not the default one
  std::string first_output;
};

class Graph;
// A graph inside a node; it is a value like all others and so is never changed, and copies of the node share it. What it
// reads from outside is captured: operands of the node that are inputs of the body.
using Body = std::shared_ptr<const Graph>;
// Nothing nests bodies deeper than this, so that what recurses into bodies needs little stack.
inline constexpr int deepest_body = 32;

struct Node {
  Op op;
  std::vector<Value> operands;
  Attributes attributes;
  std::vector<TensorType> results;  // one, or of kind control any number, which `result` nodes take out
  std::vector<uint32_t> sources;    // indices into Graph::model_nodes, the first is the owner
  std::vector<Body> bodies = {};    // of kind control
};

// Constant data: bytes with a shared owner (a mapped file, or memory), never copied by graph passes. Row-major,
// in the element type's storage; static shape.
struct ConstantData {
  TensorType type;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  std::string name;
};

struct GraphInput {
  NodeId node;
  std::string name;
};
struct GraphOutput {
  Value value;
  std::string name;
};

class Graph {
 public:
  std::string name;
  std::vector<ModelNode> model_nodes;
  std::vector<ConstantData> constants;
  std::vector<GraphInput> inputs;
  std::vector<GraphOutput> outputs;

  // A reference to a node holds as long as the node is in the graph, whatever is appended.
  const Node& node(NodeId id) const { return *nodes_[id]; }
  size_t size() const { return nodes_.size(); }
  const TensorType& type(Value v) const { return node(v.node).results[v.result]; }
  NodeId append(Node node) { return append(Indirect<Node>(std::move(node))); }
  NodeId append(Indirect<Node> node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size() - 1);
  }
  void reserve(size_t nodes) { nodes_.reserve(nodes); }
  Node& mutable_node(NodeId id) { return *nodes_[id]; }
  // For passes that make another graph of this one: the node itself, after which the graph has none there.
  Indirect<Node> release(NodeId id) { return std::move(nodes_[id]); }
  // Leaves the nodes of `order`, each named once, in this order. Operands of nodes that stay, inputs and outputs have to
  // be among them, and operands before their readers; ids change.
  void arrange(std::span<const NodeId> order);
  // For rewrites: a node that takes the place of another one also comes from what that one came from. Keeps the
  // first `most_sources`, so that long chains of rewrites stay linear.
  static constexpr size_t most_sources = 64;
  void add_sources(NodeId id, std::span<const uint32_t> sources);

 private:
  std::vector<Indirect<Node>> nodes_;
};

// The typed attributes of a node; check fails when the operation has others.
template <class A>
const A& attributes(const Node& node) {
  return std::get<A>(node.attributes);
}

// The symbols that a node binds when it runs: sizes that only its operands' values give. Symbols that no node binds
// come from the shapes of the inputs.
std::span<const std::string> bound_symbols(const Node& node);
// The symbols that a node's result types and attributes speak of.
std::set<std::string> symbols_of(const Node& node);
// For each node the nodes that bind symbols that it speaks of, itself left out, in id order: they must run before it
// although it may read none of their results. Empty when no node binds any.
std::vector<std::vector<NodeId>> symbol_binders(const Graph& graph);
inline bool is_opaque(const Graph& graph, NodeId node) {
  return kind_of(graph.node(node).op) == Kind::opaque;
}
// Is never computed together with others.
inline bool stands_alone(const Graph& graph, NodeId node) {
  const Kind kind = kind_of(graph.node(node).op);
  return kind == Kind::opaque || kind == Kind::sweep || kind == Kind::control;
}

// For each node, the nodes that use one of its results (each user once per use), in id order.
std::vector<std::vector<NodeId>> users(const Graph& graph);
// Whether nodes, bodies, constants, inputs and outputs are the same; names do not count.
bool same_graph(const Graph& a, const Graph& b);
bool same_bodies(const Node& a, const Node& b);
// The graph itself and all bodies at any depth, each behind what it is in.
std::vector<const Graph*> with_bodies(const Graph& graph);
// The constant a value is, or null.
const ConstantData* constant_of(const Graph& graph, Value value);

}  // namespace fusewise::graph
