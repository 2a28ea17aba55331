#include "schedule/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace fusewise::schedule {

using graph::Form;
using graph::IndexExpr;
using graph::Read;

int Tree::stage_index(const RegionForms& forms, NodeId node) const {
  const auto& nodes = forms.region.nodes;
  const auto it = std::lower_bound(nodes.begin(), nodes.end(), node);
  return it != nodes.end() && *it == node ? stage_of[static_cast<size_t>(it - nodes.begin())] : -1;
}

int identity_axis(const Form& consumer, const Read& read, int dim, const Dim& extent) {
  const IndexExpr& e = read.index[static_cast<size_t>(dim)];
  if (!e.quasi.empty() || e.gathered || !e.linear.constant.is(0) || e.linear.terms.size() != 1) return -1;
  const graph::AxisTerm& t = e.linear.terms[0];
  if (!t.coefficient.is(1) || consumer.axes[static_cast<size_t>(t.axis)].extent != extent) return -1;
  return t.axis;
}

namespace {

class TreeBuilder {
 public:
  TreeBuilder(const RegionForms& forms, const Schedule& schedule, const Layouts& layouts) : forms_(forms) {
    tree_.order = schedule.order;
    tree_.layouts = layouts;
    for (const StageChoice& choice : schedule.stages) {
      Stage stage;
      static_cast<StageChoice&>(stage) = choice;
      tree_.stages.push_back(std::move(stage));
    }
  }

  TreeResult build() {
    for (auto step : {&TreeBuilder::check_stages, &TreeBuilder::find_inlined, &TreeBuilder::order_children,
                      &TreeBuilder::check_readers, &TreeBuilder::check_registers, &TreeBuilder::check_owned,
                      &TreeBuilder::check_slide}) {
      Verdict verdict = (this->*step)();
      if (!verdict) return {verdict, {}};
    }
    return {Verdict::allow(), std::move(tree_)};
  }

 private:
  const RegionForms& forms_;
  Tree tree_;
  // Per stage, the stages whose results it reads.
  std::vector<std::set<int>> reads_;

  Stage& stage(int index) { return tree_.stages[static_cast<size_t>(index)]; }
  int count() const { return static_cast<int>(tree_.stages.size()); }

  Verdict check_stages() {
    tree_.stage_of.assign(forms_.region.nodes.size(), -1);
    for (int i = 0; i < count(); ++i) {
      const Stage& s = stage(i);
      if (!forms_.is_member(s.node)) return Verdict::forbid("missing-stage", "a stage's node is not in the region", {s.node});
      const auto& nodes = forms_.region.nodes;
      int& slot = tree_.stage_of[static_cast<size_t>(std::lower_bound(nodes.begin(), nodes.end(), s.node) - nodes.begin())];
      if (slot != -1) return Verdict::forbid("missing-stage", "a node has two stages", {s.node});
      slot = i;
      if (s.parent >= i || s.parent < -1) return Verdict::forbid("missing-stage", "a stage's parent must precede it", {s.node});
      if (s.parent >= 0 && (s.depth < 0 || s.depth > static_cast<int>(stage(s.parent).loops.size())))
        return Verdict::forbid("missing-stage", "a stage is attached deeper than its parent's loops", {s.node});
      if (s.parent < 0 && s.placement != Placement::memory)
        return Verdict::forbid("missing-stage", "a root stores to memory", {s.node});
      if (s.parent < 0) tree_.phases = std::max(tree_.phases, s.phase + 1);
    }
    for (Value v : forms_.region.outputs) {
      const int i = tree_.stage_index(forms_, v.node);
      if (i < 0 || stage(i).placement != Placement::memory)
        return Verdict::forbid("missing-stage", "an output of the region has no stage that stores it", {v.node});
    }
    for (const auto& [node, form] : forms_.forms)
      if (form.accumulation && tree_.stage_index(forms_, node) < 0)
        return Verdict::forbid("missing-stage", "a reduction needs a stage of its own", {node});
    for (const Stage& s : tree_.stages)
      if (s.placement == Placement::memory && !forms_.is_output(s.node)) tree_.temporaries.push_back({s.node, 0});
    std::sort(tree_.temporaries.begin(), tree_.temporaries.end());
    return Verdict::allow();
  }

  Verdict find_inlined() {
    reads_.assign(tree_.stages.size(), {});
    for (int i = 0; i < count(); ++i) {
      std::set<NodeId> seen;
      std::vector<NodeId> work = {stage(i).node};
      while (!work.empty()) {
        const NodeId node = work.back();
        work.pop_back();
        for (const Read& read : forms_.form(node).reads) {
          const NodeId producer = forms_.operand(node, read).node;
          if (!forms_.is_member(producer)) continue;
          const int owner = tree_.stage_index(forms_, producer);
          if (owner >= 0) reads_[static_cast<size_t>(i)].insert(owner);
          else if (seen.insert(producer).second) work.push_back(producer);
        }
      }
      stage(i).inlined.assign(seen.begin(), seen.end());
    }
    return Verdict::allow();
  }

  Verdict order_children() {
    for (int i = 0; i < count(); ++i)
      if (stage(i).parent >= 0) stage(stage(i).parent).children.push_back(i);
    for (int i = count() - 1; i >= 0; --i) {
      Stage& s = stage(i);
      std::sort(s.children.begin(), s.children.end(), [&](int a, int b) { return stage(a).node < stage(b).node; });
      std::set<NodeId> cone(s.inlined.begin(), s.inlined.end());
      cone.insert(s.node);
      for (int c : s.children) cone.insert(stage(c).cone.begin(), stage(c).cone.end());
      s.cone.assign(cone.rbegin(), cone.rend());
    }
    return Verdict::allow();
  }

  // The stage on the way from `reader` up to `ancestor` that hangs directly below it; `reader` itself if equal;
  // -1 if `ancestor` is not above `reader`.
  int branch_below(int reader, int ancestor) {
    if (reader == ancestor) return reader;
    while (reader >= 0 && stage(reader).parent != ancestor) reader = stage(reader).parent;
    return reader;
  }
  int root_of(int i) {
    while (stage(i).parent >= 0) i = stage(i).parent;
    return i;
  }

  Verdict check_readers() {
    for (int i = 0; i < count(); ++i) {
      for (int producer : reads_[static_cast<size_t>(i)]) {
        const Stage& p = stage(producer);
        const int earlier = stage(root_of(producer)).phase;
        if (p.placement == Placement::memory && earlier < stage(root_of(i)).phase) continue;
        if (p.parent < 0)
          return Verdict::forbid("phase", "a value is read in the phase that computes it", {p.node, stage(i).node});
        const int below = branch_below(i, p.parent);
        const bool visible = below == p.parent || (below >= 0 && stage(below).depth >= p.depth && below != producer);
        if (!visible)
          return Verdict::forbid("not-visible", "a stage reads a value that is computed in another part of the tree",
                                 {p.node, stage(i).node});
      }
    }
    return Verdict::allow();
  }

  Verdict check_registers() {
    for (int i = 0; i < count(); ++i) {
      const Stage& s = stage(i);
      if (s.placement != Placement::registers) continue;
      if (s.parent < 0 || s.depth != static_cast<int>(stage(s.parent).loops.size()) || !s.loops.empty())
        return Verdict::forbid("registers", "a register tile is attached to its reader's innermost body", {s.node});
      if (forms_.form(stage(s.parent).node).accumulation)
        return Verdict::forbid("registers", "the reader of a register tile must be an elementwise stage", {s.node});
      for (int reader = 0; reader < count(); ++reader)
        if (reads_[static_cast<size_t>(reader)].count(i) && reader != s.parent && stage(reader).placement != Placement::registers)
          return Verdict::forbid("registers", "a register tile has readers outside its parent", {s.node});
    }
    return Verdict::allow();
  }

  // For each axis of `node`, the axis of the root stage that it equals on every path of reads (-1: none). Computed
  // from the consumers down.
  std::map<NodeId, std::vector<int>> root_axes(const Stage& root) {
    std::map<NodeId, std::vector<int>> axes;
    for (NodeId node : root.cone) {
      const Form& form = forms_.form(node);
      std::vector<int>& own = axes[node];
      if (node == root.node) {
        own.clear();
        for (int a = 0; a < form.parallel_axes(); ++a) own.push_back(a);
      }
      if (own.empty() && node != root.node) own.assign(static_cast<size_t>(form.parallel_axes()), -1);
      for (const Read& read : form.reads) {
        const Value operand = forms_.operand(node, read);
        if (!forms_.is_member(operand.node) || !std::count(root.cone.begin(), root.cone.end(), operand.node)) continue;
        const Shape& shape = forms_.graph->type(operand).shape;
        std::vector<int> mapped;
        for (size_t d = 0; d < shape.size(); ++d) {
          const int axis = read.guards.empty() ? identity_axis(form, read, static_cast<int>(d), shape[d]) : -1;
          const bool parallel = axis >= 0 && axis < form.parallel_axes();
          mapped.push_back(parallel ? own[static_cast<size_t>(axis)] : -1);
        }
        auto [it, first] = axes.emplace(operand.node, mapped);
        if (!first)
          for (size_t d = 0; d < mapped.size(); ++d)
            if (it->second[d] != mapped[d]) it->second[d] = -1;
      }
    }
    return axes;
  }

  // An output that is computed inside a tree is stored once only if the boxes of all iterations partition it: every
  // enclosing loop must run along one of its axes, and those axes must be the root's, unchanged.
  Verdict check_owned() {
    for (int r = 0; r < count(); ++r) {
      const Stage& root = stage(r);
      if (root.parent >= 0) continue;
      std::map<NodeId, std::vector<int>> axes;
      for (int i = 0; i < count(); ++i) {
        const Stage& s = stage(i);
        if (s.parent < 0 || root_of(i) != r || s.placement != Placement::memory) continue;
        if (s.parent != r)
          return Verdict::forbid("not-owned", "an output must be attached to the root of its tree", {s.node});
        if (axes.empty()) axes = root_axes(root);
        const std::vector<int>& own = axes.at(s.node);
        for (int l = 0; l < s.depth; ++l) {
          const LoopChoice& loop = root.loops[static_cast<size_t>(l)];
          const Dim& extent = forms_.form(root.node).axes[static_cast<size_t>(loop.axis)].extent;
          if (extent.is(1)) continue;
          if (std::count(own.begin(), own.end(), loop.axis) != 1)
            return Verdict::forbid("not-owned", "the tiles of an output would overlap or be stored twice", {s.node});
        }
        for (size_t d = 0; d < own.size(); ++d) {
          if (own[d] < 0 && !forms_.form(s.node).axes[d].extent.is(1) && !covers_whole(root, s, static_cast<int>(d)))
            return Verdict::forbid("not-owned", "part of an output may never be computed", {s.node});
        }
      }
    }
    return Verdict::allow();
  }

  // True if some reader below the root needs the whole extent of dimension `dim` of this stage's result whatever the
  // loops do: it runs along a reduction axis of that reader.
  bool covers_whole(const Stage& root, const Stage& s, int dim) {
    for (NodeId node : root.cone) {
      const Form& form = forms_.form(node);
      for (const Read& read : form.reads) {
        if (forms_.operand(node, read).node != s.node || !read.guards.empty()) continue;
        const Dim& extent = forms_.graph->type({s.node, 0}).shape[static_cast<size_t>(dim)];
        const int axis = identity_axis(form, read, dim, extent);
        if (axis >= form.parallel_axes()) return true;
      }
    }
    return false;
  }

  Verdict check_slide() {
    for (const Stage& s : tree_.stages) {
      if (s.reuse != Reuse::slide) continue;
      const bool parallel = s.slide_axis >= 0 && s.slide_axis < forms_.form(s.node).parallel_axes();
      if (s.parent < 0 || s.placement != Placement::scratch || !parallel)
        return Verdict::forbid("slide", "only a scratch value can slide, along one of its axes", {s.node});
      const Stage& parent = stage(s.parent);
      const int first = parent.parent < 0 ? parent.grid_loops : 0;
      if (s.depth <= first)
        return Verdict::forbid("slide", "the loop along which a value slides must be serial", {s.node});
    }
    return Verdict::allow();
  }
};

}  // namespace

TreeResult build_tree(const RegionForms& forms, const Schedule& schedule, const Layouts& layouts) {
  return TreeBuilder(forms, schedule, layouts).build();
}

}  // namespace fusewise::schedule
