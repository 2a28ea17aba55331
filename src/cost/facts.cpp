#include "cost/facts.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "cost/signature.h"
#include "graph/form.h"
#include "graph/mix.h"
#include "schedule/footprint.h"
#include "schedule/region_forms.h"

namespace fusewise::cost {

using graph::BodyNode;
using graph::Form;
using graph::NodeId;

void NodeTable::add(const NodeFacts& facts, std::span<const graph::Value> operands) {
  for (const graph::Value& operand : operands) operands_.push_back(operand.node);
  begins_.push_back(operands_.size());
  Mixer mixer;
  mixer.add(facts.signature);
  mixer.add(std::bit_cast<uint64_t>(facts.bytes));
  const auto [from, to] = known_.equal_range(mixer.hash());
  for (auto it = from; it != to; ++it)
    if (different_[it->second] == facts) return number_.push_back(it->second);
  const auto fresh = static_cast<uint32_t>(different_.size());
  known_.emplace(mixer.hash(), fresh);
  number_.push_back(fresh);
  different_.push_back(facts);
}

namespace {

bool is_static(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_constant(); });
}

bool has_symbol(const graph::LinearIndex& index) {
  return !index.constant.is_constant() ||
         std::any_of(index.terms.begin(), index.terms.end(),
                     [](const graph::AxisTerm& t) { return !t.coefficient.is_constant(); });
}

bool index_is_static(const Form& form) {
  for (const graph::Read& read : form.reads)
    for (const graph::IndexExpr& e : read.index) {
      if (has_symbol(e.linear)) return false;
      for (const graph::QuasiTerm& q : e.quasi)
        if (has_symbol(q.inner) || !q.divisor.is_constant() || !q.modulus.is_constant()) return false;
    }
  return true;
}

void classify(NodeFacts& facts, const Form& form) {
  facts.accumulates = form.accumulation.has_value();
  facts.contracts = facts.accumulates && form.accumulation->multiply_add;
  facts.sequential = facts.accumulates && form.accumulation->sequential;
  bool affine = true;
  for (const graph::Read& read : form.reads) {
    facts.pieces = facts.pieces || (!read.guards.empty() && !facts.accumulates);
    for (const graph::IndexExpr& e : read.index) {
      facts.gathers = facts.gathers || e.gathered.has_value();
      affine = affine && e.quasi.empty();
    }
  }
  const bool computes = std::any_of(form.body.begin(), form.body.end(),
                                    [](const BodyNode& b) { return b.kind == BodyNode::Kind::apply; });
  facts.view = !facts.accumulates && !computes;
  facts.plain_view = facts.view && affine && !facts.gathers && !facts.pieces && form.reads.size() <= 1;
}

void count(NodeFacts& facts, const Form& form, const graph::TensorType& type, const machine::Machine& machine,
           const SymbolValues& usual) {
  for (const graph::Axis& axis : form.axes) {
    const auto extent = static_cast<double>(schedule::usual_value(axis.extent, usual));
    facts.points *= extent;
    if (!axis.reduction) facts.elements *= extent;
  }
  facts.bytes = facts.elements * bits_of(type.element) / 8;
  const PointWork work = point_work(form, machine);
  facts.point_operations = work.operations;
  facts.flops = work.flops * facts.points;
  facts.cycles = work.cycles.total() * facts.points / machine.lanes(DataType::float32);
}

// Of a sweep: a load, a dependent operation, a store.
constexpr double cycles_per_step = 4;

double usual_bytes(const graph::TensorType& type, const SymbolValues& usual) {
  double elements = 1;
  for (const Dim& d : type.shape) elements *= static_cast<double>(schedule::usual_value(d, usual));
  return elements * bits_of(type.element) / 8;
}

// Nodes by what they compute: operation, attributes and types. Repeated layers have few such classes.
class Classes {
 public:
  explicit Classes(const graph::Graph& graph) : graph_(graph) {}

  // The first node that computes the same as this one, or the node itself.
  NodeId first_like(NodeId id) {
    const graph::Node& node = graph_.node(id);
    Mixer mixer;
    mixer.add(static_cast<uint64_t>(node.op));
    graph::mix(mixer, node.attributes);
    graph::mix(mixer, node.results[0]);
    for (graph::Value v : node.operands) graph::mix(mixer, graph_.type(v));
    const auto [from, to] = first_.equal_range(mixer.hash());
    for (auto it = from; it != to; ++it)
      if (same(graph_.node(it->second), node)) return it->second;
    first_.emplace(mixer.hash(), id);
    return id;
  }

 private:
  const graph::Graph& graph_;
  std::unordered_multimap<uint64_t, NodeId> first_;

  bool same(const graph::Node& a, const graph::Node& b) const {
    const auto same_type = [&](graph::Value v, graph::Value w) { return graph_.type(v) == graph_.type(w); };
    return a.op == b.op && a.results[0] == b.results[0] &&
           std::ranges::equal(a.operands, b.operands, same_type) && a.attributes == b.attributes;
  }
};

// Of a node without a form: a source, or what stands alone.
NodeFacts formless_facts(const graph::Graph& graph, NodeId id, const NodeTable& before,
                         const SymbolValues& usual) {
  NodeFacts facts;
  const graph::Node& node = graph.node(id);
  if (graph::kind_of(node.op) == graph::Kind::control) {
    facts.alone = true;
    for (const graph::TensorType& made : node.results) facts.bytes += usual_bytes(made, usual);
    return facts;
  }
  const graph::TensorType& type = node.results[0];
  facts.alone = graph::stands_alone(graph, id);
  for (const Dim& d : type.shape) facts.elements *= static_cast<double>(schedule::usual_value(d, usual));
  for (const graph::TensorType& made : node.results) facts.bytes += usual_bytes(made, usual);
  facts.constant_only = graph::constant_of(graph, {id, 0}) != nullptr;
  facts.literal = facts.constant_only && schedule::literal_of(graph, {id, 0});
  if (graph::kind_of(node.op) == graph::Kind::sweep) {
    facts.points = facts.elements;
    facts.cycles = cycles_per_step * facts.elements;
    facts.constant_only =
        is_static(type.shape) && std::all_of(node.operands.begin(), node.operands.end(),
                                             [&](graph::Value v) { return before.at(v.node).constant_only; });
  }
  facts.signature = signature_of(graph, id, nullptr);
  return facts;
}

// As far as operation, attributes and types give them; `constant_only` stands for the node's own part of it.
NodeFacts form_facts(const graph::Graph& graph, NodeId id, const machine::Machine& machine,
                     const SymbolValues& usual) {
  NodeFacts facts;
  const Form form = graph::form_of(graph, id);
  const graph::TensorType& type = graph.type({id, 0});
  facts.has_form = true;
  classify(facts, form);
  count(facts, form, type, machine, usual);
  facts.constant_only = is_static(type.shape) && index_is_static(form);
  facts.signature = signature_of(graph, id, &form);
  return facts;
}

}  // namespace

GraphFacts graph_facts(const graph::Graph& graph, const machine::Machine& machine,
                       const SymbolValues& usual) {
  GraphFacts result;
  result.graph = &graph;
  result.usual = usual;
  auto nodes = std::make_shared<NodeTable>();
  Classes classes(graph);
  std::vector<bool> own_static(graph.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    NodeFacts facts;
    if (!graph::has_form(graph, id)) {
      facts = formless_facts(graph, id, *nodes, usual);
      if (graph::constant_of(graph, {id, 0})) result.constant_bytes += facts.bytes;
      nodes->add(facts, node.operands);
      continue;
    }
    if (const NodeId first = classes.first_like(id); first != id) {
      facts = nodes->at(first);
      own_static[id] = own_static[first];
    } else {
      facts = form_facts(graph, id, machine, usual);
      own_static[id] = facts.constant_only;
    }
    facts.constant_only =
        own_static[id] && std::all_of(node.operands.begin(), node.operands.end(),
                                      [&](graph::Value v) { return nodes->at(v.node).constant_only; });
    facts.widens =
        facts.view && !node.operands.empty() && facts.elements > nodes->at(node.operands[0].node).elements;
    nodes->add(facts, node.operands);
  }
  result.nodes = std::move(nodes);
  return result;
}

}  // namespace fusewise::cost
