// Views of views, views that change nothing, and reductions of single elements. A view whose sizes must agree
// at run time (it has requirements) is not taken away: its error would go with it.
#include <algorithm>

#include "rewrite/algebra/rule.h"
#include "rewrite/match.h"

namespace fusewise::rewrite {

namespace {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::Value;
using Result = std::optional<Value>;

// The node behind the first operand if it is this operation and both can go.
const Node* inner_view(Rebuilder& r, const Node& node, Op op) {
  const Node* inner = node_of(r.result(), node.operands[0], op);
  if (!inner || !requires_nothing(r.result(), *inner) || !requires_nothing(r.result(), node)) return nullptr;
  r.also_from(inner->sources);
  return inner;
}

bool is_counting(const std::vector<int>& dims) {
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != static_cast<int>(i)) return false;
  return true;
}

// A view of the same shape in the same order is its operand.
Result view_of_all(Rebuilder& r, const Node& node) {
  const Shape& shape = r.result().type(node.operands[0]).shape;
  bool same = shape == node.results[0].shape;
  if (const auto* a = std::get_if<graph::BroadcastAttributes>(&node.attributes))
    same = same && is_counting(a->dims);
  if (const auto* a = std::get_if<graph::TransposeAttributes>(&node.attributes))
    same = is_counting(a->permutation);
  if (const auto* a = std::get_if<graph::SliceAttributes>(&node.attributes))
    same = same && std::ranges::all_of(a->steps, [](int64_t s) { return s == 1; }) &&
           std::ranges::all_of(a->starts, [](const Dim& d) { return d.is(0); });
  if (const auto* a = std::get_if<graph::PadAttributes>(&node.attributes))
    same = std::ranges::all_of(a->low, [](const Dim& d) { return d.is(0); }) &&
           std::ranges::all_of(a->high, [](const Dim& d) { return d.is(0); });
  if (node.op == Op::concat) same = node.operands.size() == 1;
  return same ? Result(node.operands[0]) : std::nullopt;
}

// transpose(transpose(x, p), q) = transpose(x, p[q])
Result transpose_of_transpose(Rebuilder& r, const Node& node) {
  const Node* inner = inner_view(r, node, Op::transpose);
  if (!inner) return std::nullopt;
  const auto& p = graph::attributes<graph::TransposeAttributes>(*inner).permutation;
  std::vector<int> both;
  for (int d : graph::attributes<graph::TransposeAttributes>(node).permutation)
    both.push_back(p[static_cast<size_t>(d)]);
  const Value x = inner->operands[0];
  return r.builder().transpose(x, std::move(both));
}

// reshape(reshape(x)) = reshape(x)
Result reshape_of_reshape(Rebuilder& r, const Node& node) {
  const Node* inner = inner_view(r, node, Op::reshape);
  if (!inner) return std::nullopt;
  const Value x = inner->operands[0];
  return r.builder().reshape(x, node.results[0].shape);
}

// broadcast(broadcast(x, d), e) = broadcast(x, e[d])
Result broadcast_of_broadcast(Rebuilder& r, const Node& node) {
  const Node* inner = inner_view(r, node, Op::broadcast);
  if (!inner) return std::nullopt;
  const auto& outer = graph::attributes<graph::BroadcastAttributes>(node).dims;
  std::vector<int> both;
  for (int d : graph::attributes<graph::BroadcastAttributes>(*inner).dims)
    both.push_back(outer[static_cast<size_t>(d)]);
  const Value x = inner->operands[0];
  return r.builder().broadcast(x, node.results[0].shape, std::move(both));
}

// slice(slice(x, s, t), u, v) = slice(x, s + t * u, t * v)
Result slice_of_slice(Rebuilder& r, const Node& node) {
  const Node* inner = inner_view(r, node, Op::slice);
  if (!inner) return std::nullopt;
  const auto& outer = graph::attributes<graph::SliceAttributes>(node);
  graph::SliceAttributes both = graph::attributes<graph::SliceAttributes>(*inner);
  for (size_t d = 0; d < both.starts.size(); ++d) {
    both.starts[d] = both.starts[d] + Dim(both.steps[d]) * outer.starts[d];
    both.steps[d] *= outer.steps[d];
  }
  const Value x = inner->operands[0];
  return r.builder().slice(x, std::move(both.starts), std::move(both.steps), node.results[0].shape);
}

// A reduction over dimensions of 1 is its operand's elements. Not sums of floats: they begin at +0, so that
// -0 becomes 0.
Result reduce_single_elements(Rebuilder& r, const Node& node) {
  const graph::TensorType& type = r.result().type(node.operands[0]);
  const auto& a = graph::attributes<graph::ReduceAttributes>(node);
  if (a.combine == Combine::sum && is_float(type.element)) return std::nullopt;
  const bool single =
      std::ranges::all_of(a.axes, [&](int d) { return type.shape[static_cast<size_t>(d)].is(1); });
  return single ? Result(r.builder().reshape(node.operands[0], node.results[0].shape)) : std::nullopt;
}

constexpr AlgebraRule rows[] = {
    {"broadcast_of_all", Op::broadcast, {}, view_of_all},
    {"broadcast_of_broadcast", Op::broadcast, {}, broadcast_of_broadcast},
    {"concat_of_one", Op::concat, {}, view_of_all},
    {"pad_nothing", Op::pad, {}, view_of_all},
    {"reduce_single_elements", Op::reduce, {}, reduce_single_elements},
    {"reshape_of_all", Op::reshape, {}, view_of_all},
    {"reshape_of_reshape", Op::reshape, {}, reshape_of_reshape},
    {"slice_of_all", Op::slice, {}, view_of_all},
    {"slice_of_slice", Op::slice, {}, slice_of_slice},
    {"transpose_of_all", Op::transpose, {}, view_of_all},
    {"transpose_of_transpose", Op::transpose, {}, transpose_of_transpose},
};

}  // namespace

std::span<const AlgebraRule> view_rules() { return rows; }

}  // namespace fusewise::rewrite
