#include "fusion/tiles/choose_group_schedule.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "schedule/lower.h"

namespace fusewise::fusion {

using graph::Form;
using graph::NodeId;
using graph::Read;
using schedule::LoopChoice;
using schedule::Placement;
using schedule::RegionForms;
using schedule::Schedule;
using schedule::StageChoice;

namespace {

constexpr int group_threads = 64;
// Where a reduction has so many elements, more threads share them.
constexpr int64_t long_reduction = 4096;
constexpr int most_group_threads = 256;
// A contraction: threads along each of two axes, results a thread computes along each, and the step of the reduction.
constexpr int64_t side = 8, register_side = 4, reduction_step = 16;
// Rows of a group that are tried, most first.
constexpr int64_t row_tiles[] = {8, 4, 2, 1};

class Chooser {
 public:
  Chooser(const RegionForms& forms, const schedule::Layouts& layouts, const machine::Machine& machine,
          ReductionOrder order)
      : forms_(forms), layouts_(layouts), machine_(machine), order_(order) {
    bool is_long = false;
    for (NodeId node : forms.region.nodes)
      is_long = is_long || reduced_elements(node).value_or(0) >= long_reduction;
    threads_ = std::min(is_long ? most_group_threads : group_threads, machine.most_threads);
  }

  GroupSchedule choose() {
    if (try_schedule(contraction())) return result_;
    for (has_teams_ = true;; has_teams_ = false) {
      for (int64_t rows : row_tiles)
        if (try_schedule(one_nest(rows))) return result_;
      for (bool all : {false, true})
        if (try_schedule(phases(all))) return result_;
      if (!has_teams_) return result_;
    }
  }

 private:
  const RegionForms& forms_;
  const schedule::Layouts& layouts_;
  const machine::Machine& machine_;
  ReductionOrder order_;
  int threads_ = 1;  // of a group
  bool has_teams_ = true;
  GroupSchedule result_;

  bool try_schedule(Schedule schedule) {
    if (schedule.stages.empty()) return false;
    schedule.order = order_;
    schedule.threads = threads_;
    const schedule::TreeResult built = schedule::build_tree(forms_, schedule, layouts_);
    result_ = {built.verdict, std::move(schedule), built.tree};
    if (!built.verdict.allowed()) return false;
    const auto bytes = schedule::shared_bytes(schedule::lower(forms_, built.tree, {1}));
    if (!bytes || *bytes > machine_.shared_bytes)
      result_.verdict = Verdict::forbid("shared-memory", "a group's threads would share more than there is",
                                        {forms_.region.nodes.back()});
    return result_.verdict.allowed();
  }

  const Form& form(NodeId node) const { return forms_.form(node); }
  int rank(NodeId node) const { return form(node).parallel_axes(); }
  const Dim& extent(NodeId node, int axis) const { return form(node).axes[static_cast<size_t>(axis)].extent; }
  bool is_contraction(NodeId node) const {
    return form(node).accumulation && form(node).accumulation->multiply_add;
  }

  // Of a reduction in lanes; nothing where it is none, or of a number of elements that is known at run time only.
  std::optional<int64_t> reduced_elements(NodeId node) const {
    if (!is_reduction(node)) return std::nullopt;
    Dim elements = 1;
    for (const graph::Axis& a : form(node).axes)
      if (a.reduction) elements = elements * a.extent;
    return elements.constant();
  }
  bool is_reduction(NodeId node) const {
    return form(node).accumulation && !form(node).accumulation->sequential;
  }

  // A thread for each lane, and as many blocks at a time as there are and as the group has threads for. Short rows are
  // not worth the barriers.
  int team_of(NodeId node) const {
    const int lanes = order_.lanes;
    const std::optional<int64_t> elements = reduced_elements(node);
    if (!has_teams_ || !is_reduction(node) || threads_ % lanes != 0 || threads_ == 1 ||
        elements.value_or(2 * lanes) < 2 * lanes)
      return 1;
    const int64_t blocks = elements && order_.block < schedule::free_block ? *elements / order_.block : 1;
    int team = lanes;
    while (team / lanes * 2 <= blocks && threads_ % (team * 2) == 0) team *= 2;
    return team;
  }
  // The results of the region's reductions that a group computes at a time.
  int64_t teams() const {
    int most = 1;
    for (NodeId node : forms_.region.nodes) most = std::max(most, team_of(node));
    return threads_ / most;
  }

  StageChoice stage_of(NodeId node) const {
    StageChoice s;
    s.node = node;
    s.storage.resize(static_cast<size_t>(rank(node)));
    std::iota(s.storage.begin(), s.storage.end(), 0);
    return s;
  }
  // Every axis in single elements, spread over threads.
  void spread(StageChoice& s) const {
    for (int a = 0; a < rank(s.node); ++a) {
      if (extent(s.node, a).is(1)) continue;
      s.loops.push_back({a, 1});
      ++s.thread_loops;
    }
    s.team = team_of(s.node);
  }
  void add_grid(StageChoice& s, int axis, int64_t tile) const {
    if (extent(s.node, axis).is(1)) return;
    s.loops.push_back({axis, tile});
    ++s.grid_loops;
  }

  std::vector<NodeId> member_operands(NodeId node) const {
    std::set<NodeId> result;
    for (const Read& read : form(node).reads) {
      const NodeId producer = forms_.operand(node, read).node;
      if (forms_.is_member(producer)) result.insert(producer);
    }
    return {result.begin(), result.end()};
  }

  // Operations that are worth keeping instead of doing again.
  bool is_heavy(NodeId node) const {
    return std::any_of(form(node).body.begin(), form(node).body.end(), [](const graph::BodyNode& b) {
      return b.kind == graph::BodyNode::Kind::apply && class_of(b.op) != ScalarClass::convert;
    });
  }

  // What is stored in every form: outputs, reductions, and what a contraction would compute again and again.
  std::vector<NodeId> stored() const {
    std::set<NodeId> result;
    for (NodeId node : forms_.region.nodes) {
      if (forms_.is_output(node) || form(node).accumulation) result.insert(node);
      if (!is_contraction(node)) continue;
      for (NodeId operand : member_operands(node))
        if (is_heavy(operand)) result.insert(operand);
    }
    return {result.begin(), result.end()};
  }

  // --- 1: a contraction with an epilogue
  Schedule contraction() {
    NodeId found = graph::no_node;
    for (NodeId node : forms_.region.nodes) {
      if (!form(node).accumulation) continue;
      if (found != graph::no_node || !is_contraction(node)) return {};
      found = node;
    }
    const bool single = forms_.region.outputs.size() == 1;
    if (found == graph::no_node || !single || form(found).axes.size() == static_cast<size_t>(rank(found)))
      return {};
    const NodeId root = forms_.region.outputs[0].node;
    Schedule schedule;
    schedule.stages.push_back(stage_of(root));
    StageChoice& r = schedule.stages[0];
    std::vector<int> wide;
    for (int a = rank(root); a-- > 0;)
      if (!extent(root, a).is(1) && wide.size() < 2) wide.push_back(a);
    const auto is_wide = [&](int a) { return std::find(wide.begin(), wide.end(), a) != wide.end(); };
    for (int a = 0; a < rank(root); ++a) add_grid(r, a, is_wide(a) ? side * register_side : 1);
    const LoopChoice steps{rank(found), reduction_step};
    if (found == root) r.loops.push_back(steps);
    for (int a = 0; a < rank(root); ++a) {
      if (!is_wide(a)) continue;
      r.loops.push_back({a, register_side});
      ++r.thread_loops;
    }
    int owner = 0;
    if (found != root) {
      StageChoice c = stage_of(found);
      c.parent = 0;
      c.depth = static_cast<int>(r.loops.size());
      c.placement = Placement::registers;
      c.loops = {steps};
      owner = 1;
      schedule.stages.push_back(std::move(c));
    }
    const int depth = owner == 0 ? schedule.stages[0].grid_loops + 1 : 1;
    for (NodeId operand : member_operands(found)) {
      StageChoice o = stage_of(operand);
      o.parent = owner;
      o.depth = depth;
      o.placement = Placement::scratch;
      spread(o);
      schedule.stages.push_back(std::move(o));
    }
    return schedule;
  }

  // Blocks of about as many elements as there are threads, the innermost axes first.
  void add_block(StageChoice& s) const {
    int64_t room = threads_ / team_of(s.node);
    std::vector<int64_t> tiles(static_cast<size_t>(rank(s.node)), 1);
    for (int a = rank(s.node); a-- > 0;) {
      const int64_t most = extent(s.node, a).constant().value_or(room);
      tiles[static_cast<size_t>(a)] = std::clamp<int64_t>(most, 1, room);
      room = std::max<int64_t>(room / tiles[static_cast<size_t>(a)], 1);
    }
    for (int a = 0; a < rank(s.node); ++a) add_grid(s, a, tiles[static_cast<size_t>(a)]);
  }

  // --- 2: one loop nest
  Schedule one_nest(int64_t rows) {
    const std::vector<NodeId> nodes = stored();
    const NodeId root = nodes.back();
    Schedule schedule;
    schedule.stages.push_back(stage_of(root));
    StageChoice& r = schedule.stages[0];
    if (nodes.size() == 1) {
      if (rows != row_tiles[0]) return {};
      add_block(r);
    } else {
      const auto equal = equal_to(root);
      for (NodeId node : nodes)
        if (!equal.contains(node)) return {};  // the root's boxes say nothing of it
      const std::vector<bool> common = common_axes(root, nodes, equal);
      int last = -1;
      for (int a = 0; a < rank(root); ++a)
        if (common[static_cast<size_t>(a)] && !extent(root, a).is(1)) last = a;
      for (int a = 0; a < rank(root); ++a)
        if (common[static_cast<size_t>(a)]) add_grid(r, a, a == last ? std::min(rows, teams()) : 1);
    }
    spread(r);
    for (NodeId node : nodes) {
      if (node == root) continue;
      StageChoice s = stage_of(node);
      s.parent = 0;
      s.depth = schedule.stages[0].grid_loops;
      s.placement = forms_.is_output(node) ? Placement::memory : Placement::scratch;
      spread(s);
      schedule.stages.push_back(std::move(s));
    }
    return schedule;
  }

  std::map<NodeId, std::vector<int>> equal_to(NodeId root) const {
    std::vector<NodeId> order(forms_.region.nodes.rbegin(), forms_.region.nodes.rend());
    order.erase(order.begin(), std::find(order.begin(), order.end(), root));
    return schedule::equal_axes(forms_, order);
  }

  // The root's axes along which every stored node moves with it, so that blocks share no work.
  std::vector<bool> common_axes(NodeId root, const std::vector<NodeId>& nodes,
                                const std::map<NodeId, std::vector<int>>& equal) const {
    std::vector<bool> common(static_cast<size_t>(rank(root)), true);
    for (NodeId node : nodes) {
      const std::vector<int>& own = equal.at(node);
      for (int a = 0; a < rank(root); ++a)
        if (std::count(own.begin(), own.end(), a) != 1) common[static_cast<size_t>(a)] = false;
    }
    return common;
  }

  // --- 3: one phase after the other; `all`: every member is stored, because one body of many would be too long
  Schedule phases(bool all) {
    Schedule schedule;
    std::map<NodeId, int> ready;  // of any member: the first phase that may read it
    const std::vector<NodeId> nodes = all ? forms_.region.nodes : stored();
    for (NodeId node : forms_.region.nodes) {
      int phase = 0;
      for (NodeId operand : member_operands(node)) phase = std::max(phase, ready.at(operand));
      const bool is_stored = std::binary_search(nodes.begin(), nodes.end(), node);
      ready[node] = phase + (is_stored ? 1 : 0);
      if (!is_stored) continue;
      StageChoice s = stage_of(node);
      s.phase = phase;
      add_block(s);
      spread(s);
      schedule.stages.push_back(std::move(s));
    }
    return schedule;
  }
};

}  // namespace

GroupSchedule choose_group_schedule(const RegionForms& forms, const schedule::Layouts& layouts,
                                    const machine::Machine& machine, ReductionOrder order) {
  return Chooser(forms, layouts, machine, order).choose();
}

}  // namespace fusewise::fusion
