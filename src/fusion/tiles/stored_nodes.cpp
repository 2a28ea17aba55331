#include "fusion/tiles/stored_nodes.h"

#include <algorithm>
#include <cstdlib>

#include "schedule/footprint.h"
#include "schedule/tree.h"

namespace fusewise::fusion {

using graph::Form;
using graph::IndexExpr;
using graph::NodeId;
using graph::Read;
using schedule::RegionForms;
using schedule::Value;

namespace {

// Fewer columns that belong together do not fill enough of a vector: lanes are gathered instead.
constexpr int64_t least_span = 4;

// The axis along which dimension `dim` of a read moves one by one.
int axis_along(const Read& read, size_t dim) {
  const IndexExpr& e = read.index[dim];
  if (e.gathered) return -1;
  for (const graph::AxisTerm& t : e.linear.terms)
    if (t.coefficient.is(1) || t.coefficient.is(-1)) return t.axis;
  for (const graph::QuasiTerm& q : e.quasi)
    if (q.divisor.is(1) && q.coefficient.is(1))
      for (const graph::AxisTerm& t : q.inner.terms)
        if (t.coefficient.is(1)) return t.axis;
  return -1;
}

bool uses(const Read& read, int axis) {
  return std::any_of(read.index.begin(), read.index.end(), [&](const IndexExpr& e) {
    const auto in = [&](const graph::LinearIndex& l) {
      return std::any_of(l.terms.begin(), l.terms.end(),
                         [&](const graph::AxisTerm& t) { return t.axis == axis; });
    };
    return in(e.linear) || std::any_of(e.quasi.begin(), e.quasi.end(),
                                       [&](const graph::QuasiTerm& q) { return in(q.inner); });
  });
}

int64_t weight_of(ScalarOp op) {
  if (class_of(op) == ScalarClass::function) return 8;
  return op == ScalarOp::div || op == ScalarOp::sqrt || op == ScalarOp::mod ? 3 : 1;
}

}  // namespace

namespace {

// The axis along which a read of a border value is contiguous.
int border_axis(const RegionForms& forms, const schedule::Layouts& layouts, Value operand, const Read& read) {
  const Shape& shape = forms.graph->type(operand).shape;
  schedule::Layout layout = schedule::row_major(static_cast<int>(shape.size()));
  if (const auto it = layouts.find(operand); it != layouts.end()) layout = it->second;
  if (!layout.blocks.empty()) return axis_along(read, static_cast<size_t>(layout.blocks.back().dim));
  for (size_t i = layout.order.size(); i-- > 0;)
    if (const auto d = static_cast<size_t>(layout.order[i]); !shape[d].is(1)) return axis_along(read, d);
  return -1;
}

// The contiguous axes of members, each found once: a chain of diamonds has more paths than there is time.
class ContiguousAxes {
 public:
  ContiguousAxes(const RegionForms& forms, const schedule::Layouts& layouts)
      : forms_(forms), layouts_(layouts) {}

  int of(NodeId node) {
    find_upstream(node);
    return known_.at(node);
  }
  int of(NodeId node, const Read& read) {
    if (const NodeId producer = forms_.operand(node, read).node; forms_.is_member(producer))
      find_upstream(producer);
    return known_read(node, read);
  }

 private:
  const RegionForms& forms_;
  const schedule::Layouts& layouts_;
  std::map<NodeId, int> known_;

  void find_upstream(NodeId last) {
    std::set<NodeId> upstream = {last};
    std::vector<NodeId> work = {last};
    while (!work.empty()) {
      const NodeId node = work.back();
      work.pop_back();
      for (const Read& read : forms_.form(node).reads)
        if (const NodeId producer = forms_.operand(node, read).node;
            forms_.is_member(producer) && upstream.insert(producer).second)
          work.push_back(producer);
    }
    for (NodeId node : upstream) known_[node] = find(node);  // producers have smaller ids
  }

  int known_read(NodeId node, const Read& read) const {
    const Value operand = forms_.operand(node, read);
    const Shape& shape = forms_.graph->type(operand).shape;
    if (shape.empty() || product(shape).is(1)) return -1;
    if (!forms_.is_member(operand.node)) return border_axis(forms_, layouts_, operand, read);
    const int axis = known_.at(operand.node);
    const bool parallel = axis >= 0 && axis < forms_.form(operand.node).parallel_axes();
    return parallel ? axis_along(read, static_cast<size_t>(axis)) : -1;
  }

  // Contractions deliver along the axis of their vector operand, the last read that has one.
  int find(NodeId node) const {
    const Form& form = forms_.form(node);
    int best = -1, best_rank = -1;
    for (const Read& read : form.reads) {
      const int axis = known_read(node, read);
      const int rank = static_cast<int>(read.index.size());
      if (axis < 0 || (form.accumulation && axis >= form.parallel_axes())) continue;
      if (rank > best_rank || (form.accumulation && rank == best_rank)) {
        best = axis;
        best_rank = rank;
      }
    }
    return best < 0 && form.accumulation ? form.parallel_axes() - 1 : best;
  }
};

}  // namespace

int contiguous_axis(const RegionForms& forms, const schedule::Layouts& layouts, NodeId node,
                    const Read& read) {
  return ContiguousAxes(forms, layouts).of(node, read);
}

int contiguous_axis(const RegionForms& forms, const schedule::Layouts& layouts, NodeId node) {
  return ContiguousAxes(forms, layouts).of(node);
}

// Columns that a read does not tell apart: the divisor by which it divides their axis and nothing else; 0 if it does
// more with that axis, or nothing at all.
static int64_t columns_together(const Read& read, int column) {
  int64_t divisor = 0;
  for (const IndexExpr& e : read.index) {
    const auto in = [&](const graph::LinearIndex& l) {
      return std::any_of(l.terms.begin(), l.terms.end(),
                         [&](const graph::AxisTerm& t) { return t.axis == column; });
    };
    if (in(e.linear)) return 0;
    for (const graph::QuasiTerm& q : e.quasi) {
      if (!in(q.inner)) continue;
      const bool alone = q.inner.terms.size() == 1 && q.inner.terms[0].coefficient.is(1) &&
                         q.inner.constant.is(0) && q.divisor.is_constant();
      if (!alone || divisor != 0) return 0;
      divisor = q.divisor.value();
    }
  }
  return divisor;
}

RowColumn row_and_column(const RegionForms& forms, const schedule::Layouts& layouts, NodeId node,
                         const SymbolValues& usual) {
  const Form& form = forms.form(node);
  const int rank = form.parallel_axes();
  const auto wide = [&](int axis) {
    return schedule::usual_value(form.axes[static_cast<size_t>(axis)].extent, usual) > 1;
  };
  RowColumn result;
  const Read* vector_read = nullptr;
  for (size_t r = form.reads.size(); r-- > 0 && result.column < 0;) {
    const int axis = contiguous_axis(forms, layouts, node, form.reads[r]);
    if (axis >= 0 && axis < rank && wide(axis)) {
      result.column = axis;
      vector_read = &form.reads[r];
    }
  }
  // No read is contiguous along a parallel axis (a stored operand will be): the last axis that a read moves with.
  for (size_t r = form.reads.size(); r-- > 0 && result.column < 0;)
    for (int a = rank; a-- > 0 && result.column < 0;)
      if (wide(a) && uses(form.reads[r], a)) {
        result.column = a;
        vector_read = &form.reads[r];
      }
  if (result.column < 0) {
    result.row = rank - 1;
    return result;
  }
  for (int a = rank; a-- > 0 && result.row < 0;)
    if (a != result.column && wide(a) && !uses(*vector_read, a)) result.row = a;
  for (int a = rank; a-- > 0 && result.row < 0;)
    if (a != result.column && wide(a)) result.row = a;
  result.depthwise = std::all_of(form.reads.begin(), form.reads.end(),
                                 [&](const Read& read) { return uses(read, result.column); });
  result.vector_operand = static_cast<int>(vector_read - form.reads.data());
  for (const Read& read : form.reads)
    if (&read != vector_read)
      if (const int64_t span = columns_together(read, result.column); span >= least_span) {
        result.span = span;
        result.depthwise = false;
      }
  return result;
}

bool owned_axes(const RegionForms& forms, const std::vector<NodeId>& cone, NodeId node) {
  // Per node and dimension: the root's axis it equals, -1 whole, -2 neither.
  std::map<NodeId, std::vector<int>> axes;
  const Form& root = forms.form(cone.front());
  for (int a = 0; a < root.parallel_axes(); ++a) axes[cone.front()].push_back(a);
  axes[cone.front()];
  for (NodeId reader : cone) {
    const auto it = axes.find(reader);
    if (it == axes.end()) continue;
    const std::vector<int> own = it->second;
    const Form& form = forms.form(reader);
    for (const Read& read : form.reads) {
      const Value operand = forms.operand(reader, read);
      if (!std::binary_search(cone.begin(), cone.end(), operand.node, std::greater<>())) continue;
      const Shape& shape = forms.graph->type(operand).shape;
      std::vector<int> mapped;
      for (size_t d = 0; d < shape.size(); ++d) {
        const int a =
            read.guards.empty() ? schedule::identity_axis(form, read, static_cast<int>(d), shape[d]) : -1;
        if (shape[d].is(1))
          mapped.push_back(-1);
        else if (a < 0)
          mapped.push_back(-2);
        else
          mapped.push_back(a < form.parallel_axes() ? own[static_cast<size_t>(a)] : -1);
      }
      const auto [place, first] = axes.emplace(operand.node, mapped);
      if (first) continue;
      for (size_t d = 0; d < mapped.size(); ++d) {
        int& known = place->second[d];
        if (known == -2 || mapped[d] == -2)
          known = known == -1 || mapped[d] == -1 ? -1 : -2;
        else if (known != mapped[d])
          known = -1;
      }
    }
  }
  const auto it = axes.find(node);
  if (it == axes.end()) return false;
  std::set<int> used;
  for (int a : it->second)
    if (a == -2 || (a >= 0 && !used.insert(a).second)) return false;
  return true;
}

namespace {

class Finder {
 public:
  Finder(const RegionForms& forms, const schedule::Layouts& layouts, const std::vector<NodeId>& cone,
         const SymbolValues& usual)
      : forms_(forms), layouts_(layouts), cone_(cone), usual_(usual) {}

  StoredNodes find() {
    find_consumers();
    result_.stages.insert(cone_.front());
    for (NodeId node : cone_)
      if (forms_.is_output(node) || forms_.form(node).accumulation) result_.stages.insert(node);
    find_hosts();
    for (NodeId node : cone_) {
      if (node == cone_.front()) continue;
      gather_readers(node);
      if (result_.stages.count(node)) continue;
      if (must_store(node)) result_.stages.insert(node);
    }
    for (NodeId stage : result_.stages) {
      if (stage == cone_.front()) continue;
      result_.readers[stage] = readers_[stage];
      for (NodeId reader : readers_[stage]) note_wanted_axis(stage, reader);
    }
    return std::move(result_);
  }

 private:
  const RegionForms& forms_;
  const schedule::Layouts& layouts_;
  const std::vector<NodeId>& cone_;
  const SymbolValues& usual_;
  StoredNodes result_;
  std::map<NodeId, std::vector<NodeId>> consumers_;  // within the cone
  std::map<NodeId, std::set<NodeId>> readers_;       // stages

  bool in_cone(NodeId node) const {
    return std::binary_search(cone_.begin(), cone_.end(), node, std::greater<>());
  }

  void find_consumers() {
    for (NodeId node : cone_)
      for (const Read& read : forms_.form(node).reads)
        if (const NodeId producer = forms_.operand(node, read).node; in_cone(producer))
          consumers_[producer].push_back(node);
  }

  bool is_map(NodeId node) const { return !forms_.form(node).accumulation; }

  // The nearest node through which every way from `node` to the root leads.
  NodeId post_dominator(NodeId node) {
    std::set<NodeId, std::less<>> front(consumers_[node].begin(), consumers_[node].end());
    while (front.size() > 1) {
      const NodeId nearest = *front.begin();
      front.erase(front.begin());
      if (consumers_[nearest].empty()) return graph::no_node;
      front.insert(consumers_[nearest].begin(), consumers_[nearest].end());
    }
    return front.empty() ? graph::no_node : *front.begin();
  }

  // Nodes strictly between: downstream of `from`, upstream of `to`.
  std::set<NodeId> between(NodeId from, NodeId to) {
    std::set<NodeId> seen;
    std::vector<NodeId> work = {from};
    while (!work.empty()) {
      const NodeId node = work.back();
      work.pop_back();
      for (NodeId c : consumers_[node])
        if (c != to && seen.insert(c).second) work.push_back(c);
    }
    return seen;
  }

  // For each axis of `node`, the axis of `host` that it equals through the nodes between; empty if some path is no
  // identity, or the host has further axes (it would compute the node again for each).
  std::vector<int> axes_in_host(NodeId node, NodeId host, const std::set<NodeId>& inner) const {
    std::map<NodeId, std::vector<int>> axes;
    const Form& own = forms_.form(host);
    for (int a = 0; a < own.parallel_axes(); ++a) axes[host].push_back(a);
    std::vector<NodeId> order = {host};
    order.insert(order.end(), inner.rbegin(), inner.rend());
    for (NodeId reader : order) {
      const auto it = axes.find(reader);
      if (it == axes.end()) continue;
      const std::vector<int> reader_axes = it->second;
      const Form& form = forms_.form(reader);
      for (const Read& read : form.reads) {
        const Value operand = forms_.operand(reader, read);
        if (operand.node != node && !inner.count(operand.node)) continue;
        const Shape& shape = forms_.graph->type(operand).shape;
        std::vector<int> mapped;
        for (size_t d = 0; d < shape.size(); ++d) {
          const int a =
              read.guards.empty() ? schedule::identity_axis(form, read, static_cast<int>(d), shape[d]) : -1;
          if (a < 0 || a >= form.parallel_axes()) return {};
          mapped.push_back(reader_axes[static_cast<size_t>(a)]);
        }
        const auto [place, first] = axes.emplace(operand.node, mapped);
        if (!first && place->second != mapped) return {};
      }
    }
    const auto it = axes.find(node);
    if (it == axes.end()) return {};
    std::set<int> covered(it->second.begin(), it->second.end());
    if (covered.size() != it->second.size()) return {};
    for (int a = 0; a < own.parallel_axes(); ++a)
      if (!covered.count(a) && !own.axes[static_cast<size_t>(a)].extent.is(1)) return {};
    return it->second;
  }

  // A contraction or window is held in the registers of the last elementwise node that all its readers lead to.
  void find_hosts() {
    std::map<NodeId, int> held;
    for (NodeId node : cone_) {
      const Form& form = forms_.form(node);
      if (!form.accumulation || !form.accumulation->sequential) continue;
      if (form.accumulation->multiply_add) result_.contracts = true;
      if (node == cone_.front() || forms_.is_output(node)) continue;
      NodeId host = graph::no_node;
      std::vector<int> host_axes;
      std::set<NodeId> inner;
      for (NodeId next = post_dominator(node); next != graph::no_node; next = post_dominator(next)) {
        const std::set<NodeId> middle = between(node, next);
        const bool plain = is_map(next) && std::all_of(middle.begin(), middle.end(), [&](NodeId n) {
                             return is_map(n) && !forms_.is_output(n);
                           });
        if (!plain) break;
        const std::vector<int> axes = axes_in_host(node, next, middle);
        if (axes.empty()) break;
        host = next;
        host_axes = axes;
        inner = middle;
        if (forms_.is_output(next) || next == cone_.front()) break;
      }
      if (host == graph::no_node || held[host] >= 2) continue;
      ++held[host];
      result_.stages.insert(host);
      result_.register_owner[node] = host;
      result_.host_axes[node] = host_axes;
    }
    // A host found for one contraction may lie between another one and its host; the nearer stage wins.
    for (auto it = result_.register_owner.begin(); it != result_.register_owner.end();) {
      const std::set<NodeId> inner = between(it->first, it->second);
      const bool cut =
          std::any_of(inner.begin(), inner.end(), [&](NodeId n) { return result_.stages.count(n) != 0; });
      if (cut) {
        result_.host_axes.erase(it->first);
        it = result_.register_owner.erase(it);
      } else {
        ++it;
      }
    }
  }

  void gather_readers(NodeId node) {
    for (NodeId c : consumers_[node]) {
      if (result_.stages.count(c))
        readers_[node].insert(c);
      else
        readers_[node].insert(readers_[c].begin(), readers_[c].end());
    }
  }

  // Work of one element, inlined producers included.
  int64_t weight(NodeId node) const {
    std::set<NodeId> seen = {node};
    std::vector<NodeId> work = {node};
    int64_t total = 0;
    while (!work.empty()) {
      const NodeId n = work.back();
      work.pop_back();
      for (const graph::BodyNode& b : forms_.form(n).body)
        if (b.kind == graph::BodyNode::Kind::apply) total += weight_of(b.op);
      for (const Read& read : forms_.form(n).reads) {
        const NodeId producer = forms_.operand(n, read).node;
        if (in_cone(producer) && !result_.stages.count(producer) && seen.insert(producer).second)
          work.push_back(producer);
      }
    }
    return total;
  }

  bool must_store(NodeId node) {
    const std::set<NodeId>& readers = readers_[node];
    const int64_t own_weight = weight(node);
    if (readers.size() >= 2 && own_weight >= 8) return true;
    return std::any_of(readers.begin(), readers.end(),
                       [&](NodeId reader) { return stored_for(node, reader, own_weight); });
  }

  // Operands of a contraction are read many times over: what costs work, or is not contiguous along the vectors, is
  // stored once.
  bool stored_for(NodeId node, NodeId reader, int64_t own_weight) const {
    const Form& form = forms_.form(reader);
    if (!form.accumulation || !form.accumulation->sequential) return false;
    const RowColumn tile = row_and_column(forms_, layouts_, reader, usual_);
    for (size_t r = 0; r < form.reads.size(); ++r) {
      const Read& read = form.reads[r];
      if (forms_.operand(reader, read).node != node) continue;
      if (tile.depthwise || !form.accumulation->multiply_add) return own_weight >= 1;
      const bool vector = tile.column >= 0 && uses(read, tile.column);
      const auto extent = [&](int a) {
        return a < 0 ? 1 : schedule::usual_value(form.axes[static_cast<size_t>(a)].extent, usual_);
      };
      if (vector) {
        if (extent(tile.row) <= 1) return false;
        return own_weight >= 1 || contiguous_axis(forms_, layouts_, reader, read) != tile.column;
      }
      // Read lane by lane and once per panel of columns; stored, whole vectors at once.
      return own_weight >= 8 ? extent(tile.column) > 1 : own_weight >= 1 && extent(tile.column) > 16;
    }
    return false;
  }

  void note_wanted_axis(NodeId stage, NodeId reader) {
    const Form& form = forms_.form(reader);
    if (!form.accumulation || !form.accumulation->sequential || result_.wanted_axis.count(stage)) return;
    const RowColumn tile = row_and_column(forms_, layouts_, reader, usual_);
    for (const Read& read : form.reads) {
      if (forms_.operand(reader, read).node != stage) continue;
      const bool vector = tile.column >= 0 && uses(read, tile.column);
      const int axis = vector ? tile.column : static_cast<int>(form.axes.size()) - 1;
      for (size_t d = 0; d < read.index.size(); ++d)
        if (axis_along(read, d) == axis) result_.wanted_axis[stage] = static_cast<int>(d);
    }
  }
};

}  // namespace

StoredNodes stored_nodes(const RegionForms& forms, const schedule::Layouts& layouts,
                         const std::vector<NodeId>& cone, const SymbolValues& usual) {
  return Finder(forms, layouts, cone, usual).find();
}

}  // namespace fusewise::fusion
