#include "schedule/code_size.h"

#include <algorithm>
#include <bit>
#include <set>

#include "schedule/footprint.h"
#include "schedule/pieces.h"

namespace fusewise::schedule {

using graph::Form;
using graph::IndexExpr;
using graph::LinearIndex;
using graph::Read;

namespace {

// What vectors are reckoned to hold, and the lanes of a reduction.
constexpr int64_t lanes = 8, most_vectors = 10;
// A serial loop over a reduction is unrolled up to so many statements, and by no more than four.
constexpr int64_t longest_unrolled = 48;
constexpr size_t most_places = 4096;
// A run-time extent.
constexpr int64_t unknown = -1;

uint64_t mix(uint64_t a, uint64_t b) {
  return (a ^ (b + 0x9E3779B97F4A7C15ULL + (a << 6) + (a >> 2))) * 0xD6E8FEB86659FD93ULL;
}

uint64_t hash_of(const LinearIndex& index) {
  uint64_t h = index.constant.hash();
  for (const graph::AxisTerm& t : index.terms)
    h = mix(mix(h, static_cast<uint64_t>(t.axis)), t.coefficient.hash());
  return h;
}

uint64_t hash_of(const Read& read) {
  uint64_t h = read.index.size();
  for (const IndexExpr& e : read.index) {
    h = mix(h, hash_of(e.linear));
    for (const graph::QuasiTerm& q : e.quasi)
      h = mix(mix(mix(h, hash_of(q.inner)), q.divisor.hash()), q.modulus.hash());
    h = mix(h, e.gathered ? static_cast<uint64_t>(*e.gathered) + 1 : 0);
  }
  return h;
}

bool is_identity(const Form& form, const Read& read) {
  if (static_cast<int>(read.index.size()) != form.parallel_axes() || form.accumulation) return false;
  for (size_t d = 0; d < read.index.size(); ++d) {
    const IndexExpr& e = read.index[d];
    if (!e.quasi.empty() || e.gathered || !e.linear.constant.is(0) || e.linear.terms.size() != 1)
      return false;
    if (e.linear.terms[0].axis != static_cast<int>(d) || !e.linear.terms[0].coefficient.is(1)) return false;
  }
  return true;
}

// What one node of a body becomes: functions are expanded, the half types are computed in float32.
double expressions_of(const graph::BodyNode& node) {
  if (node.kind == graph::BodyNode::Kind::constant) return 0;
  if (node.kind != graph::BodyNode::Kind::apply) return 1;
  const double half = node.type == DataType::float16 || node.type == DataType::bfloat16 ? 3 : 0;
  const double wide = node.type == DataType::float64 ? 2 : 1;
  if (class_of(node.op) != ScalarClass::function) return half + 1;
  return half + wide * (arity_of(node.op) > 1 ? 200 : 40);  // of two operands: made of several of the others
}

class Counter {
 public:
  Counter(const RegionForms& forms, const Tree& tree)
      : forms_(forms), tree_(tree), weights_(tree.stages.size(), -1) {}

  double count() {
    for (size_t i = 0; i < tree_.stages.size(); ++i) {
      const Stage& s = tree_.stages[i];
      if (s.parent >= 0) continue;
      std::vector<int64_t> extents = constant_extents(s);
      for (int l = 0; l < s.grid_loops; ++l) cut(extents, s.loops[static_cast<size_t>(l)]);
      emit(static_cast<int>(i), s.grid_loops, extents);
    }
    return total_;
  }

 private:
  const RegionForms& forms_;
  const Tree& tree_;
  std::vector<double> weights_;
  double total_ = 0;
  std::map<int, std::map<NodeId, std::vector<int>>> axes_;          // per stage with register tiles
  std::map<int, std::map<NodeId, std::vector<uint64_t>>> depends_;  // per stage with children

  const Stage& stage(int i) const { return tree_.stages[static_cast<size_t>(i)]; }
  bool enough() const { return total_ > 1.1 * most_code; }

  std::vector<int64_t> constant_extents(const Stage& s) const {
    std::vector<int64_t> extents;
    const Form& form = forms_.form(s.node);
    for (int a = 0; a < form.parallel_axes(); ++a)
      extents.push_back(form.axes[static_cast<size_t>(a)].extent.constant().value_or(unknown));
    return extents;
  }
  static void cut(std::vector<int64_t>& extents, const LoopChoice& loop) {
    if (static_cast<size_t>(loop.axis) >= extents.size()) return;  // parts of a reduction
    int64_t& e = extents[static_cast<size_t>(loop.axis)];
    e = e != unknown && e % loop.tile == 0 ? std::min(e, loop.tile) : unknown;
  }

  // Expressions of one element: each inlined member once per different place at which it is read.
  double weight(int index) {
    double& known = weights_[static_cast<size_t>(index)];
    if (known >= 0) return known;
    const Stage& s = stage(index);
    std::map<NodeId, std::set<uint64_t>> places;
    places[s.node] = {1};
    std::vector<NodeId> order = {s.node};
    order.insert(order.end(), s.inlined.rbegin(), s.inlined.rend());
    known = 0;
    for (NodeId node : order) {
      const std::set<uint64_t> own = places[node];
      const Form& form = forms_.form(node);
      double each = static_cast<double>(form.axes.size());
      for (const graph::BodyNode& b : form.body) each += expressions_of(b);
      known += static_cast<double>(own.size()) * each;
      for (const Read& read : form.reads) {
        const NodeId producer = forms_.operand(node, read).node;
        if (!std::binary_search(s.inlined.begin(), s.inlined.end(), producer)) continue;
        std::set<uint64_t>& there = places[producer];
        const bool same = is_identity(form, read);
        const uint64_t map = hash_of(read);
        for (uint64_t place : own)
          if (there.size() < most_places) there.insert(same ? place : mix(place, map));
      }
    }
    return known;
  }

  int64_t limit(const Stage& s, int axis) const {
    if (s.vector_axis >= forms_.form(s.node).parallel_axes()) return 1;
    for (size_t l = s.loops.size(); l-- > 0;)
      if (s.loops[l].axis == axis) return s.loops[l].tile;
    if (s.placement == Placement::registers) return INT64_MAX;
    return axis == s.vector_axis ? 2 * lanes : 1;
  }

  void body(int index, const std::vector<int64_t>& extents) {
    const Stage& s = stage(index);
    const Form& form = forms_.form(s.node);
    double elements = 1;
    for (size_t a = 0; a < extents.size(); ++a) {
      const int64_t e = extents[a] == unknown ? lanes : extents[a];
      // A long vector loop becomes a loop over a few vectors and a tail.
      elements *= static_cast<double>(
          static_cast<int>(a) == s.vector_axis ? std::min((e + lanes - 1) / lanes, most_vectors) : e);
    }
    const double each = weight(index) + 2;
    if (!form.accumulation) {
      // Copies for the pieces of a concat, each with the loop around it.
      double copies = 0;
      for (int a = 0; a < form.parallel_axes(); ++a)
        copies += static_cast<double>(piece_borders(forms_, s, a).size());
      total_ += elements * (each + copies * static_cast<double>(body_operations(forms_, s))) + 20 * copies;
    } else if (form.accumulation->sequential) {
      const graph::Axis last = form.axes.empty() ? graph::Axis{1, false} : form.axes.back();
      const int64_t taps =
          last.reduction && last.extent.is_constant() && last.extent.value() <= 8
              ? std::max<int64_t>(last.extent.value(), 1)
              : std::clamp<int64_t>(longest_unrolled / std::max<int64_t>(static_cast<int64_t>(elements), 1),
                                    1, 4);
      total_ += elements * (each * static_cast<double>(taps * taps_) + 4);
    } else {
      // Threads reduce in loops, alone or in teams.
      if (tree_.threads > 1) {
        total_ += 2 * (each + 4) + 100;
        return;
      }
      const bool along = s.vector_axis >= form.parallel_axes();
      const double copies = along ? 2.0 * static_cast<double>((tree_.order.lanes + lanes - 1) / lanes)
                                  : 2.0 * tree_.order.lanes * elements;
      total_ += copies * (each + 4) + 50;
    }
  }

  void emit(int index, int depth, const std::vector<int64_t>& extents) {
    if (enough()) return;
    total_ += 5;
    const Stage& s = stage(index);
    const bool innermost = depth == static_cast<int>(s.loops.size());
    if (innermost) {
      for (int pass = 0; pass < 2; ++pass)
        for (int axis : s.storage) {
          if ((axis == s.vector_axis) != (pass == 1)) continue;
          const int64_t most = limit(s, axis), e = extents[static_cast<size_t>(axis)];
          if (e != unknown && e <= most) continue;
          if (e == unknown && axis == s.vector_axis && tail_) continue;
          return steps(index, depth, extents, axis, most);
        }
    }
    for (int child : s.children)
      if (stage(child).depth == depth) emit_child(index, child, extents);
    if (innermost) return body(index, extents);
    const LoopChoice& loop = s.loops[static_cast<size_t>(depth)];
    // Threads, and the steps of a reduction, have no tails: what sticks out is masked.
    if (tree_.threads > 1) {
      std::vector<int64_t> inner = extents;
      if (depth != s.reduction_loop) {
        int64_t& e = inner[static_cast<size_t>(loop.axis)];
        e = e != unknown ? std::min(e, loop.tile) : loop.tile;
      }
      return emit(index, depth + 1, inner);
    }
    if (static_cast<size_t>(loop.axis) >= extents.size()) return blocks(index, depth, extents);
    const bool last = std::none_of(s.loops.begin() + depth + 1, s.loops.end(),
                                   [&](const LoopChoice& l) { return l.axis == loop.axis; });
    if (last) return interior(index, depth + 1, extents, loop.axis, loop.tile);
    std::vector<int64_t> inner = extents;
    cut(inner, loop);
    emit(index, depth + 1, inner);
  }

  // The loop over blocks of a reduction, its tail, and what each member does before and after.
  void blocks(int index, int depth, const std::vector<int64_t>& extents) {
    const Stage& s = stage(index);
    const LoopChoice& loop = s.loops[static_cast<size_t>(depth)];
    const Dim& extent = forms_.form(s.node).axes[static_cast<size_t>(loop.axis)].extent;
    total_ += 30.0 * static_cast<double>(tree_.chains[static_cast<size_t>(s.chain)].stages.size());
    emit(index, depth + 1, extents);
    const bool tail = !s.partial && extent.is_constant() && extent.value() % loop.tile != 0;
    if (tail && extent.value() > loop.tile) emit(index, depth + 1, extents);
  }

  void emit_child(int parent, int child, const std::vector<int64_t>& extents) {
    const Stage& c = stage(child);
    std::vector<int64_t> own = constant_extents(c);
    if (c.placement == Placement::registers) {
      auto& axes_of_parent = axes_[parent];
      if (axes_of_parent.empty()) axes_of_parent = equal_axes(forms_, stage(parent).cone);
      const std::vector<int>& axes = axes_of_parent.at(c.node);
      for (size_t d = 0; d < own.size(); ++d)
        if (axes[d] >= 0) own[d] = extents[static_cast<size_t>(axes[d])];
      return body(child, own);
    }
    // What moves with the parent's loops is cut at the borders.
    auto& depends = depends_[parent];
    if (depends.empty()) depends = root_dependences(forms_, stage(parent).cone);
    const bool outer = tail_;
    tail_ = false;
    if (const auto it = depends.find(c.node); it != depends.end())
      for (size_t d = 0; d < own.size(); ++d)
        if (it->second[d] != 0 && own[d] != 1) own[d] = unknown;
    emit(child, 0, own);
    tail_ = outer;
  }

  // Taps that can fall on padding: at a constant place the tiles at both ends write their taps out, elsewhere three
  // loops are made of one.
  void interior(int index, int depth, const std::vector<int64_t>& extents, int axis, int64_t tile) {
    int64_t taps = 0;
    const auto guarded = [&](int i) {
      const Form& form = forms_.form(stage(i).node);
      if (!form.accumulation || !form.accumulation->sequential) return false;
      bool any = false;
      for (const Read& read : form.reads)
        for (const graph::Guard& guard : read.guards) {
          any = true;
          for (const graph::AxisTerm& t : guard.expr.linear.terms)
            if (const graph::Axis& a = form.axes[static_cast<size_t>(t.axis)]; a.reduction)
              taps = std::max(taps, a.extent.constant().value_or(1));
        }
      return any;
    };
    bool parts = guarded(index);
    for (int c : stage(index).children)
      parts = (stage(c).placement == Placement::registers && guarded(c)) || parts;
    if (!parts || tile == 1) return steps(index, depth, extents, axis, tile);
    std::vector<int64_t> inner = extents;
    int64_t& e = inner[static_cast<size_t>(axis)];
    const auto whole = forms_.form(stage(index).node).axes[static_cast<size_t>(axis)].extent.constant();
    if (axis != stage(index).vector_axis && whole && e == *whole) {
      const int64_t outer = taps_;
      const int64_t tiles = (e + tile - 1) / tile;
      taps_ = std::max<int64_t>(taps, 1);
      for (int64_t border = 0; border < std::min<int64_t>(tiles, 2); ++border) {
        e = border + 1 == tiles ? *whole - border * tile : tile;
        emit(index, depth, inner);
      }
      taps_ = outer;
      if (tiles > 2) {
        e = tile;
        emit(index, depth, inner);
      }
      return;
    }
    e = unknown;
    steps(index, depth, inner, axis, 1);
    steps(index, depth, inner, axis, tile);
    steps(index, depth, inner, axis, 1);
  }

  // Full steps, then the tail.
  void steps(int index, int depth, const std::vector<int64_t>& extents, int axis, int64_t tile) {
    std::vector<int64_t> inner = extents;
    int64_t& e = inner[static_cast<size_t>(axis)];
    const int64_t whole = e;
    if (whole != unknown && whole <= tile) return emit(index, depth, inner);
    e = tile;
    emit(index, depth, inner);
    if (whole != unknown) {
      e = whole % tile;
      if (e > 0) emit(index, depth, inner);
    } else if (axis == stage(index).vector_axis && tile > 1) {
      const bool outer = tail_;
      tail_ = true;
      emit(index, depth, inner);
      tail_ = outer;
    } else {
      for (auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(tile - 1)));
           step >= 1 && tile > 1; step /= 2) {
        e = step;
        emit(index, depth, inner);
      }
    }
  }

  int64_t taps_ = 1;   // within a tile at the border of an axis: the taps that are written out
  bool tail_ = false;  // within the tail of a vector axis: its extent counts as settled
};

}  // namespace

double code_size(const RegionForms& forms, const Tree& tree) { return Counter(forms, tree).count(); }

}  // namespace fusewise::schedule
