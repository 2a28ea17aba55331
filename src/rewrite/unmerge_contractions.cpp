#include "rewrite/unmerge_contractions.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "rewrite/match.h"
#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

namespace {

using graph::DotAttributes;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;

// For each dimension of a reshape's result the operand's dimensions that it merges, those of 1 aside; nothing if the
// reshape does more than merge.
std::optional<std::vector<Shape>> merged_dims(const Shape& from, const Shape& to) {
  std::vector<Shape> groups(to.size());
  size_t next = 0;
  for (size_t d = 0; d < to.size(); ++d) {
    Dim product = 1;
    while (product != to[d]) {
      while (next < from.size() && from[next].is(1)) ++next;
      if (next == from.size() || from[next].is(0)) return std::nullopt;
      product = product * from[next];
      groups[d].push_back(from[next++]);
    }
  }
  const bool rest = std::all_of(from.begin() + static_cast<std::ptrdiff_t>(next), from.end(),
                                [](const Dim& d) { return d.is(1); });
  if (!rest) return std::nullopt;
  return groups;
}

// One operand of a contraction: its batch and contracted dimensions.
struct Side {
  Value value;
  std::vector<int> batch, contract;
};

// The operand with dimension `contract[i]` replaced by the dimensions `groups[i]`, wherever those are not just one.
Side split(graph::GraphBuilder& builder, const Side& side, Value source, const std::vector<Shape>& groups) {
  const Shape old = builder.shape(side.value);
  Shape shape;
  std::vector<std::vector<int>> places(old.size());
  for (size_t d = 0; d < old.size(); ++d) {
    const auto at = std::find(side.contract.begin(), side.contract.end(), static_cast<int>(d));
    const Shape parts =
        at == side.contract.end() ? Shape{old[d]} : groups[static_cast<size_t>(at - side.contract.begin())];
    for (const Dim& part : parts) {
      places[d].push_back(static_cast<int>(shape.size()));
      shape.push_back(part);
    }
  }
  Side result;
  result.value = builder.shape(source) == shape ? source : builder.reshape(source, shape);
  for (int d : side.batch) result.batch.push_back(places[static_cast<size_t>(d)][0]);
  for (int d : side.contract)
    for (int place : places[static_cast<size_t>(d)]) result.contract.push_back(place);
  return result;
}

// What the contracted dimensions of `side` are merged from; nothing if its reshape leaves them as they are or merges
// others, too.
std::optional<std::vector<Shape>> contracted_groups(const Graph& graph, const Side& side) {
  const Node* view = node_of(graph, side.value, Op::reshape);
  if (!view) return std::nullopt;
  const Shape& to = graph.type(side.value).shape;
  const auto merged = merged_dims(graph.type(view->operands[0]).shape, to);
  if (!merged) return std::nullopt;
  std::vector<Shape> groups;
  bool several = false;
  for (int d : side.contract) {
    const Shape& parts = (*merged)[static_cast<size_t>(d)];
    groups.push_back(parts.empty() ? Shape{Dim(1)} : parts);
    several = several || parts.size() > 1;
  }
  for (size_t d = 0; d < to.size(); ++d)
    if (!std::count(side.contract.begin(), side.contract.end(), static_cast<int>(d)) &&
        (*merged)[d].size() > 1)
      return std::nullopt;
  return several ? std::optional(groups) : std::nullopt;
}

std::optional<Value> unmerged(Rebuilder& r, const Node& node) {
  const auto& a = graph::attributes<DotAttributes>(node);
  Side sides[2] = {{node.operands[0], a.lhs_batch, a.lhs_contract},
                   {node.operands[1], a.rhs_batch, a.rhs_contract}};
  bool changed = false;
  for (int s = 0; s < 2; ++s) {
    Side &own = sides[s], &other = sides[1 - s];
    const auto groups = contracted_groups(r.result(), own);
    if (!groups) continue;
    const Node view = r.result().node(own.value.node);  // a copy: the builder appends
    r.also_from(view.sources);
    own = split(r.builder(), own, view.operands[0], *groups);
    other = split(r.builder(), other, other.value, *groups);
    changed = true;
  }
  if (!changed) return std::nullopt;
  const DotAttributes split_attributes{sides[0].batch, sides[1].batch, sides[0].contract, sides[1].contract};
  return r.builder().append(Op::dot, {sides[0].value, sides[1].value}, split_attributes, node.results[0]);
}

}  // namespace

Rewritten unmerge_contractions(Graph graph, const RewriteContext&) {
  Rebuilder rebuilder(std::move(graph));
  for (NodeId id = 0; id < rebuilder.size(); ++id) {
    const Node& node = rebuilder.begin(id);
    std::optional<Value> value;
    if (node.op == Op::dot) value = unmerged(rebuilder, node);
    if (value)
      rebuilder.replace(id, *value);
    else
      rebuilder.keep(id);
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite
