#include "fusion/tiles/reduction_forms.h"

#include <algorithm>
#include <set>

#include "fusion/tiles/usual_sizes.h"
#include "schedule/cascade.h"
#include "schedule/tree.h"

namespace fusewise::fusion {

using graph::NodeId;
using schedule::Cascade;
using schedule::LoopChoice;
using schedule::Placement;
using schedule::RegionForms;
using schedule::Reuse;
using schedule::Schedule;
using schedule::StageChoice;

namespace {

// Shorter axes leave nothing to gain: a state costs about what a few vectors do.
constexpr int64_t least_blocks_elements = 512, least_split_elements = 8192;
// Rows of a tile of a contraction that runs over blocks: their accumulators and a block of each operand fill a part
// of the L2 cache.
constexpr int64_t widest_rows = 64;

// The chain that ends at a reduction; alone where its summand lets nothing be pulled out.
Cascade chain_of(const RegionForms& forms, NodeId last) {
  schedule::CascadeResult derived = schedule::derive_cascade(forms, last, std::nullopt);
  if (!derived.verdict) derived = schedule::derive_cascade(forms, last, std::set<NodeId>{});
  return derived.cascade;
}

// One transformation of a schedule. Stages are kept with their parents by place and brought into order at the end.
class Draft : UsualSizes {
 public:
  Draft(const RegionForms& forms, const machine::Machine& machine, const TileOptions& options,
        const Schedule& base, const schedule::Tree& tree, const Cascade& chain)
      : UsualSizes(forms, options.usual),
        forms_(forms),
        machine_(machine),
        options_(options),
        base_(base),
        chain_(chain),
        tree_(tree),
        stages_(base.stages),
        gone_(base.stages.size(), false) {
    for (const schedule::CascadeMember& m : chain.members) members_.insert(m.node);
    runner_ = tree_.stage_index(forms, chain.members.back().node);
  }

  // One pass over blocks of `block` along the axis.
  std::optional<Schedule> in_blocks(int64_t block) {
    if (!prepare()) return std::nullopt;
    StageChoice& runner = stage(runner_);
    const int place = runner.parent < 0 ? runner.grid_loops : 0;
    if (!move_inside(runner_, place + 1, false)) return std::nullopt;
    widen_rows(runner);
    insert_loop(runner, place, {axis(), block});
    return in_order();
  }

  // `parts` of the axis apart, each in blocks of `block`; the reader's tree combines them.
  std::optional<Schedule> in_parts(int64_t parts, int64_t block) {
    if (!prepare()) return std::nullopt;
    const int64_t extent = axis_extent();
    const int64_t unit = inner_elements() == 1 ? 64 : 1;
    const int64_t part = std::max(unit, ((extent + parts - 1) / parts + unit - 1) / unit * unit);
    if (part >= extent) return std::nullopt;
    StageChoice partial = stage(runner_);
    partial.partial = true;
    partial.placement = Placement::memory;
    partial.reuse = Reuse::keep;
    partial.parent = -1;
    partial.depth = 0;
    const int root = root_of(runner_);
    partial.phase = stage(root).phase;
    for (StageChoice& s : stages_)
      if (s.parent < 0 && s.phase >= partial.phase) ++s.phase;
    if (root != runner_) own_grid(partial);
    const int place = partial.grid_loops;
    insert_loop(partial, place, {axis(), part});
    ++partial.grid_loops;
    insert_loop(partial, place + 1, {axis(), std::min(block, part)});
    const int index = static_cast<int>(stages_.size());
    stages_.push_back(partial);
    gone_.push_back(false);
    if (!move_inside(index, place + 2, true)) return std::nullopt;
    if (root != runner_ && stage(runner_).parent == root) spread_reader(root);
    return in_order();
  }

  // Blocks of the grid that the chain's tree has now.
  int64_t blocks_now() const {
    const StageChoice& root = base_.stages[static_cast<size_t>(root_of(runner_))];
    int64_t blocks = 1;
    std::map<int, int64_t> left;
    for (int l = 0; l < root.grid_loops; ++l) {
      const LoopChoice& loop = root.loops[static_cast<size_t>(l)];
      int64_t& e = left.try_emplace(loop.axis, extent(root.node, loop.axis)).first->second;
      blocks *= (e + loop.tile - 1) / loop.tile;
      e = std::min(e, loop.tile);
    }
    return blocks;
  }
  int64_t axis_extent() const { return extent(chain_.members.back().node, axis()); }
  int64_t inner_elements() const {
    return reduction_elements(chain_.members.back().node) / std::max<int64_t>(axis_extent(), 1);
  }

 private:
  const RegionForms& forms_;
  const machine::Machine& machine_;
  const TileOptions& options_;
  const Schedule& base_;
  const Cascade& chain_;
  schedule::Tree tree_;
  std::vector<StageChoice> stages_;
  std::vector<bool> gone_;
  std::set<NodeId> members_;
  int runner_ = -1;

  StageChoice& stage(int i) { return stages_[static_cast<size_t>(i)]; }
  int axis() const { return schedule::block_axis(forms_.form(chain_.members.back().node)); }
  int root_of(int i) const {
    while (stages_[static_cast<size_t>(i)].parent >= 0) i = stages_[static_cast<size_t>(i)].parent;
    return i;
  }

  // A register tile becomes a stage of its own, with the loops of the body that held it.
  bool prepare() {
    if (runner_ < 0) return false;
    for (const schedule::CascadeMember& m : chain_.members)
      if (const int s = tree_.stage_index(forms_, m.node);
          s < 0 || stage(s).partial || stage(s).reuse == Reuse::carry ||
          tree_.stages[static_cast<size_t>(s)].chain >= 0 || root_of(s) != root_of(runner_))
        return false;
    StageChoice& runner = stage(runner_);
    if (runner.reuse == Reuse::slide) return false;
    if (runner.placement != Placement::registers) return true;
    StageChoice& host = stage(runner.parent);
    if (host.parent >= 0) return false;
    const auto axes = schedule::equal_axes(forms_, tree_.stages[static_cast<size_t>(runner.parent)].cone);
    const std::vector<int>& own = axes.at(runner.node);
    runner.placement = Placement::scratch;
    runner.depth = host.grid_loops;
    for (size_t l = static_cast<size_t>(host.grid_loops); l < host.loops.size(); ++l)
      for (size_t d = 0; d < own.size(); ++d)
        if (own[d] == host.loops[l].axis) runner.loops.push_back({static_cast<int>(d), host.loops[l].tile});
    return true;
  }

  static void insert_loop(StageChoice& s, int place, LoopChoice loop) {
    s.loops.insert(s.loops.begin() + place, loop);
  }

  std::set<int> readers_of(NodeId node) const {
    std::set<int> readers;
    for (size_t i = 0; i < tree_.stages.size(); ++i) {
      if (gone_[i]) continue;
      std::vector<NodeId> body = tree_.stages[i].inlined;
      body.push_back(tree_.stages[i].node);
      for (NodeId reader : body)
        for (const graph::Read& read : forms_.form(reader).reads)
          if (forms_.operand(reader, read).node == node) readers.insert(static_cast<int>(i));
    }
    return readers;
  }
  bool depends_on_members(int s) const {
    const schedule::Stage& t = tree_.stages[static_cast<size_t>(s)];
    std::vector<NodeId> nodes = t.inlined;
    nodes.push_back(t.node);
    const std::set<NodeId> producers = producers_of(std::move(nodes));
    return std::ranges::any_of(chain_.members, [&](const schedule::CascadeMember& m) {
      return m.node != chain_.members.back().node && producers.count(m.node) != 0;
    });
  }

  // Nodes of the region that these read, directly or through others.
  std::set<NodeId> producers_of(std::vector<NodeId> work) const {
    std::set<NodeId> found;
    while (!work.empty()) {
      const NodeId node = work.back();
      work.pop_back();
      for (const graph::Read& read : forms_.form(node).reads) {
        const NodeId producer = forms_.operand(node, read).node;
        if (forms_.is_member(producer) && found.insert(producer).second) work.push_back(producer);
      }
    }
    return found;
  }

  // Members are carried; what only they read is computed inside, block by block; what others read too is computed
  // where it is read, unless it is complete before (`apart`: it never is, for another tree).
  bool move_inside(int into, int depth, bool apart) {
    const std::set<int> upstream = upstream_stages();
    std::set<int> inside = {runner_};
    std::vector<int> order(upstream.begin(), upstream.end());
    std::sort(order.begin(), order.end(), [&](int a, int b) { return stage(a).node > stage(b).node; });
    for (int s : order) {
      StageChoice& t = stage(s);
      if (t.placement == Placement::registers || gone_[static_cast<size_t>(s)]) continue;
      const bool member = members_.count(t.node) != 0;
      if (member) {
        t.parent = into;
        t.depth = depth;
        t.reuse = Reuse::carry;
        t.slide_axis = -1;
        inside.insert(s);
        continue;
      }
      if (t.parent < 0) {
        if (t.phase >= stages_[static_cast<size_t>(into)].phase && apart) return false;
        continue;
      }
      const std::set<int> readers = readers_of(t.node);
      const bool own = t.placement == Placement::scratch && t.reuse != Reuse::slide &&
                       std::all_of(readers.begin(), readers.end(), [&](int r) {
                         for (int a = r; a >= 0; a = stage(a).parent)
                           if (inside.count(a)) return true;
                         return false;
                       });
      if (own && !has_children(s) && schedule::only_applies_factor(forms_, chain_, t.node)) {
        drop(s);
        continue;
      }
      if (own) {
        t.parent = into;
        t.depth = depth;
        t.reuse = Reuse::keep;
        inside.insert(s);
        continue;
      }
      if (!apart && !depends_on_members(s)) continue;
      if (forms_.form(t.node).accumulation || t.placement != Placement::scratch || has_children(s))
        return false;
      drop(s);
    }
    // What hung on the runner hangs on the stage with the loop.
    for (size_t i = 0; i < stages_.size(); ++i)
      if (stages_[i].parent == runner_ && !gone_[i] && !inside.count(static_cast<int>(i))) return false;
    return true;
  }

  bool has_children(int s) const {
    for (size_t i = 0; i < stages_.size(); ++i)
      if (stages_[i].parent == s && !gone_[i]) return true;
    return false;
  }

  // The stage's node is computed by its readers from now on.
  void drop(int s) {
    gone_[static_cast<size_t>(s)] = true;
    const schedule::Stage& t = tree_.stages[static_cast<size_t>(s)];
    for (int r : readers_of(t.node)) {
      std::vector<NodeId>& inlined = tree_.stages[static_cast<size_t>(r)].inlined;
      std::set<NodeId> joined(inlined.begin(), inlined.end());
      joined.insert(t.inlined.begin(), t.inlined.end());
      joined.insert(t.node);
      inlined.assign(joined.begin(), joined.end());
    }
  }

  // Stages that the chain's last reduction reads, directly or through others.
  std::set<int> upstream_stages() const {
    std::set<int> result;
    for (const NodeId producer : producers_of({chain_.members.back().node}))
      if (const int s = tree_.stage_index(forms_, producer); s >= 0) result.insert(s);
    return result;
  }

  // Tiles of rows that were small because whole rows lay in scratch: a block of the other operand serves more of them.
  void widen_rows(StageChoice& root) {
    if (root.parent >= 0) return;
    for (int l = 0; l < root.grid_loops; ++l) {
      LoopChoice& loop = root.loops[static_cast<size_t>(l)];
      int64_t unit = 0;
      for (size_t inner = static_cast<size_t>(root.grid_loops); inner < root.loops.size(); ++inner)
        if (root.loops[inner].axis == loop.axis) unit = root.loops[inner].tile;
      if (unit < 1 || loop.axis == root.vector_axis) continue;
      const int64_t rows = extent(root.node, loop.axis);
      const int64_t others = std::max<int64_t>(1, blocks_now() / ((rows + loop.tile - 1) / loop.tile));
      const int64_t wanted = options_.threads > 1 ? 4 * options_.threads : 1;
      int64_t tile = std::max<int64_t>(loop.tile, widest_rows / unit * unit);
      while (tile > loop.tile && others * ((rows + tile - 1) / tile) < wanted) tile -= unit;
      loop.tile = std::max(loop.tile, tile);
    }
  }

  // The grid of a tree that a stage inside another one becomes the root of.
  void own_grid(StageChoice& s) const {
    std::vector<LoopChoice> grid;
    const int rank = forms_.form(s.node).parallel_axes();
    for (int a : s.storage)
      if (extent(s.node, a) > 1 || !forms_.form(s.node).axes[static_cast<size_t>(a)].extent.is_constant()) {
        const bool contracts = forms_.form(s.node).accumulation->sequential;
        const int64_t tile = contracts                        ? 64
                             : a == s.vector_axis && a < rank ? 4 * machine_.lanes(DataType::float32)
                                                              : 1;
        int64_t least = tile;
        for (const LoopChoice& loop : s.loops)
          if (loop.axis == a) least = std::max(least, loop.tile);
        grid.push_back({a, least});
      }
    s.loops.insert(s.loops.begin(), grid.begin(), grid.end());
    s.grid_loops = static_cast<int>(grid.size());
  }

  // What reads the combined result no longer needs whole rows: its columns are spread over threads.
  void spread_reader(int root) {
    StageChoice& r = stage(root);
    const int axis = r.vector_axis;
    if (axis < 0 || axis >= forms_.form(r.node).parallel_axes()) return;
    for (int l = 0; l < r.grid_loops; ++l)
      if (r.loops[static_cast<size_t>(l)].axis == axis) return;
    const int64_t wanted = std::max<int64_t>(1, 4 * options_.threads / std::max<int64_t>(blocks_now(), 1));
    const int64_t tile = std::max<int64_t>(1024, (extent(r.node, axis) / wanted + 63) / 64 * 64);
    if (tile >= extent(r.node, axis)) return;
    insert_loop(r, r.grid_loops, {axis, tile});
    for (size_t i = 0; i < stages_.size(); ++i)
      if (stages_[i].parent == root && !gone_[i] && stages_[i].depth >= r.grid_loops) ++stages_[i].depth;
    ++r.grid_loops;
    // What the loop over single rows inside it would compute again for every row is computed once in front of it.
    StageChoice& runner = stage(runner_);
    if (runner.parent == root) runner.depth = std::min(runner.depth, static_cast<int>(r.loops.size()));
  }

  // Parents first; what its parent has lost has gone with it.
  std::optional<Schedule> in_order() {
    std::vector<int> place(stages_.size(), -1);
    Schedule result;
    result.order = base_.order;
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t i = 0; i < stages_.size(); ++i) {
        const int parent = stages_[i].parent;
        if (gone_[i] || place[i] >= 0 || (parent >= 0 && place[static_cast<size_t>(parent)] < 0)) continue;
        place[i] = static_cast<int>(result.stages.size());
        result.stages.push_back(stages_[i]);
        if (parent >= 0) result.stages.back().parent = place[static_cast<size_t>(parent)];
        progress = true;
      }
    }
    for (size_t i = 0; i < stages_.size(); ++i)
      if (!gone_[i] && place[i] < 0) return std::nullopt;
    return result;
  }
};

}  // namespace

std::vector<NodeId> chain_ends(const RegionForms& forms, const SymbolValues& usual) {
  const UsualSizes sizes(forms, usual);
  std::vector<NodeId> ends;
  std::set<NodeId> inside;
  for (size_t i = forms.region.nodes.size(); i-- > 0;) {
    const NodeId node = forms.region.nodes[i];
    if (!forms.form(node).accumulation || inside.count(node)) continue;
    const int axis = schedule::block_axis(forms.form(node));
    if (axis < 0 || sizes.reduction_elements(node) < least_blocks_elements || sizes.extent(node, axis) < 2)
      continue;
    const Cascade chain = chain_of(forms, node);
    for (const schedule::CascadeMember& m : chain.members) inside.insert(m.node);
    const bool wide = sizes.reduction_elements(node) * sizes.element_count(node) >= least_split_elements;
    if (chain.members.size() > 1 || wide) ends.push_back(node);
  }
  return ends;
}

std::vector<Schedule> reduction_forms(const RegionForms& forms, const schedule::Layouts& layouts,
                                      const machine::Machine& machine, const TileOptions& options,
                                      const Schedule& base, NodeId last) {
  std::vector<Schedule> result;
  if (options.order.block < schedule::free_block) return result;
  const Cascade chain = chain_of(forms, last);
  const schedule::TreeResult tree = schedule::build_tree(forms, base, layouts);
  if (!tree.verdict) return result;
  const auto draft = [&] { return Draft(forms, machine, options, base, tree.tree, chain); };
  const auto offer = [&](std::optional<Schedule> schedule) {
    if (schedule && std::find(result.begin(), result.end(), *schedule) == result.end())
      result.push_back(std::move(*schedule));
  };
  const Draft now = draft();
  const int64_t extent = now.axis_extent(), inner = now.inner_elements();
  const bool contracts = std::any_of(chain.members.begin(), chain.members.end(), [&](const auto& m) {
    return forms.form(m.node).accumulation->multiply_add;
  });
  std::vector<int64_t> blocks = contracts ? std::vector<int64_t>{128, 256} : std::vector<int64_t>{1024, 4096};
  for (int64_t& block : blocks) block = std::max<int64_t>(1, block / inner);
  if (chain.members.size() > 1)
    for (int64_t block : blocks)
      if (block < extent) offer(draft().in_blocks(block));
  const UsualSizes sizes(forms, options.usual);
  const int64_t work = sizes.reduction_elements(last) * sizes.element_count(last);
  if (options.threads > 1 && work >= least_split_elements && now.blocks_now() < 2 * options.threads)
    for (int64_t parts : {int64_t{1}, int64_t{4}}) {
      const int64_t wanted =
          std::max<int64_t>(2, parts * options.threads / std::max<int64_t>(now.blocks_now(), 1));
      offer(draft().in_parts(wanted, blocks.back()));
    }
  return result;
}

}  // namespace fusewise::fusion
