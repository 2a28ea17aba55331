#include "random_schedule.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "schedule/footprint.h"
#include "schedule/tree.h"

namespace fusewise::test {

using graph::NodeId;
using schedule::LoopChoice;
using schedule::Placement;
using schedule::RegionForms;
using schedule::Reuse;
using schedule::Schedule;
using schedule::StageChoice;

namespace {

class Chooser {
 public:
  Chooser(const RegionForms& forms, Random& random) : forms_(forms), random_(random) {}

  Schedule choose() {
    stored_percent_ = random_.one_of({10, 30, 60, 100});
    loop_percent_ = random_.one_of({30, 60, 90});
    const auto& nodes = forms_.region.nodes;
    for (size_t i = nodes.size(); i-- > 0;) {
      find_readers(nodes[i]);
      const bool must = forms_.is_output(nodes[i]) || forms_.form(nodes[i]).accumulation.has_value();
      if (must || random_.chance(stored_percent_)) add_stage(nodes[i]);
    }
    set_phases();
    return std::move(result_);
  }

 private:
  const RegionForms& forms_;
  Random& random_;
  Schedule result_;
  int stored_percent_ = 30, loop_percent_ = 60;
  int register_vector_ = -1;
  std::map<NodeId, int> index_;              // stages
  std::map<NodeId, std::set<int>> readers_;  // of any member: the stages that read it
  std::vector<std::set<int>> stage_readers_;

  void find_readers(NodeId node) {
    for (const auto& [reader, form] : forms_.forms)
      for (const graph::Read& read : form.reads) {
        if (forms_.operand(reader, read).node != node) continue;
        if (const auto it = index_.find(reader); it != index_.end())
          readers_[node].insert(it->second);
        else
          readers_[node].insert(readers_[reader].begin(), readers_[reader].end());
      }
  }

  StageChoice& stage(int i) { return result_.stages[static_cast<size_t>(i)]; }

  void add_stage(NodeId node) {
    StageChoice s;
    s.node = node;
    const std::set<int>& readers = readers_[node];
    const bool output = forms_.is_output(node);
    if (readers.empty() || !attach(s, readers) || (output && random_.chance(60))) {
      s.parent = -1;
      s.depth = 0;
    }
    const int rank = forms_.form(node).parallel_axes();
    s.storage.resize(static_cast<size_t>(rank));
    std::iota(s.storage.begin(), s.storage.end(), 0);
    if (s.parent < 0) {
      s.placement = Placement::memory;
    } else if (output) {
      s.placement = Placement::memory;
    } else {
      s.placement = random_.chance(4) ? Placement::memory : Placement::scratch;
      const StageChoice& parent = stage(s.parent);
      const bool elementwise =
          !forms_.form(parent.node).accumulation && readers.size() == 1 && readers.count(s.parent);
      if (s.depth == static_cast<int>(parent.loops.size()) && random_.chance(elementwise ? 85 : 2))
        become_register_tile(s);
    }
    choose_loops(s, rank);
    register_vector_ = -1;
    choose_reuse(s);
    if (random_.chance(50)) random_.shuffle(s.storage);
    index_[node] = static_cast<int>(result_.stages.size());
    stage_readers_.push_back(readers);
    result_.stages.push_back(std::move(s));
  }

  // The vectors run along the parent's vector axis, as they must.
  void become_register_tile(StageChoice& s) {
    s.placement = Placement::registers;
    std::vector<NodeId> order(forms_.region.nodes.rbegin(), forms_.region.nodes.rend());
    const StageChoice& parent = stage(s.parent);
    order.erase(order.begin(), std::find(order.begin(), order.end(), parent.node));
    const auto axes = schedule::equal_axes(forms_, order);
    const std::vector<int>& own = axes.at(s.node);
    bool fits = true;
    for (size_t d = 0; d < own.size(); ++d) {
      if (own[d] >= 0 && own[d] == parent.vector_axis) register_vector_ = static_cast<int>(d);
      fits = fits && (own[d] >= 0 || forms_.form(s.node).axes[d].extent.is(1));
    }
    if (!fits && !random_.chance(5)) s.placement = Placement::scratch;
  }

  // A random place from which all readers see the value.
  bool attach(StageChoice& s, const std::set<int>& readers) {
    std::vector<std::pair<int, int>> places;  // parent, greatest depth
    for (int p = 0; p < static_cast<int>(result_.stages.size()); ++p) {
      if (stage(p).placement == Placement::registers) continue;
      int depth = static_cast<int>(stage(p).loops.size());
      bool fits = true;
      for (int reader : readers) {
        int below = reader;
        while (below >= 0 && below != p && stage(below).parent != p) below = stage(below).parent;
        if (below < 0)
          fits = false;
        else if (below != p)
          depth = std::min(depth, stage(below).depth);
      }
      if (fits) places.push_back({p, depth});
    }
    if (places.empty()) return false;
    const auto [parent, greatest] = random_.one_of(places);
    const int least = stage(parent).parent < 0 ? stage(parent).grid_loops : 0;
    if (greatest < least) return false;
    s.parent = parent;
    s.depth = random_.chance(35) ? greatest : static_cast<int>(random_.between(least, greatest));
    return true;
  }

  int64_t random_tile() {
    return random_.chance(50) ? random_.one_of<int64_t>({1, 1, 2, 4, 8, 16, 16, 32})
                              : random_.one_of<int64_t>({1, 3, 5, 6, 7, 9, 13, 17, 31, 48, 64});
  }

  void choose_loops(StageChoice& s, int rank) {
    const graph::Form& form = forms_.form(s.node);
    const bool blocked = form.accumulation && !form.accumulation->sequential;
    if (random_.chance(75) && rank > 0)
      s.vector_axis = random_.chance(60) ? rank - 1 : static_cast<int>(random_.below(rank));
    if (blocked && random_.chance(40)) s.vector_axis = static_cast<int>(form.axes.size()) - 1;
    if (s.placement == Placement::registers) {
      if (register_vector_ >= 0) s.vector_axis = register_vector_;
      return;
    }
    if (rank > 0 && random_.chance(loop_percent_)) {
      for (int64_t n = random_.between(1, 4); n > 0; --n) {
        LoopChoice loop{static_cast<int>(random_.below(rank)), random_tile()};
        if (loop.axis != s.vector_axis && random_.chance(50))
          loop.tile = std::min<int64_t>(loop.tile, random_.one_of({1, 2, 3, 4}));
        for (const LoopChoice& outer : s.loops)
          if (outer.axis == loop.axis) loop.tile = std::min(loop.tile, outer.tile);
        s.loops.push_back(loop);
      }
    }
    if (s.parent < 0 && !s.loops.empty())
      s.grid_loops = static_cast<int>(random_.between(0, static_cast<int64_t>(s.loops.size())));
  }

  // `keep` where the box moves with every loop around it, else it is computed again. Now and then a ring.
  void choose_reuse(StageChoice& s) {
    if (s.parent < 0) return;
    const StageChoice& parent = stage(s.parent);
    const graph::Form& form = forms_.form(s.node);
    s.reuse = s.depth == 0 ? Reuse::keep : random_.one_of({Reuse::keep, Reuse::recompute});
    const int first = parent.parent < 0 ? parent.grid_loops : 0;
    if (s.placement == Placement::scratch && s.depth > first && form.parallel_axes() > 0 &&
        random_.chance(60)) {
      s.reuse = Reuse::slide;
      s.slide_axis = static_cast<int>(random_.below(form.parallel_axes()));
      // Mostly the axis that moves with the loop.
      std::vector<NodeId> cone(forms_.region.nodes.rbegin(), forms_.region.nodes.rend());
      cone.erase(cone.begin(), std::find(cone.begin(), cone.end(), parent.node));
      const auto depends = schedule::root_dependences(forms_, cone);
      const uint64_t along = uint64_t{1} << parent.loops[static_cast<size_t>(s.depth) - 1].axis;
      if (const auto it = depends.find(s.node); it != depends.end() && random_.chance(90))
        for (size_t d = 0; d < it->second.size(); ++d)
          if (it->second[d] & along) s.slide_axis = static_cast<int>(d);
    }
  }

  // A root that others read runs in an earlier phase.
  void set_phases() {
    for (int i = static_cast<int>(result_.stages.size()); i-- > 0;) {
      for (int reader : stage_readers_[static_cast<size_t>(i)]) {
        int from = i, to = reader;
        while (stage(from).parent >= 0) from = stage(from).parent;
        while (stage(to).parent >= 0) to = stage(to).parent;
        if (from == to) continue;
        raise(to, stage(from).phase + 1, 0);
      }
    }
  }
  void raise(int root, int phase, int steps) {
    if (stage(root).phase >= phase || steps > 64) return;
    stage(root).phase = phase;
    for (int i = 0; i < static_cast<int>(result_.stages.size()); ++i) {
      int from = i;
      while (stage(from).parent >= 0) from = stage(from).parent;
      if (from != root) continue;
      for (int reader : stage_readers_[static_cast<size_t>(i)]) {
        int to = reader;
        while (stage(to).parent >= 0) to = stage(to).parent;
        if (to != root) raise(to, phase + 1, steps + 1);
      }
    }
  }
};

}  // namespace

Schedule random_schedule(const RegionForms& forms, Random& random) { return Chooser(forms, random).choose(); }

namespace {

// Makes room for a stage at `place`: numbers of parents behind it move up.
void insert_stage(Schedule& schedule, int place, StageChoice stage) {
  for (StageChoice& s : schedule.stages)
    if (s.parent >= place) ++s.parent;
  schedule.stages.insert(schedule.stages.begin() + place, std::move(stage));
}

}  // namespace

bool draw_blocks(const RegionForms& forms, Random& random, Schedule& schedule) {
  std::vector<int> reductions;
  for (int i = 0; i < static_cast<int>(schedule.stages.size()); ++i) {
    const StageChoice& s = schedule.stages[static_cast<size_t>(i)];
    if (forms.form(s.node).accumulation && s.placement != Placement::registers && !s.partial &&
        s.reuse != Reuse::carry && s.reuse != Reuse::slide)
      reductions.push_back(i);
  }
  if (reductions.empty()) return false;
  int runner = random.one_of(reductions);
  const NodeId node = schedule.stages[static_cast<size_t>(runner)].node;
  const int axis = schedule::block_axis(forms.form(node));
  std::set<NodeId> members;
  const schedule::CascadeResult chain = schedule::derive_cascade(forms, node, std::nullopt);
  if (chain.verdict)
    for (const schedule::CascadeMember& m : chain.cascade.members)
      if (m.node != node) members.insert(m.node);

  const bool split = random.chance(50);
  const int finisher = runner;
  int root = runner;
  while (schedule.stages[static_cast<size_t>(root)].parent >= 0)
    root = schedule.stages[static_cast<size_t>(root)].parent;
  const int phase = schedule.stages[static_cast<size_t>(root)].phase;
  const int64_t block = random.one_of<int64_t>({1, 2, 3, 5, 7, 8, 13, 16, 31, 64});
  if (split) {
    StageChoice partial = schedule.stages[static_cast<size_t>(runner)];
    partial.partial = true;
    partial.parent = -1;
    partial.depth = 0;
    partial.phase = phase;
    partial.placement = Placement::memory;
    partial.reuse = Reuse::keep;
    for (StageChoice& s : schedule.stages)
      if (s.parent < 0 && s.phase >= phase) ++s.phase;
    partial.loops.insert(partial.loops.begin() + partial.grid_loops,
                         {axis, block * random.one_of<int64_t>({1, 1, 2, 3, 5})});
    ++partial.grid_loops;
    insert_stage(schedule, ++runner, partial);
  }
  StageChoice& state = schedule.stages[static_cast<size_t>(runner)];
  const int place = static_cast<int>(
      random.between(state.parent < 0 ? state.grid_loops : 0, static_cast<int64_t>(state.loops.size())));
  state.loops.insert(state.loops.begin() + place, {axis, block});
  const int parent = schedule.stages[static_cast<size_t>(finisher)].parent;
  for (int i = 0; i < static_cast<int>(schedule.stages.size()); ++i) {
    StageChoice& s = schedule.stages[static_cast<size_t>(i)];
    if (i == runner) continue;
    if (s.parent == finisher && i != runner) {
      // What the reduction alone reads moves inside, mostly.
      s.parent = runner;
      const bool inside = s.depth > place || random.chance(70);
      s.depth = inside && s.depth <= place ? place + 1 : inside ? s.depth + 1 : s.depth;
      if (split) s.depth = place + 1;
      if (s.reuse == Reuse::slide) s.reuse = Reuse::keep;
      s.slide_axis = -1;
    }
    const bool beside = s.parent == parent || s.parent == runner;
    if (members.count(s.node) && beside && i > runner && s.parent >= 0 &&
        s.placement != Placement::registers) {
      s.parent = runner;
      s.depth = place + 1;
      s.reuse = Reuse::carry;
      s.slide_axis = -1;
    }
  }
  return true;
}

}  // namespace fusewise::test
