#include "schedule/footprint.h"

#include <algorithm>
#include <cstdlib>

namespace fusewise::schedule {

using graph::Form;
using graph::IndexExpr;
using graph::LinearIndex;
using graph::Read;

int64_t usual_value(const Dim& dim, const SymbolValues& values) {
  if (const auto constant = dim.constant()) return std::max<int64_t>(*constant, 1);
  SymbolValues all = values;
  for (const std::string& symbol : dim.symbols())
    if (!all.count(symbol)) all[symbol] = symbol.find("batch") != std::string::npos ? 1 : 128;
  return std::max<int64_t>(dim.evaluate(all), 1);
}

namespace {

// Extents of all axes of a form when its result's box has extents `box`.
Extents axis_extents(const Form& form, const Extents& box, const SymbolValues& values) {
  Extents extents = box;
  for (size_t a = box.size(); a < form.axes.size(); ++a)
    extents.push_back(usual_value(form.axes[a].extent, values));
  return extents;
}

int64_t image_extent(const IndexExpr& index, const Extents& axes, int64_t whole, const SymbolValues& values) {
  if (index.gathered) return whole;
  int64_t extent = 1;
  for (const graph::AxisTerm& t : index.linear.terms)
    extent += std::abs(usual_value(t.coefficient, values)) * (axes[static_cast<size_t>(t.axis)] - 1);
  for (const graph::QuasiTerm& q : index.quasi) {
    int64_t inner = 1;
    for (const graph::AxisTerm& t : q.inner.terms)
      inner += std::abs(usual_value(t.coefficient, values)) * (axes[static_cast<size_t>(t.axis)] - 1);
    if (inner > 1) return whole;
  }
  return std::clamp<int64_t>(extent, 1, std::max<int64_t>(whole, 1));
}

}  // namespace

std::map<NodeId, Extents> needed_extents(const RegionForms& forms, const std::vector<NodeId>& cone,
                                         const Extents& root_tile, const SymbolValues& values) {
  std::map<NodeId, Extents> boxes;
  boxes[cone.front()] = root_tile;
  for (NodeId node : cone) {
    const auto it = boxes.find(node);
    if (it == boxes.end()) continue;
    const Form& form = forms.form(node);
    const Extents axes = axis_extents(form, it->second, values);
    for (const Read& read : form.reads) {
      const Value operand = forms.operand(node, read);
      if (!std::binary_search(cone.begin(), cone.end(), operand.node, std::greater<>())) continue;
      const Shape& shape = forms.graph->type(operand).shape;
      Extents& box = boxes[operand.node];
      box.resize(shape.size(), 1);
      for (size_t d = 0; d < shape.size(); ++d)
        box[d] = std::max(box[d], image_extent(read.index[d], axes, usual_value(shape[d], values), values));
    }
  }
  return boxes;
}

std::map<NodeId, std::vector<uint64_t>> root_dependences(const RegionForms& forms,
                                                         const std::vector<NodeId>& cone) {
  std::map<NodeId, std::vector<uint64_t>> depends;
  const Form& root = forms.form(cone.front());
  for (int a = 0; a < root.parallel_axes(); ++a)
    depends[cone.front()].push_back(uint64_t{1} << std::min(a, 63));
  depends[cone.front()];
  for (NodeId node : cone) {
    const auto it = depends.find(node);
    if (it == depends.end()) continue;
    const std::vector<uint64_t> own = it->second;
    const auto of_linear = [&](const LinearIndex& linear) {
      uint64_t bits = 0;
      for (const graph::AxisTerm& t : linear.terms)
        if (static_cast<size_t>(t.axis) < own.size()) bits |= own[static_cast<size_t>(t.axis)];
      return bits;
    };
    for (const Read& read : forms.form(node).reads) {
      const Value operand = forms.operand(node, read);
      if (!std::binary_search(cone.begin(), cone.end(), operand.node, std::greater<>())) continue;
      std::vector<uint64_t>& bits = depends[operand.node];
      bits.resize(read.index.size(), 0);
      for (size_t d = 0; d < read.index.size(); ++d) {
        bits[d] |= of_linear(read.index[d].linear);
        for (const graph::QuasiTerm& q : read.index[d].quasi) bits[d] |= of_linear(q.inner);
      }
    }
  }
  return depends;
}

}  // namespace fusewise::schedule
