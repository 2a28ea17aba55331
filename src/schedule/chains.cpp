// The running states of a tree: which stage runs the loop over blocks, which ones are carried along, which finishes.
#include <algorithm>

#include "schedule/tree.h"

namespace fusewise::schedule {

namespace {

class ChainFinder {
 public:
  ChainFinder(const RegionForms& forms, Tree& tree) : forms_(forms), tree_(tree) {}

  Verdict find() {
    for (int i = 0; i < count(); ++i) {
      Verdict verdict = runs_blocks(i) ? add_chain(i) : check_without(i);
      if (!verdict) return verdict;
    }
    for (int i = 0; i < count(); ++i)
      if (stage(i).reuse == Reuse::carry && stage(i).chain < 0)
        return refuse(i, "a running value is carried where no loop over blocks runs");
    return Verdict::allow();
  }

 private:
  const RegionForms& forms_;
  Tree& tree_;

  int count() const { return static_cast<int>(tree_.stages.size()); }
  Stage& stage(int i) { return tree_.stages[static_cast<size_t>(i)]; }
  Verdict malformed(int i, const char* why) { return Verdict::forbid("malformed", why, {stage(i).node}); }
  Verdict refuse(int i, const char* why) { return Verdict::forbid("carry", why, {stage(i).node}); }

  bool is_block_loop(const Stage& s, const LoopChoice& loop) const {
    return loop.axis >= forms_.form(s.node).parallel_axes();
  }
  bool runs_blocks(int i) {
    const Stage& s = stage(i);
    return s.partial || std::any_of(s.loops.begin(), s.loops.end(),
                                    [&](const LoopChoice& l) { return is_block_loop(s, l); });
  }
  Verdict check_without(int i) {
    if (stage(i).reuse == Reuse::carry && !forms_.form(stage(i).node).accumulation)
      return refuse(i, "only a reduction has a running value");
    return Verdict::allow();
  }

  // One serial loop over blocks; a partial stage has a grid loop over parts around it, any other stage none.
  Verdict find_loops(int i, Chain& chain) {
    const Stage& s = stage(i);
    chain.depth = -1;
    for (int l = 0; l < static_cast<int>(s.loops.size()); ++l) {
      if (!is_block_loop(s, s.loops[static_cast<size_t>(l)])) continue;
      int& place = l < s.grid_loops ? chain.part_loop : chain.depth;
      if (place >= 0) return malformed(i, "a reduction runs over blocks in one loop");
      place = l;
    }
    if (chain.depth < 0 || s.partial != (chain.part_loop >= 0))
      return malformed(i, "parts and blocks of a reduction do not fit its loops");
    if (s.reuse == Reuse::carry) return refuse(i, "what is carried has no loop over blocks of its own");
    return Verdict::allow();
  }

  Verdict add_chain(int i) {
    Chain chain;
    chain.runner = i;
    if (Verdict verdict = find_loops(i, chain); !verdict) return verdict;
    if (tree_.order.block < free_block)
      return Verdict::forbid("order", "the order of reductions is fixed: no blocks are combined in another",
                             {stage(i).node});
    chain.finisher = i;
    if (chain.split()) {
      chain.finisher = tree_.stage_index(forms_, stage(i).node);
      if (chain.finisher < 0) return refuse(i, "no stage combines the parts");
      const Stage& f = stage(chain.finisher);
      if (runs_blocks(chain.finisher) || !f.children.empty() || f.placement == Placement::registers ||
          f.reuse == Reuse::carry || f.reuse == Reuse::slide)
        return refuse(i, "the stage that combines the parts computes something else");
    }
    std::set<NodeId> carried;
    for (int c : stage(i).children) {
      Stage& child = stage(c);
      if (child.depth <= chain.depth) continue;
      if (child.reuse == Reuse::slide) return refuse(c, "a ring inside a loop over blocks");
      if (child.reuse != Reuse::carry && child.placement == Placement::memory)
        return refuse(c, "an output is stored inside a loop over blocks");
      if (child.reuse != Reuse::carry) continue;
      if (child.depth != chain.depth + 1 || child.placement == Placement::registers || runs_blocks(c))
        return refuse(c, "a running value belongs directly inside the loop over blocks");
      carried.insert(child.node);
    }
    CascadeResult derived = derive_cascade(forms_, stage(i).node, carried);
    if (!derived.verdict) return derived.verdict;
    chain.cascade = std::move(derived.cascade);
    return complete(chain);
  }

  Verdict complete(Chain& chain) {
    const int number = static_cast<int>(tree_.chains.size());
    for (const CascadeMember& m : chain.cascade.members) {
      const int s = m.node == stage(chain.runner).node ? chain.finisher : tree_.stage_index(forms_, m.node);
      chain.stages.push_back(s);
      stage(s).chain = number;
      for (const CascadeMember::Factor& f : m.factors)
        if (Verdict verdict = check_factor(chain, f.node); !verdict) return verdict;
    }
    stage(chain.runner).chain = number;
    if (chain.split()) {
      // The boxes of what is carried follow from its readers' through what the parts compute.
      const std::vector<NodeId> more = stage(chain.runner).cone;
      for (int s = chain.finisher; s >= 0; s = stage(s).parent) {
        std::vector<NodeId> joined;
        std::set_union(stage(s).cone.begin(), stage(s).cone.end(), more.begin(), more.end(),
                       std::back_inserter(joined), std::greater<>());
        stage(s).cone = std::move(joined);
      }
    }
    if (Verdict verdict = check_outer_readers(chain); !verdict) return verdict;
    tree_.chains.push_back(std::move(chain));
    return Verdict::allow();
  }

  // What the loop over blocks leaves of a carried value is as much as the runner needs: readers outside must need the
  // same part of it.
  Verdict check_outer_readers(const Chain& chain) {
    const int parent = stage(chain.runner).parent;
    if (chain.split() || parent < 0 || chain.stages.size() == 1) return Verdict::allow();
    const auto axes = equal_axes(forms_, stage(parent).cone);
    for (size_t m = 0; m + 1 < chain.stages.size(); ++m) {
      const NodeId node = stage(chain.stages[m]).node;
      const std::vector<int>& own = axes.at(node);
      for (size_t d = 0; d < own.size(); ++d)
        if (own[d] < 0 && !forms_.form(node).axes[d].extent.is(1) && read_outside(chain, node))
          return refuse(chain.stages[m], "readers of a running value need other parts of it");
    }
    return Verdict::allow();
  }
  bool read_outside(const Chain& chain, NodeId node) {
    for (int i = 0; i < count(); ++i) {
      bool inside = false;
      for (int a = i; a >= 0 && !inside; a = stage(a).parent) inside = a == chain.runner;
      if (inside) continue;
      std::vector<NodeId> body = stage(i).inlined;
      body.push_back(stage(i).node);
      for (NodeId reader : body)
        for (const graph::Read& read : forms_.form(reader).reads)
          if (forms_.operand(reader, read).node == node) return true;
    }
    return false;
  }

  // What is applied at the end must still be there, or be computed from what is.
  Verdict check_factor(const Chain& chain, NodeId factor) {
    std::set<NodeId> seen = {factor};
    std::vector<NodeId> work = {factor};
    while (!work.empty()) {
      const NodeId node = work.back();
      work.pop_back();
      if (chain.cascade.member_of(node) >= 0) continue;
      if (const int s = tree_.stage_index(forms_, node); s >= 0) {
        for (int a = s; a >= 0; a = stage(a).parent)
          if (stage(a).parent == chain.runner && stage(a).depth > chain.depth)
            return refuse(s, "a factor of a running sum is stored inside its loop");
        continue;
      }
      for (const graph::Read& read : forms_.form(node).reads)
        if (const NodeId producer = forms_.operand(node, read).node;
            forms_.is_member(producer) && seen.insert(producer).second)
          work.push_back(producer);
    }
    return Verdict::allow();
  }
};

}  // namespace

Verdict find_chains(const RegionForms& forms, Tree& tree) { return ChainFinder(forms, tree).find(); }

}  // namespace fusewise::schedule
