#include "cost/signature.h"

#include <bit>

#include "graph/mix.h"

namespace fusewise::cost {

using graph::Form;
using graph::IndexExpr;
using graph::LinearIndex;

namespace {

void add_linear(Mixer& mixer, const LinearIndex& index) {
  mixer.add(index.constant);
  mixer.add(index.terms.size());
  for (const graph::AxisTerm& t : index.terms) {
    mixer.add(static_cast<uint64_t>(t.axis));
    mixer.add(t.coefficient);
  }
}

void add_index(Mixer& mixer, const IndexExpr& e) {
  add_linear(mixer, e.linear);
  mixer.add(e.quasi.size());
  for (const graph::QuasiTerm& q : e.quasi) {
    add_linear(mixer, q.inner);
    mixer.add(q.divisor);
    mixer.add(q.modulus);
    mixer.add(q.coefficient);
  }
  mixer.add(e.gathered ? static_cast<uint64_t>(*e.gathered) + 1 : 0);
}

void add_body(Mixer& mixer, const Form& form) {
  for (const graph::BodyNode& b : form.body) {
    mixer.add(static_cast<uint64_t>(b.kind) << 16 | static_cast<uint64_t>(b.type) << 8 |
              static_cast<uint64_t>(b.op));
    mixer.add(static_cast<uint64_t>(static_cast<int64_t>(b.read)));
    for (int a : b.arguments) mixer.add(static_cast<uint64_t>(a));
    if (b.kind == graph::BodyNode::Kind::index) add_index(mixer, b.index);
    if (b.kind == graph::BodyNode::Kind::constant) {
      mixer.add(std::bit_cast<uint64_t>(b.constant.f));
      mixer.add(static_cast<uint64_t>(b.constant.i));
    }
  }
}

}  // namespace

uint64_t signature_of(const graph::Graph& graph, graph::NodeId id, const Form* form) {
  Mixer mixer;
  const graph::Node& node = graph.node(id);
  graph::mix(mixer, node.results[0]);
  if (!form) {
    mixer.add(graph::constant_of(graph, {id, 0}) ? 1 : 2);
    return mixer.hash();
  }
  for (graph::Value v : node.operands) graph::mix(mixer, graph.type(v));
  mixer.add(static_cast<uint64_t>(form->kind));
  for (const graph::Axis& a : form->axes) {
    mixer.add(a.extent);
    mixer.add(a.reduction ? 1 : 0);
  }
  for (const graph::Read& read : form->reads) {
    mixer.add(static_cast<uint64_t>(read.operand));
    for (const IndexExpr& e : read.index) add_index(mixer, e);
    for (const graph::Guard& g : read.guards) {
      add_index(mixer, g.expr);
      mixer.add(g.low);
      mixer.add(g.high);
    }
  }
  add_body(mixer, *form);
  if (form->accumulation) {
    const graph::Accumulation& a = *form->accumulation;
    mixer.add(static_cast<uint64_t>(a.combine) << 16 | static_cast<uint64_t>(a.accumulator) << 8 |
              static_cast<uint64_t>(a.multiply_add) << 1 | static_cast<uint64_t>(a.sequential));
  }
  return mixer.hash();
}

}  // namespace fusewise::cost
