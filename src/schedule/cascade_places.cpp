#include <algorithm>

#include "schedule/cascade_summand.h"

namespace fusewise::schedule::derivation {

using graph::IndexExpr;

Place PlaceReader::axes_of(const Form& form) {
  Place place;
  for (size_t a = 0; a < form.axes.size(); ++a) place.push_back(static_cast<int>(a));
  return place;
}

bool PlaceReader::is_constant(const Place& place) const {
  return std::all_of(place.begin(), place.end(),
                     [&](int p) { return p != moving && (p < 0 || p < form_->parallel_axes()); });
}

Place PlaceReader::place_of(Value operand, const Form& form, const Read& read, const Place& own) const {
  const Shape& shape = forms_.graph->type(operand).shape;
  Place place;
  for (size_t d = 0; d < shape.size(); ++d) place.push_back(index_place(form, read.index[d], own, shape[d]));
  return place;
}

int PlaceReader::index_place(const Form& form, const IndexExpr& index, const Place& own,
                             const Dim& extent) const {
  if (extent.is(1)) return only_element;
  const auto at = [&](int axis) { return own[static_cast<size_t>(axis)]; };
  const auto moves = [&](const graph::LinearIndex& linear) {
    return std::any_of(linear.terms.begin(), linear.terms.end(),
                       [&](const graph::AxisTerm& t) { return !is_constant({at(t.axis)}); });
  };
  if (index.gathered) {
    const Read& indices = form.reads[static_cast<size_t>(*index.gathered)];
    for (const IndexExpr& e : indices.index)
      if (e.gathered || moves(e.linear) || !e.quasi.empty()) return moving;
    return fixed;
  }
  bool any = moves(index.linear);
  for (const graph::QuasiTerm& q : index.quasi) any = any || moves(q.inner);
  if (index.quasi.empty() && index.linear.constant.is(0)) {
    if (index.linear.terms.empty()) return only_element;
    const graph::AxisTerm& t = index.linear.terms[0];
    if (index.linear.terms.size() == 1 && t.coefficient.is(1) && at(t.axis) >= 0 &&
        form.axes[static_cast<size_t>(t.axis)].extent == extent)
      return at(t.axis);
  }
  return any ? moving : fixed;
}

Leaf PlaceReader::operand_leaf(NodeId node, const Read& read, const Place& place) const {
  const Value operand = forms_.operand(node, read);
  return {operand, place_of(operand, forms_.form(node), read, place)};
}

Leaf PlaceReader::through_views(Leaf leaf) const {
  while (forms_.is_member(leaf.value.node)) {
    const Form& form = forms_.form(leaf.value.node);
    if (form.accumulation || form.body.size() != 1 || form.body[0].kind != BodyNode::Kind::read ||
        form.reads.size() != 1 || !form.reads[0].guards.empty())
      break;
    leaf = operand_leaf(leaf.value.node, form.reads[0], leaf.place);
  }
  return leaf;
}

std::optional<double> PlaceReader::literal(const Leaf& leaf) const {
  const Leaf source = through_views(leaf);
  if (forms_.is_member(source.value.node)) return std::nullopt;
  const auto scalar = literal_of(*forms_.graph, source.value);
  if (!scalar || !is_float(scalar->type)) return std::nullopt;
  return scalar->f;
}

}  // namespace fusewise::schedule::derivation
