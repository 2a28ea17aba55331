#include "schedule/tree_threads.h"

#include <algorithm>
#include <optional>
#include <set>

namespace fusewise::schedule {

namespace {

// Whether each thread has one register tile where a reduction goes on over several steps.
Verdict check_thread_tiles(const RegionForms& forms, const Tree& tree, const Stage& s) {
  const auto refuse = [&](const char* why) { return Verdict::forbid("threads", why, {s.node}); };
  std::set<int> axes;
  for (int l = s.group_loops(); l < static_cast<int>(s.loops.size()); ++l)
    if (!axes.insert(s.loops[static_cast<size_t>(l)].axis).second || l == s.reduction_loop)
      return refuse("two thread loops over one axis, or one over a reduction");
  if (s.reduction_loop < 0) return Verdict::allow();
  const bool is_register = s.placement == Placement::registers;
  const Stage& owner = is_register ? tree.stages[static_cast<size_t>(s.parent)] : s;
  if (!owner.cooperative || (!is_register && s.reduction_loop != s.group_loops() - 1))
    return refuse("a reduction in steps stands directly in front of thread loops");
  if (s.grid_loops > s.reduction_loop && s.parent < 0)
    return refuse("the steps of a reduction are no blocks");
  // One register tile a thread: the tiles of the whole group, counted.
  int64_t tiles = 1;
  for (int a = 0; a < forms.form(owner.node).parallel_axes(); ++a) {
    std::optional<int64_t> before = forms.form(owner.node).axes[static_cast<size_t>(a)].extent.constant();
    bool threads = false;
    for (int l = 0; l < static_cast<int>(owner.loops.size()); ++l) {
      const LoopChoice& loop = owner.loops[static_cast<size_t>(l)];
      if (loop.axis != a) continue;
      threads = l >= owner.group_loops();
      if (threads && !before) return refuse("the tiles of threads have no constant number");
      if (threads) tiles *= (*before + loop.tile - 1) / loop.tile;
      before = std::min(before.value_or(loop.tile), loop.tile);
    }
    if (!threads && before != 1)
      return refuse("an axis that no thread loop cuts, around a reduction in steps");
  }
  if (tiles > tree.threads) return refuse("more register tiles than threads, around a reduction in steps");
  return Verdict::allow();
}

// Whether the threads of a team can reduce each result together.
Verdict check_team(const RegionForms& forms, const Tree& tree, const Stage& s) {
  const auto refuse = [&](const char* why) { return Verdict::forbid("threads", why, {s.node}); };
  const Form& form = forms.form(s.node);
  if (s.team < 1 || tree.threads % s.team != 0) return refuse("a group is no whole number of teams");
  if (!s.cooperative || !form.accumulation || form.accumulation->sequential)
    return refuse("a team reduces in lanes what its group computes together");
  if (s.team % tree.order.lanes != 0) return refuse("a team has no whole number of threads for each lane");
  if (s.team > tree.order.lanes && tree.order.block >= free_block)
    return refuse("a team has threads for several blocks where there is one");
  for (int a = 0; a < form.parallel_axes(); ++a) {
    int64_t tile = form.axes[static_cast<size_t>(a)].extent.is(1) ? 1 : 0;
    for (const LoopChoice& loop : s.loops)
      if (loop.axis == a) tile = loop.tile;
    if (tile != 1) return refuse("a team has one result at a time");
  }
  for (int c : s.children)
    if (!tree.stages[static_cast<size_t>(c)].cooperative)
      return refuse("a stage inside of a team's work, which no single thread does");
  return Verdict::allow();
}

}  // namespace

Verdict settle_threads(const RegionForms& forms, Tree& tree) {
  const auto stage = [&](int i) -> Stage& { return tree.stages[static_cast<size_t>(i)]; };
  if (tree.threads < 1) return Verdict::forbid("malformed", "a group without threads", {stage(0).node});
  for (int i = 0; i < static_cast<int>(tree.stages.size()); ++i) {
    Stage& s = stage(i);
    const auto refuse = [&](const char* why) { return Verdict::forbid("threads", why, {s.node}); };
    if (tree.threads == 1) {
      if (s.thread_loops > 0) return refuse("thread loops without threads");
      continue;
    }
    if (s.vector_axis >= 0) return refuse("threads take the place of vectors");
    if (s.reuse == Reuse::slide) return refuse("a value does not slide where threads compute it together");
    if (s.parent < 0) {
      s.cooperative = true;
    } else {
      const Stage& p = stage(s.parent);
      const bool in_steps = p.placement == Placement::registers && p.reduction_loop == 0;
      const int outside = p.group_loops();
      const bool is_outside =
          s.placement != Placement::registers && (in_steps ? s.depth == 1 : s.depth <= outside);
      s.cooperative = (p.cooperative || in_steps) && is_outside;
      if (p.cooperative && !s.cooperative && s.depth != static_cast<int>(p.loops.size()))
        return refuse("a stage is attached between the loops of threads");
      if (!s.cooperative && s.placement == Placement::memory)
        return refuse("an output is computed inside of a thread's work");
    }
    if (!s.cooperative && s.thread_loops > 0) return refuse("threads inside of a thread's work");
    if (const Verdict verdict = check_thread_tiles(forms, tree, s); !verdict) return verdict;
  }
  for (int i = 0; i < static_cast<int>(tree.stages.size()); ++i)
    if (stage(i).team != 1)
      if (const Verdict verdict = check_team(forms, tree, stage(i)); !verdict) return verdict;
  return Verdict::allow();
}

}  // namespace fusewise::schedule
