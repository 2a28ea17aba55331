#include "schedule/footprint.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <tuple>
#include <utility>

namespace fusewise::schedule {

using graph::Form;
using graph::IndexExpr;
using graph::LinearIndex;
using graph::Read;

namespace {

SymbolValues with_usual(const Dim& dim, const SymbolValues& values) {
  SymbolValues all = values;
  for (const std::string& symbol : dim.symbols())
    if (!all.count(symbol)) all[symbol] = symbol.find("batch") != std::string::npos ? 1 : 128;
  return all;
}

}  // namespace

int64_t usual_value(const Dim& dim, const SymbolValues& values) {
  if (const auto constant = dim.constant()) return std::max<int64_t>(*constant, 1);
  return std::max<int64_t>(dim.evaluate(with_usual(dim, values)), 1);
}

int64_t usual_offset(const Dim& dim, const SymbolValues& values) {
  return dim.is_constant() ? *dim.constant() : dim.evaluate(with_usual(dim, values));
}

namespace {

// Where a box begins: constant + sum of coefficient * atom. Atoms below `block_atom` are the root's axes, that one is
// the block of a reduction; the others stand for the floors and remainders that index maps take of such sums.
struct Begin {
  std::vector<std::pair<int, int64_t>> terms;  // ascending atoms
  int64_t constant = 0;

  void add(const Begin& other, int64_t times) {
    if (times == 0) return;
    constant += times * other.constant;
    for (const auto& [atom, coefficient] : other.terms) {
      const auto place = std::lower_bound(terms.begin(), terms.end(), std::make_pair(atom, INT64_MIN));
      if (place == terms.end() || place->first != atom)
        terms.insert(place, {atom, times * coefficient});
      else if ((place->second += times * coefficient) == 0)
        terms.erase(place);
    }
  }
  auto operator<=>(const Begin&) const = default;
};

struct Span {
  Begin begin;
  int64_t extent = 0;  // 0: nothing yet
};

class NeededBoxes {
 public:
  NeededBoxes(const RegionForms& forms, const SymbolValues& values, const ReducedBlocks& blocks)
      : forms_(forms), values_(values), blocks_(blocks) {}

  std::map<NodeId, Extents> find(const std::vector<NodeId>& cone, const Extents& root_tile) {
    for (size_t a = 0; a < root_tile.size(); ++a)
      boxes_[cone.front()].push_back({{{{static_cast<int>(a), 1}}, 0}, root_tile[a]});
    boxes_[cone.front()];
    for (NodeId node : cone)
      if (const auto it = boxes_.find(node); it != boxes_.end()) visit(node, it->second, cone);
    std::map<NodeId, Extents> extents;
    for (const auto& [node, box] : boxes_)
      for (Extents& e = extents[node]; const Span& span : box) e.push_back(span.extent);
    return extents;
  }

 private:
  static constexpr int block_atom = 64, quasi_atoms = 65;
  const RegionForms& forms_;
  const SymbolValues& values_;
  const ReducedBlocks& blocks_;
  std::map<NodeId, std::vector<Span>> boxes_;
  std::map<std::tuple<Begin, int64_t, int64_t>, int> atoms_;

  void visit(NodeId node, std::vector<Span> axes, const std::vector<NodeId>& cone) {
    const Form& form = forms_.form(node);
    for (size_t a = axes.size(); a < form.axes.size(); ++a)
      axes.push_back({{}, usual_value(form.axes[a].extent, values_)});
    // All that run over blocks are at the same one.
    if (const auto block = blocks_.find(node); block != blocks_.end()) {
      Span& along = axes[static_cast<size_t>(block->second.axis)];
      along = {{{{block_atom, 1}}, 0}, std::min(along.extent, block->second.extent)};
    }
    for (const Read& read : form.reads) {
      const Value operand = forms_.operand(node, read);
      if (!std::binary_search(cone.begin(), cone.end(), operand.node, std::greater<>())) continue;
      const Shape& shape = forms_.graph->type(operand).shape;
      std::vector<Span>& box = boxes_[operand.node];
      box.resize(shape.size());
      for (size_t d = 0; d < shape.size(); ++d) {
        const int64_t whole = usual_value(shape[d], values_);
        box[d] = hull(box[d], image(read.index[d], axes, whole), whole);
      }
    }
  }

  // The extent of a linear index over the axes; its beginning is added to `begin`.
  int64_t linear(const LinearIndex& index, const std::vector<Span>& axes, Begin& begin) const {
    int64_t extent = 1;
    begin.constant += usual_offset(index.constant, values_);
    for (const graph::AxisTerm& t : index.terms) {
      const Span& axis = axes[static_cast<size_t>(t.axis)];
      const int64_t c = usual_offset(t.coefficient, values_);
      begin.add(axis.begin, c);
      if (c < 0) begin.constant += c * (axis.extent - 1);
      extent += std::abs(c) * (axis.extent - 1);
    }
    return extent;
  }

  Span image(const IndexExpr& index, const std::vector<Span>& axes, int64_t whole) {
    if (index.gathered) return {{}, whole};
    Span result;
    result.extent = linear(index.linear, axes, result.begin);
    for (const graph::QuasiTerm& q : index.quasi) {
      Begin inner;
      if (linear(q.inner, axes, inner) > 1) return {{}, whole};
      const auto [atom, fresh] =
          atoms_.try_emplace(std::make_tuple(inner, usual_value(q.divisor, values_),
                                             q.modulus.is(0) ? 0 : usual_value(q.modulus, values_)),
                             quasi_atoms + static_cast<int>(atoms_.size()));
      result.begin.add({{{atom->second, 1}}, 0}, usual_offset(q.coefficient, values_));
    }
    if (result.extent >= whole) return {{}, whole};
    return result;
  }

  // Boxes whose distance is not known are taken to need everything between them.
  static Span hull(const Span& a, const Span& b, int64_t whole) {
    if (a.extent == 0) return b;
    if (a.begin.terms != b.begin.terms) return {{}, whole};
    Span result = a;
    result.begin.constant = std::min(a.begin.constant, b.begin.constant);
    result.extent =
        std::max(a.begin.constant + a.extent, b.begin.constant + b.extent) - result.begin.constant;
    if (result.extent >= whole) return {{}, whole};
    return result;
  }
};

}  // namespace

std::map<NodeId, Extents> needed_extents(const RegionForms& forms, const std::vector<NodeId>& cone,
                                         const Extents& root_tile, const SymbolValues& values,
                                         const ReducedBlocks& blocks) {
  return NeededBoxes(forms, values, blocks).find(cone, root_tile);
}

std::map<NodeId, std::vector<uint64_t>> root_dependences(const RegionForms& forms,
                                                         const std::vector<NodeId>& cone,
                                                         const ReducedBlocks& blocks) {
  std::map<NodeId, std::vector<uint64_t>> depends;
  const Form& root = forms.form(cone.front());
  for (int a = 0; a < root.parallel_axes(); ++a)
    depends[cone.front()].push_back(uint64_t{1} << std::min(a, 63));
  depends[cone.front()];
  for (NodeId node : cone) {
    const auto it = depends.find(node);
    if (it == depends.end()) continue;
    std::vector<uint64_t> own = it->second;
    if (const auto block = blocks.find(node); block != blocks.end()) {
      const auto top = blocks.find(cone.front());
      const int axis = top != blocks.end() ? top->second.axis : block->second.axis;
      own.resize(forms.form(node).axes.size(), 0);
      own[static_cast<size_t>(block->second.axis)] = uint64_t{1} << std::min(axis, 63);
    }
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
