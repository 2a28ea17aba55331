#include "cost/facts.h"

#include <algorithm>

#include "cost/signature.h"
#include "schedule/footprint.h"

namespace fusewise::cost {

using graph::BodyNode;
using graph::Form;
using graph::NodeId;

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

void classify(NodeFacts& facts) {
  const Form& form = facts.form;
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

void count(NodeFacts& facts, const graph::TensorType& type, const machine::Machine& machine,
           const SymbolValues& usual) {
  for (size_t a = 0; a < facts.form.axes.size(); ++a) {
    const auto extent = static_cast<double>(schedule::usual_value(facts.form.axes[a].extent, usual));
    facts.points *= extent;
    if (!facts.form.axes[a].reduction) facts.elements *= extent;
  }
  facts.bytes = facts.elements * bits_of(type.element) / 8;
  const PointWork work = point_work(facts.form, machine);
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

}  // namespace

GraphFacts graph_facts(const graph::Graph& graph, const machine::Machine& machine,
                       const SymbolValues& usual) {
  GraphFacts result;
  result.graph = &graph;
  result.usual = usual;
  auto all = std::make_shared<std::vector<NodeFacts>>(graph.size());
  std::vector<NodeFacts>& nodes = *all;
  result.nodes = all;
  for (NodeId id = 0; id < graph.size(); ++id) {
    NodeFacts& facts = nodes[id];
    const graph::Node& node = graph.node(id);
    facts.has_form = graph::has_form(graph, id);
    if (graph::kind_of(node.op) == graph::Kind::control) {
      facts.alone = true;
      for (const graph::TensorType& type : node.results) facts.bytes += usual_bytes(type, usual);
      continue;
    }
    const graph::TensorType& type = node.results[0];
    if (!facts.has_form) {
      facts.alone = graph::stands_alone(graph, id);
      for (const Dim& d : type.shape) facts.elements *= static_cast<double>(schedule::usual_value(d, usual));
      for (const graph::TensorType& made : node.results) facts.bytes += usual_bytes(made, usual);
      facts.constant_only = graph::constant_of(graph, {id, 0}) != nullptr;
      if (facts.constant_only) result.constant_bytes += facts.bytes;
      if (graph::kind_of(node.op) == graph::Kind::sweep) {
        facts.points = facts.elements;
        facts.cycles = cycles_per_step * facts.elements;
        facts.constant_only =
            is_static(type.shape) && std::all_of(node.operands.begin(), node.operands.end(),
                                                 [&](graph::Value v) { return nodes[v.node].constant_only; });
      }
      facts.signature = signature_of(graph, id, nullptr);
      continue;
    }
    facts.form = graph::form_of(graph, id);
    classify(facts);
    count(facts, type, machine, usual);
    if (facts.view && !node.operands.empty())
      facts.widens = facts.elements > nodes[node.operands[0].node].elements;
    facts.constant_only = is_static(type.shape) && index_is_static(facts.form) &&
                          std::all_of(node.operands.begin(), node.operands.end(),
                                      [&](graph::Value v) { return nodes[v.node].constant_only; });
    facts.signature = signature_of(graph, id, &facts.form);
  }
  return result;
}

}  // namespace fusewise::cost
