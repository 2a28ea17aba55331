// Which box of every producer a stage's box needs: the images of the consumers' boxes under their index maps.
#include <algorithm>

#include "schedule/lower/lowering.h"

namespace fusewise::schedule {

Extent Lowering::domain_extent(const Dim& dim) {
  if (const auto constant = dim.constant()) return exact_extent(builder_, *constant);
  Extent e;
  e.value = e.bound_value = dim_expr(dim);
  for (int64_t m = 64; m > 1; m /= 2)
    if (dim.is_multiple_of(m)) {
      e.multiple = m;
      break;
    }
  return e;
}

namespace {

// At most one element: what a reader's border has cut from a point counts as one, so that a box that an inner loop
// needs lies within what an outer one has computed.
bool is_point(const BoxDim& dim) { return dim.extent.exact ? *dim.extent.exact == 1 : dim.extent.bound == 1; }

}  // namespace

// low' = constant + sum of a * low over positive coefficients, of a * high over negative ones;
// extent' = 1 + sum of |a| * (extent - 1). A reshape's floor and mod keep single points; what they do to larger
// boxes is bounded by the whole dimension, as is a coefficient known at run time only.
BoxDim Lowering::image_along(NodeId consumer, const Read& read, size_t dim, const Box& box,
                             const Dim& domain) {
  const Form& form = forms_.form(consumer);
  const IndexExpr& index = read.index[dim];
  const BoxDim whole{zero(), domain_extent(domain), true};
  // A single element is needed as it is, also where a guard keeps a reader's box beside it.
  if (index.gathered || domain.is(1)) return whole;
  Box axes = box;
  for (size_t a = box.size(); a < form.axes.size(); ++a)
    axes.push_back({zero(), domain_extent(form.axes[a].extent), true});
  if (const auto block = block_of_.find(consumer); block != block_of_.end())
    axes[static_cast<size_t>(block_axis(form))] = block->second;

  const int same = identity_axis(form, read, static_cast<int>(dim), domain);
  if (same >= 0) return axes[static_cast<size_t>(same)];

  const auto all_points = [&](const LinearIndex& linear) {
    return std::all_of(linear.terms.begin(), linear.terms.end(),
                       [&](const graph::AxisTerm& t) { return is_point(axes[static_cast<size_t>(t.axis)]); });
  };
  for (const graph::QuasiTerm& q : index.quasi)
    if (!all_points(q.inner)) return whole;
  for (const graph::AxisTerm& t : index.linear.terms)
    if (!t.coefficient.is_constant() && !is_point(axes[static_cast<size_t>(t.axis)])) return whole;

  Coordinates lows;
  for (const BoxDim& a : axes) lows.push_back(a.low);
  ExprId low = index_expr(consumer, index, lows, kernel::none);
  std::vector<SweptAxis> swept;
  for (const graph::AxisTerm& t : index.linear.terms) {
    const BoxDim& axis = axes[static_cast<size_t>(t.axis)];
    if (is_point(axis)) continue;
    const int64_t a = t.coefficient.value();
    const ExprId span = builder_.sub(axis.extent.value, builder_.integer(1));
    if (a < 0) low = builder_.add(low, builder_.mul(builder_.integer(a), span));
    swept.push_back({axis.extent, a});
  }
  BoxDim result;
  result.low = low;
  result.extent = swept_extent(builder_, swept);
  result.inside = false;
  return result;
}

Box Lowering::image(NodeId consumer, const Read& read, const Box& box) {
  const Shape& shape = forms_.graph->type(forms_.operand(consumer, read)).shape;
  Box result;
  for (size_t d = 0; d < shape.size(); ++d) result.push_back(image_along(consumer, read, d, box, shape[d]));
  return result;
}

std::map<NodeId, Box> Lowering::needed_boxes(int index, const Box& box) {
  const Stage& s = stage(index);
  std::map<NodeId, Box> boxes;
  boxes[s.node] = box;
  for (NodeId node : s.cone) {
    const auto it = boxes.find(node);
    if (it == boxes.end()) continue;
    Box own = it->second;
    // A point that a border cuts lies where the stage that computes it begins: what it reads is counted from there.
    const Shape& domain = shape_of(node);
    for (size_t d = 0; d < std::min(own.size(), domain.size()); ++d)
      if (is_point(own[d])) own[d] = clamp_to(builder_, own[d], dim_expr(domain[d]));
    for (const Read& read : forms_.form(node).reads) {
      const NodeId producer = forms_.operand(node, read).node;
      if (!std::binary_search(s.cone.begin(), s.cone.end(), producer, std::greater<>())) continue;
      const Box needed = image(node, read, own);
      const auto [place, first] = boxes.emplace(producer, needed);
      if (first) continue;
      const Shape& shape = shape_of(producer);
      for (size_t d = 0; d < needed.size(); ++d)
        place->second[d] = hull(builder_, place->second[d], needed[d], domain_extent(shape[d]));
    }
  }
  return boxes;
}

}  // namespace fusewise::schedule
