#include "rewrite/canonicalize_views.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "rewrite/match.h"
#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;
using Result = std::optional<Value>;

const std::vector<int>& dims_of(const Node& broadcast) {
  return graph::attributes<graph::BroadcastAttributes>(broadcast).dims;
}

// view(broadcast(s)) = broadcast(s) for a single element s
Result view_of_uniform(Rebuilder& r, const Node& node) {
  if (node.op == Op::broadcast || !node_of(r.result(), node.operands[0], Op::broadcast)) return std::nullopt;
  const Result one = uniform_source(r.result(), node.operands[0]);
  if (!one || !requires_nothing(r.result(), node)) return std::nullopt;
  return spread(r.builder(), *one, node.results[0].shape);
}

// transpose(x) = reshape(x) where the dimensions that are not 1 keep their order
Result transpose_of_units(Rebuilder& r, const Node& node) {
  const Shape& shape = r.result().type(node.operands[0]).shape;
  int last = -1;
  for (int d : graph::attributes<graph::TransposeAttributes>(node).permutation) {
    if (shape[static_cast<size_t>(d)].is(1)) continue;
    if (d < last) return std::nullopt;
    last = d;
  }
  return r.builder().reshape(node.operands[0], node.results[0].shape);
}

// broadcast(x) = reshape(x) where all that is added is dimensions of 1
Result broadcast_of_units(Rebuilder& r, const Node& node) {
  const Shape& from = r.result().type(node.operands[0]).shape;
  const Shape& to = node.results[0].shape;
  std::vector<bool> same(to.size());
  for (size_t d = 0; d < from.size(); ++d) {
    const size_t place = static_cast<size_t>(dims_of(node)[d]);
    same[place] = from[d] == to[place];
  }
  for (size_t d = 0; d < to.size(); ++d)
    if (!same[d] && !to[d].is(1)) return std::nullopt;
  for (size_t d = 0; d < from.size(); ++d)
    if (!same[static_cast<size_t>(dims_of(node)[d])]) return std::nullopt;
  return r.builder().reshape(node.operands[0], to);
}

// broadcast(reshape(x), d) = broadcast(x, d') where the reshape only inserts dimensions of 1
Result broadcast_of_reshape(Rebuilder& r, const Node& node) {
  const Node* inner = node_of(r.result(), node.operands[0], Op::reshape);
  if (!inner) return std::nullopt;
  const Value x = inner->operands[0];
  const Shape& from = r.result().type(x).shape;
  const Shape& middle = inner->results[0].shape;
  std::vector<int> dims;
  for (size_t d = 0; d < middle.size(); ++d) {
    if (dims.size() < from.size() && from[dims.size()] == middle[d]) {
      dims.push_back(dims_of(node)[d]);
    } else if (!middle[d].is(1)) {
      return std::nullopt;
    }
  }
  if (dims.size() < from.size()) return std::nullopt;
  r.also_from(inner->sources);
  return r.builder().broadcast(x, node.results[0].shape, std::move(dims));
}

// broadcast(c) = broadcast(c without its dimensions of 1) for constants c
Result broadcast_of_constant(Rebuilder& r, const Node& node) {
  const graph::ConstantData* data = constant_of(r.result(), node.operands[0]);
  if (!data) return std::nullopt;
  Shape shape;
  std::vector<int> dims;
  for (size_t d = 0; d < data->type.shape.size(); ++d) {
    if (data->type.shape[d].is(1)) continue;
    shape.push_back(data->type.shape[d]);
    dims.push_back(dims_of(node)[d]);
  }
  if (shape.size() == data->type.shape.size()) return std::nullopt;
  const Value squeezed = r.builder().reshape(node.operands[0], std::move(shape));
  return r.builder().broadcast(squeezed, node.results[0].shape, std::move(dims));
}

// reshape(broadcast(x, d)) = broadcast(x, d') where the reshape only inserts and removes dimensions of 1
Result reshape_of_broadcast(Rebuilder& r, const Node& node) {
  const Node* inner = node_of(r.result(), node.operands[0], Op::broadcast);
  if (!inner) return std::nullopt;
  const Shape& middle = inner->results[0].shape;
  const Shape& to = node.results[0].shape;
  std::vector<bool> used(middle.size());
  for (int d : dims_of(*inner)) used[static_cast<size_t>(d)] = true;
  std::vector<int> place(middle.size(), -1);
  size_t i = 0, j = 0;
  while (i < middle.size() || j < to.size()) {
    if (i < middle.size() && j < to.size() && middle[i] == to[j]) {
      place[i++] = static_cast<int>(j++);
    } else if (j < to.size() && to[j].is(1)) {
      ++j;
    } else if (i < middle.size() && middle[i].is(1) && !used[i]) {
      ++i;
    } else {
      return std::nullopt;
    }
  }
  std::vector<int> dims;
  for (int d : dims_of(*inner)) dims.push_back(place[static_cast<size_t>(d)]);
  r.also_from(inner->sources);
  const Value x = inner->operands[0];
  return r.builder().broadcast(x, to, std::move(dims));
}

// transpose(broadcast(x, d), p) = broadcast(x, p^-1[d]) where the operand's dimensions keep their order
Result transpose_of_broadcast(Rebuilder& r, const Node& node) {
  const Node* inner = node_of(r.result(), node.operands[0], Op::broadcast);
  if (!inner) return std::nullopt;
  const auto& permutation = graph::attributes<graph::TransposeAttributes>(node).permutation;
  std::vector<int> place(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    place[static_cast<size_t>(permutation[i])] = static_cast<int>(i);
  std::vector<int> dims;
  for (int d : dims_of(*inner)) dims.push_back(place[static_cast<size_t>(d)]);
  if (!std::ranges::is_sorted(dims)) return std::nullopt;
  r.also_from(inner->sources);
  const Value x = inner->operands[0];
  return r.builder().broadcast(x, node.results[0].shape, std::move(dims));
}

Result canonical(Rebuilder& r, const Node& node) {
  const auto first = [&](auto... rules) {
    Result result;
    static_cast<void>(((result = rules(r, node)) || ...));
    return result;
  };
  switch (node.op) {
    case Op::broadcast:
      return first(broadcast_of_units, broadcast_of_reshape, broadcast_of_constant);
    case Op::reshape:
      return first(view_of_uniform, reshape_of_broadcast);
    case Op::slice:
      return view_of_uniform(r, node);
    case Op::transpose:
      return first(view_of_uniform, transpose_of_units, transpose_of_broadcast);
    default:
      return std::nullopt;
  }
}

}  // namespace

Rewritten canonicalize_views(Graph graph, const RewriteContext&) {
  Rebuilder rebuilder(std::move(graph));
  for (NodeId id = 0; id < rebuilder.size(); ++id) {
    const Node& node = rebuilder.begin(id);
    if (const Result value = canonical(rebuilder, node)) {
      rebuilder.replace(id, *value);
    } else {
      rebuilder.keep(id);
    }
  }
  return rebuilder.finish();
}

}  // namespace fusewise::rewrite
