#include "schedule/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "schedule/code_size.h"
#include "schedule/tree_threads.h"

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

std::map<NodeId, std::vector<int>> equal_axes(const RegionForms& forms, const std::vector<NodeId>& order) {
  std::map<NodeId, std::vector<int>> axes;
  std::vector<int>& first = axes[order.front()];
  for (int a = 0; a < forms.form(order.front()).parallel_axes(); ++a) first.push_back(a);
  for (NodeId node : order) {
    const auto known = axes.find(node);
    if (known == axes.end()) continue;
    const std::vector<int> own = known->second;
    const Form& form = forms.form(node);
    for (const Read& read : form.reads) {
      const Value operand = forms.operand(node, read);
      if (!forms.is_member(operand.node)) continue;
      const Shape& shape = forms.graph->type(operand).shape;
      std::vector<int> mapped;
      for (size_t d = 0; d < shape.size(); ++d) {
        const int axis = read.guards.empty() ? identity_axis(form, read, static_cast<int>(d), shape[d]) : -1;
        const bool parallel = axis >= 0 && axis < form.parallel_axes();
        mapped.push_back(parallel ? own[static_cast<size_t>(axis)] : -1);
      }
      const auto [place, is_first] = axes.emplace(operand.node, mapped);
      if (is_first) continue;
      for (size_t d = 0; d < mapped.size(); ++d)
        if (place->second[d] != mapped[d]) place->second[d] = -1;
    }
  }
  return axes;
}

namespace {

class TreeBuilder {
 public:
  TreeBuilder(const RegionForms& forms, const Schedule& schedule, const Layouts& layouts) : forms_(forms) {
    tree_.order = schedule.order;
    tree_.threads = schedule.threads;
    const auto keep = [&](Value v) {
      if (const auto it = layouts.find(v); it != layouts.end()) tree_.layouts.insert(*it);
    };
    for (Value v : forms.inputs) keep(v);
    for (NodeId node : forms.region.nodes) keep({node, 0});
    for (const StageChoice& choice : schedule.stages) {
      Stage stage;
      static_cast<StageChoice&>(stage) = choice;
      tree_.stages.push_back(std::move(stage));
    }
  }

  TreeResult build() {
    for (auto step : {&TreeBuilder::check_form, &TreeBuilder::check_stages, &TreeBuilder::find_inlined,
                      &TreeBuilder::order_children, &TreeBuilder::check_chains, &TreeBuilder::check_readers,
                      &TreeBuilder::check_registers, &TreeBuilder::check_owned, &TreeBuilder::check_slide,
                      &TreeBuilder::check_threads, &TreeBuilder::check_size}) {
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

  // What the rest may rely on: axes that exist, loops that cut further, a storage order of all dimensions.
  Verdict check_form() {
    for (int i = 0; i < count(); ++i) {
      const Stage& s = stage(i);
      if (!forms_.is_member(s.node))
        return Verdict::forbid("malformed", "a stage's node is not in the region", {s.node});
      const Form& form = forms_.form(s.node);
      const int rank = form.parallel_axes();
      const auto refuse = [&](const char* why) { return Verdict::forbid("malformed", why, {s.node}); };
      std::map<int, int64_t> cut;
      if (s.thread_loops < 0 || s.grid_loops + s.thread_loops > static_cast<int>(s.loops.size()))
        return refuse("thread loops that are not there");
      for (const LoopChoice& loop : s.loops) {
        const bool steps = loop.axis == rank && reduces_in_steps(i);
        const bool blocks = tree_.threads == 1 && loop.axis >= rank && loop.axis == block_axis(form);
        if (steps) stage(i).reduction_loop = static_cast<int>(&loop - s.loops.data());
        if (loop.axis < 0 || (loop.axis >= rank && !steps && !blocks) || loop.tile < 1)
          return refuse("a loop over an axis that is not there");
        const auto [outer, first] = cut.emplace(loop.axis, loop.tile);
        if (!first && loop.tile > outer->second) return refuse("an inner tile is larger than the outer one");
        outer->second = loop.tile;
      }
      std::vector<int> dims = s.storage;
      std::sort(dims.begin(), dims.end());
      for (int d = 0; d < static_cast<int>(dims.size()); ++d)
        if (dims[static_cast<size_t>(d)] != d)
          return refuse("the storage order is no order of the dimensions");
      if (static_cast<int>(dims.size()) != rank)
        return refuse("the storage order is no order of the dimensions");
      const bool lanes = form.accumulation && !form.accumulation->sequential &&
                         s.vector_axis == static_cast<int>(form.axes.size()) - 1;
      if (s.vector_axis < -1 || (s.vector_axis >= rank && !lanes))
        return refuse("vectors along an axis that cannot have them");
      if (s.parent >= i || s.parent < -1) return refuse("a stage's parent must precede it");
      if (s.grid_loops < 0 || s.grid_loops > (s.parent < 0 ? static_cast<int>(s.loops.size()) : 0))
        return refuse("grid loops that are not there");
      if (s.parent < 0) {
        if (s.phase < 0 || s.phase > count()) return refuse("a phase without the one before");
        continue;
      }
      const Stage& parent = stage(s.parent);
      const int least = parent.parent < 0 ? parent.grid_loops : 0;
      if (s.depth < least || s.depth > static_cast<int>(parent.loops.size()))
        return refuse("a stage is attached where its parent has no place");
    }
    return Verdict::allow();
  }

  // Whether a loop may run over the first reduction axis.
  bool reduces_in_steps(int index) {
    const Form& form = forms_.form(stage(index).node);
    return tree_.threads > 1 && form.accumulation && form.accumulation->sequential &&
           static_cast<int>(form.axes.size()) > form.parallel_axes();
  }

  Verdict check_stages() {
    tree_.stage_of.assign(forms_.region.nodes.size(), -1);
    for (int i = 0; i < count(); ++i) {
      const Stage& s = stage(i);
      const auto& nodes = forms_.region.nodes;
      if (s.parent < 0 && s.placement != Placement::memory)
        return Verdict::forbid("malformed", "a root stores to memory", {s.node});
      if (s.parent < 0) tree_.phases = std::max(tree_.phases, s.phase + 1);
      if (s.partial) continue;
      int& slot = tree_.stage_of[static_cast<size_t>(std::lower_bound(nodes.begin(), nodes.end(), s.node) -
                                                     nodes.begin())];
      if (slot != -1) return Verdict::forbid("malformed", "a node has two stages", {s.node});
      slot = i;
    }
    for (Value v : forms_.region.outputs) {
      const int i = tree_.stage_index(forms_, v.node);
      if (i < 0 || stage(i).placement != Placement::memory)
        return Verdict::forbid("missing-stage", "an output of the region has no stage that stores it",
                               {v.node});
    }
    for (const auto& [node, form] : forms_.forms)
      if (form.accumulation && tree_.stage_index(forms_, node) < 0)
        return Verdict::forbid("missing-stage", "a reduction needs a stage of its own", {node});
    for (const Stage& s : tree_.stages)
      if (s.placement == Placement::memory && !forms_.is_output(s.node) && !s.partial)
        tree_.temporaries.push_back({s.node, 0});
    std::sort(tree_.temporaries.begin(), tree_.temporaries.end());
    return Verdict::allow();
  }

  // What is computed where `from` are: members without a stage above them. `read`: the stages that they read.
  std::set<NodeId> inlined_above(const std::vector<NodeId>& from, bool themselves,
                                 std::set<int>& read_stages) {
    std::set<NodeId> seen;
    std::vector<NodeId> work;
    const auto visit = [&](NodeId producer) {
      if (!forms_.is_member(producer)) return;
      const int owner = tree_.stage_index(forms_, producer);
      if (owner >= 0)
        read_stages.insert(owner);
      else if (seen.insert(producer).second)
        work.push_back(producer);
    };
    for (NodeId node : from) {
      if (themselves)
        visit(node);
      else
        work.push_back(node);
    }
    while (!work.empty()) {
      const NodeId node = work.back();
      work.pop_back();
      for (const Read& read : forms_.form(node).reads) visit(forms_.operand(node, read).node);
    }
    return seen;
  }

  Verdict find_inlined() {
    reads_.assign(tree_.stages.size(), {});
    for (int i = 0; i < count(); ++i) {
      const std::set<NodeId> seen = inlined_above({stage(i).node}, false, reads_[static_cast<size_t>(i)]);
      stage(i).inlined.assign(seen.begin(), seen.end());
    }
    return Verdict::allow();
  }

  // The steps of a group's reductions keep their accumulators; no state runs along.
  Verdict refuse_chains() {
    for (const Stage& s : tree_.stages)
      if (s.partial || s.reuse == Reuse::carry)
        return Verdict::forbid("threads", "a running state where threads share a block", {s.node});
    return Verdict::allow();
  }

  // A stage that combines parts computes what the state is multiplied with, and nothing of what is summed.
  Verdict check_chains() {
    if (tree_.threads > 1) return refuse_chains();
    Verdict verdict = find_chains(forms_, tree_);
    if (!verdict) return verdict;
    for (const Chain& chain : tree_.chains) {
      if (!chain.split()) continue;
      const auto finisher = static_cast<size_t>(chain.finisher);
      std::vector<NodeId> factors;
      for (const CascadeMember& m : chain.cascade.members)
        for (const CascadeMember::Factor& f : m.factors) factors.push_back(f.node);
      reads_[finisher].clear();
      const std::set<NodeId> seen = inlined_above(factors, true, reads_[finisher]);
      for (int s : chain.stages) reads_[finisher].erase(s);
      stage(chain.finisher).inlined.assign(seen.begin(), seen.end());
      if (stage(root_of(chain.finisher)).phase <= stage(chain.runner).phase)
        return Verdict::forbid("phase", "parts are combined in the phase that computes them",
                               {stage(chain.finisher).node});
    }
    return Verdict::allow();
  }

  Verdict order_children() {
    for (int i = 0; i < count(); ++i)
      if (stage(i).parent >= 0) stage(stage(i).parent).children.push_back(i);
    for (int i = count() - 1; i >= 0; --i) {
      Stage& s = stage(i);
      std::sort(s.children.begin(), s.children.end(),
                [&](int a, int b) { return stage(a).node < stage(b).node; });
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

  // True if the stage runs within the chain's loop over blocks.
  bool inside_blocks(int i, int chain) {
    const Chain& c = tree_.chains[static_cast<size_t>(chain)];
    const int below = branch_below(i, c.runner);
    return below == c.runner || (below >= 0 && stage(below).depth > c.depth);
  }

  Verdict check_readers() {
    for (int i = 0; i < count(); ++i) {
      for (int producer : reads_[static_cast<size_t>(i)]) {
        int owner = producer;
        if (stage(producer).reuse == Reuse::carry && !inside_blocks(i, stage(producer).chain)) {
          owner = tree_.chains[static_cast<size_t>(stage(producer).chain)].finisher;
          if (i == owner) continue;
          // Children run in the order of their nodes.
          if (stage(i).node < stage(owner).node)
            return Verdict::forbid("carry", "a running value is read before it is final",
                                   {stage(producer).node, stage(i).node});
        }
        const Stage& p = stage(owner);
        const int earlier = stage(root_of(owner)).phase;
        if (stage(producer).placement == Placement::memory && earlier < stage(root_of(i)).phase) continue;
        if (p.parent < 0)
          return Verdict::forbid("phase", "a value is read in the phase that computes it",
                                 {p.node, stage(i).node});
        const int below = branch_below(i, p.parent);
        const bool visible =
            below == p.parent || (below >= 0 && stage(below).depth >= p.depth && below != owner);
        if (!visible)
          return Verdict::forbid("not-visible",
                                 "a stage reads a value that is computed in another part of the tree",
                                 {p.node, stage(i).node});
      }
    }
    return Verdict::allow();
  }

  Verdict check_registers() {
    for (int i = 0; i < count(); ++i) {
      const Stage& s = stage(i);
      const auto refuse = [&](const char* why) { return Verdict::forbid("registers", why, {s.node}); };
      if (s.parent >= 0 && stage(s.parent).placement == Placement::registers &&
          (stage(s.parent).reduction_loop < 0 || s.depth == 0))
        return refuse("nothing is attached to a register tile");
      if (s.placement != Placement::registers) continue;
      const Stage& parent = stage(s.parent);
      const bool is_body = s.loops.empty() || (s.loops.size() == 1 && s.reduction_loop == 0);
      if (s.depth != static_cast<int>(parent.loops.size()) || !is_body)
        return refuse("a register tile is attached to its reader's innermost body");
      if (forms_.form(parent.node).accumulation)
        return refuse("the reader of a register tile must be an elementwise stage");
      for (int reader = 0; reader < count(); ++reader) {
        const Stage& r = stage(reader);
        const bool beside = r.placement == Placement::registers && r.parent == s.parent;
        if (reads_[static_cast<size_t>(reader)].count(i) && reader != s.parent && !beside)
          return refuse("a register tile has readers outside its parent");
      }
      if (s.vector_axis >= forms_.form(s.node).parallel_axes())
        return refuse("lanes along a reduction deliver one element, not a tile");
      // The tile's extents must be those of the parent's: constants, but for a vector's tail.
      const std::vector<int> own = equal_axes(forms_, parent.cone).at(s.node);
      for (size_t d = 0; d < own.size(); ++d) {
        const Dim& extent = forms_.form(s.node).axes[d].extent;
        if (extent.is(1)) continue;
        if (own[d] < 0) return refuse("a register tile is no part of its reader's");
        if (own[d] == parent.vector_axis && static_cast<int>(d) != s.vector_axis)
          return refuse("vectors of a register tile run along another axis than its reader's");
      }
    }
    return Verdict::allow();
  }

  // Per member of the root's tree and dimension of its needed box: the root's axis along which it runs, `whole`, or
  // `other`.
  static constexpr int whole = -1, other = -2;
  std::map<NodeId, std::vector<int>> needed_along(const Stage& root) {
    std::map<NodeId, std::vector<int>> all;
    std::vector<int>& top = all[root.node];
    for (int a = 0; a < forms_.form(root.node).parallel_axes(); ++a) top.push_back(a);
    for (NodeId node : root.cone) {
      const auto known = all.find(node);
      if (known == all.end()) continue;
      const std::vector<int> own = known->second;
      const Form& form = forms_.form(node);
      for (const Read& read : form.reads) {
        const Value operand = forms_.operand(node, read);
        if (!forms_.is_member(operand.node)) continue;
        const Shape& shape = forms_.graph->type(operand).shape;
        std::vector<int> mapped;
        for (size_t d = 0; d < shape.size(); ++d) {
          const int axis = identity_axis(form, read, static_cast<int>(d), shape[d]);
          if (shape[d].is(1) || axis >= form.parallel_axes())
            mapped.push_back(whole);
          else
            mapped.push_back(axis >= 0 ? own[static_cast<size_t>(axis)] : other);
        }
        const auto [place, first] = all.emplace(operand.node, mapped);
        if (first) continue;
        for (size_t d = 0; d < mapped.size(); ++d) {
          int& along = place->second[d];
          if (along == whole || mapped[d] == whole)
            along = whole;
          else if (along != mapped[d])
            along = other;
        }
      }
    }
    return all;
  }

  // An output that is computed inside a tree is stored once only if the boxes of all iterations partition it: every
  // enclosing loop must run along one of its axes, unchanged, and what no loop cuts must be needed whole.
  Verdict check_owned() {
    for (int r = 0; r < count(); ++r) {
      const Stage& root = stage(r);
      if (root.parent >= 0) continue;
      std::map<NodeId, std::vector<int>> along;
      for (int i = 0; i < count(); ++i) {
        const Stage& s = stage(i);
        const bool carried = s.reuse == Reuse::carry;
        const Chain* chain = carried ? &tree_.chains[static_cast<size_t>(s.chain)] : nullptr;
        const int owner = carried ? chain->finisher : i;
        if (s.parent < 0 || root_of(owner) != r || s.placement != Placement::memory) continue;
        const int parent = owner == r ? r : stage(owner).parent;
        int depth = carried ? stage(owner).depth : s.depth;
        if (owner == r) depth = chain->split() ? root.grid_loops : chain->depth;
        if (parent != r)
          return Verdict::forbid("not-owned", "an output must be attached to the root of its tree", {s.node});
        if (along.empty()) along = needed_along(root);
        const std::vector<int>& own = along.at(s.node);
        for (int l = 0; l < depth; ++l) {
          const LoopChoice& loop = root.loops[static_cast<size_t>(l)];
          if (forms_.form(root.node).axes[static_cast<size_t>(loop.axis)].extent.is(1)) continue;
          if (std::count(own.begin(), own.end(), loop.axis) != 1)
            return Verdict::forbid("not-owned", "the tiles of an output would overlap or be stored twice",
                                   {s.node});
        }
        if (std::count(own.begin(), own.end(), other) != 0)
          return Verdict::forbid("not-owned", "part of an output may never be computed", {s.node});
      }
    }
    return Verdict::allow();
  }

  // Per dimension of a node's box: the parent's axes that it moves with, and those of them with which it may move
  // backwards or jump (bit sets).
  struct Motion {
    uint64_t moves = 0, jumps = 0;
  };
  std::map<NodeId, std::vector<Motion>> motions(const Stage& parent) {
    std::map<NodeId, std::vector<Motion>> all;
    std::vector<Motion>& top = all[parent.node];
    for (int a = 0; a < forms_.form(parent.node).parallel_axes(); ++a)
      top.push_back({uint64_t{1} << std::min(a, 63), 0});
    for (NodeId node : parent.cone) {
      const auto known = all.find(node);
      if (known == all.end()) continue;
      const std::vector<Motion> own = known->second;
      const auto add = [&](Motion& motion, const graph::LinearIndex& index, bool jumps) {
        for (const graph::AxisTerm& t : index.terms) {
          if (static_cast<size_t>(t.axis) >= own.size()) continue;
          const Motion& axis = own[static_cast<size_t>(t.axis)];
          const std::optional<int64_t> least = t.coefficient.lower_bound();
          motion.moves |= axis.moves;
          motion.jumps |= jumps || !least || *least < 0 ? axis.moves : axis.jumps;
        }
      };
      for (const Read& read : forms_.form(node).reads) {
        const Value operand = forms_.operand(node, read);
        if (!forms_.is_member(operand.node)) continue;
        std::vector<Motion>& motion = all[operand.node];
        motion.resize(read.index.size());
        for (size_t d = 0; d < read.index.size(); ++d) {
          add(motion[d], read.index[d].linear, false);
          for (const graph::QuasiTerm& q : read.index[d].quasi) add(motion[d], q.inner, true);
        }
      }
    }
    return all;
  }

  // A ring keeps what earlier iterations computed only if the box moves forwards along the ring's axis and stays where
  // it is along all others while the loop runs.
  Verdict check_slide() {
    for (const Stage& s : tree_.stages) {
      if (s.reuse != Reuse::slide) continue;
      const auto refuse = [&](const char* why) { return Verdict::forbid("slide", why, {s.node}); };
      const bool parallel = s.slide_axis >= 0 && s.slide_axis < forms_.form(s.node).parallel_axes();
      if (s.parent < 0 || s.placement != Placement::scratch || !parallel)
        return refuse("only a scratch value can slide, along one of its axes");
      const Stage& parent = stage(s.parent);
      const int first = parent.parent < 0 ? parent.grid_loops : 0;
      if (s.depth <= first) return refuse("the loop along which a value slides must be serial");
      const uint64_t along = uint64_t{1} << std::min(parent.loops[static_cast<size_t>(s.depth) - 1].axis, 63);
      // Loops that the body adds for axes that no loop cuts run inside the sliding one.
      uint64_t inner = 0;
      if (s.depth == static_cast<int>(parent.loops.size()))
        for (int a = 0; a < forms_.form(parent.node).parallel_axes(); ++a) {
          const bool cut = std::any_of(parent.loops.begin(), parent.loops.end(),
                                       [&](const LoopChoice& l) { return l.axis == a; });
          if (!cut && !forms_.form(parent.node).axes[static_cast<size_t>(a)].extent.is(1))
            inner |= uint64_t{1} << std::min(a, 63);
        }
      const auto all = motions(parent);
      const auto motion = all.find(s.node);
      if (motion == all.end()) continue;
      for (size_t d = 0; d < motion->second.size(); ++d) {
        const Motion& m = motion->second[d];
        if (m.moves & inner) return refuse("the box of a sliding value moves with a loop inside");
        if (static_cast<int>(d) != s.slide_axis && (m.moves & along))
          return refuse("the box of a sliding value moves along another axis too");
        if (m.jumps & along) return refuse("the box of a sliding value does not move forwards");
      }
    }
    return Verdict::allow();
  }

  Verdict check_threads() { return settle_threads(forms_, tree_); }

  Verdict check_size() {
    if (code_size(forms_, tree_) <= most_code) return Verdict::allow();
    return Verdict::forbid("code-size", "unrolling and tails would make the kernel too long",
                           {stage(0).node});
  }
};

}  // namespace

TreeResult build_tree(const RegionForms& forms, const Schedule& schedule, const Layouts& layouts) {
  return TreeBuilder(forms, schedule, layouts).build();
}

}  // namespace fusewise::schedule
