#include "fusion/search/cluster_sums.h"

#include <algorithm>
#include <utility>

namespace fusewise::fusion {

namespace {

using Output = ClusterSums::Output;
using Read = ClusterSums::Read;

bool makes(const ClusterSums& sums, NodeId node) {
  return std::binary_search(sums.outputs.begin(), sums.outputs.end(), Output{node, 0},
                            [](const Output& a, const Output& b) { return a.node < b.node; });
}

uint32_t readers_in(const ClusterSums& sums, NodeId node) {
  auto it = std::lower_bound(sums.reads.begin(), sums.reads.end(), node,
                             [](const Read& read, NodeId n) { return read.input < n; });
  uint32_t count = 0;
  for (; it != sums.reads.end() && it->input == node; ++it) ++count;
  return count;
}

// The border of both as one cluster, in order: on_output(node, readers left) and on_read(read).
template <class OnOutput, class OnRead>
void visit_border(const ClusterSums& a, const ClusterSums& b, const OnOutput& on_output,
                  const OnRead& on_read) {
  const auto output = [&](const Output& o, const ClusterSums& other) {
    if (const uint32_t left = o.readers - readers_in(other, o.node)) on_output(o.node, left);
  };
  auto x = a.outputs.begin(), y = b.outputs.begin();
  while (x != a.outputs.end() || y != b.outputs.end()) {
    if (y == b.outputs.end() || (x != a.outputs.end() && x->node < y->node))
      output(*x++, b);
    else
      output(*y++, a);
  }
  const auto read = [&](const Read& r, const ClusterSums& other) {
    if (!makes(other, r.input)) on_read(r);
  };
  auto r = a.reads.begin(), s = b.reads.begin();
  while (r != a.reads.end() || s != b.reads.end()) {
    if (s == b.reads.end() ||
        (r != a.reads.end() && std::pair(r->input, r->reader) < std::pair(s->input, s->reader)))
      read(*r++, b);
    else
      read(*s++, a);
  }
}

}  // namespace

ClusterSums ClusterSummer::of_node(NodeId node) const {
  const cost::NodeFacts& facts = context_.facts.at(node);
  ClusterSums sums;
  const auto readers =
      static_cast<uint32_t>(context_.readers[node].size() + (context_.is_output[node] ? 1 : 0));
  if (readers) sums.outputs.push_back({node, readers});
  for (NodeId input : context_.inputs[node])
    sums.reads.push_back({input, node, !context_.is_source(input) && reads_directly(node, input)});
  sums.cycles = facts.cycles;
  sums.signature = facts.signature;
  sums.first = sums.last = node;
  sums.elements = facts.elements;
  sums.held =
      !facts.accumulates && !facts.gathers && !facts.pieces && (!facts.view || facts.plain_view) ? 0 : 1;
  sums.sequential = !sums.held || facts.sequential;
  sums.accumulates = facts.accumulates;
  sums.contracts = facts.contracts;
  sums.microseconds = price_of_both(sums, {});
  return sums;
}

ClusterSums ClusterSummer::of_both(const ClusterSums& a, const ClusterSums& b) const {
  ClusterSums sums;
  sums.outputs.reserve(a.outputs.size() + b.outputs.size());
  sums.reads.reserve(a.reads.size() + b.reads.size());
  visit_border(
      a, b, [&](NodeId node, uint32_t readers) { sums.outputs.push_back({node, readers}); },
      [&](const Read& read) { sums.reads.push_back(read); });
  sums.cycles = a.cycles + b.cycles;
  sums.signature = a.signature + b.signature;
  sums.first = std::min(a.first, b.first);
  sums.last = std::max(a.last, b.last);
  sums.elements = a.elements == b.elements ? a.elements : -1;
  sums.held = a.held + b.held;
  sums.sequential = a.sequential && b.sequential;
  sums.accumulates = a.accumulates || b.accumulates;
  sums.contracts = a.contracts || b.contracts;
  sums.microseconds = price_of_both(sums, {});
  return sums;
}

double ClusterSummer::price_of_both(const ClusterSums& a, const ClusterSums& b) const {
  const machine::Machine& machine = context_.options->machine;
  cost::RegionSums sums;
  sums.cycles = a.cycles + b.cycles;
  NodeId last = graph::no_node;
  visit_border(
      a, b,
      [&](NodeId node, uint32_t) {
        sums.add_value(context_.facts.at(node).bytes, false, machine, context_.cost);
      },
      [&](const Read& read) {
        if (read.input == last) return;
        last = read.input;
        const cost::NodeFacts& facts = context_.facts.at(read.input);
        sums.add_value(facts.bytes, facts.constant_only, machine, context_.cost);
      });
  return cost::price_closed_form(sums, machine, context_.cost).microseconds;
}

bool ClusterSummer::reads_directly(NodeId reader, NodeId producer) const {
  const std::span<const NodeId> operands = context_.facts.operands(reader);
  return std::any_of(operands.begin(), operands.end(), [&](NodeId node) {
    // A reshape keeps the order of the elements.
    while (node != producer && context_.free[node] && context_.graph->node(node).op == graph::Op::reshape)
      node = context_.facts.operands(node)[0];
    return node == producer;
  });
}

bool ClusterSummer::plain_merge(const ClusterSums& producer, const ClusterSums& reader) const {
  if (reader.held || reader.elements < 0 || producer.elements != reader.elements) return false;
  // Through a view the elements come in another order, which the closed form does not see.
  for (const Read& read : reader.reads)
    if (!read.direct && makes(producer, read.input)) return false;
  return producer.held <= 1 && producer.sequential;
}

}  // namespace fusewise::fusion
