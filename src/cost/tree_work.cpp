// The cycles of a loop tree: what its stages compute, load and store, in vectors.
#include <algorithm>
#include <cmath>
#include <set>

#include "cost/constants.h"
#include "cost/tree_boxes.h"
#include "schedule/pieces.h"

namespace fusewise::cost {

using graph::Form;
using graph::Read;
using schedule::Placement;
using schedule::Stage;

namespace {

class StageWork {
 public:
  StageWork(const TreeBoxes& boxes, int s, const machine::Machine& machine, Estimate& estimate)
      : boxes_(boxes),
        s_(s),
        stage_(boxes.stage(s)),
        form_(boxes.forms.form(stage_.node)),
        machine_(machine),
        estimate_(estimate) {
    const DataType type = boxes.forms.graph->type({stage_.node, 0}).element;
    const DataType computed = form_.accumulation ? form_.accumulation->accumulator : arithmetic_type_of(type);
    full_lanes_ = std::max(1, machine.lanes(bits_of(computed) >= 32 ? computed : DataType::float32));
    lanes_ = stage_.vector_axis < 0 ? 1 : full_lanes_;
    points_ = boxes.executions(s) * volume(boxes.box(s, 0)) * boxes.reduction_points(s);
    along_ = 1;
    if (stage_.vector_axis >= 0) {
      const auto axis = static_cast<size_t>(stage_.vector_axis);
      along_ = axis < boxes.tile(s).size() ? static_cast<double>(boxes.tile(s)[axis])
                                           : boxes.extent(stage_.node, stage_.vector_axis);
      const auto blocks = boxes.reduced_blocks(s, boxes.loops(s));
      if (const auto block = blocks.find(stage_.node);
          block != blocks.end() && block->second.axis == stage_.vector_axis)
        along_ = static_cast<double>(block->second.extent);
    }
    along_ = std::max(along_, 1.0);
    vectors_along_ = std::ceil(along_ / lanes_);
    waste_ = vectors_along_ * lanes_ / along_;
    vectors_ = points_ * waste_ / lanes_;
    steps_ = lane_steps(boxes, s, lanes_);
    find_dependences();
    find_shares();
  }

  void add(double& least_points, double& issued, double& useful, double& done_points) {
    if (boxes_.combines_parts(s_)) return combination();
    if (stage_.chain >= 0) running_state();
    const bool contracts = form_.accumulation && form_.accumulation->multiply_add;
    if (contracts)
      contraction();
    else
      plain(stage_.node);
    if (form_.accumulation && !form_.accumulation->sequential) chain_latency();
    for (NodeId node : stage_.inlined) plain(node);
    for (NodeId node : stage_.inlined) loads(node);
    loads(stage_.node);
    stores();
    double innermost = boxes_.executions(s_);
    for (int l = 0; l < boxes_.loops(s_); ++l) {
      innermost *= std::ceil(boxes_.trips(s_, l));
      estimate_.cycles.vector += innermost * loop_cycles;
    }
    estimate_.cycles.vector += innermost * row_trips() * loop_cycles;
    issued += vectors_ * lanes_;
    useful += points_;
    // What is computed, views aside, against computing each element once.
    const PointWork work = point_work(form_, machine_);
    done_points += points_ * work.operations;
    least_points += boxes_.whole_elements({stage_.node, 0}) * boxes_.whole_reduction_points(stage_.node) *
                    work.operations;
    for (NodeId node : stage_.inlined) {
      const PointWork inner = point_work(boxes_.forms.form(node), machine_);
      done_points += repeats(node) * lanes_of(node) * inner.operations;
      least_points += boxes_.whole_elements({node, 0}) * inner.operations;
    }
    estimate_.flops += points_ * work.flops;
  }

 private:
  const TreeBoxes& boxes_;
  const int s_;
  const Stage& stage_;
  const Form& form_;
  const machine::Machine& machine_;
  Estimate& estimate_;
  int full_lanes_ = 1, lanes_ = 1;
  double points_ = 0, along_ = 1, vectors_along_ = 1, waste_ = 1, vectors_ = 0;
  std::map<NodeId, std::vector<double>> steps_;
  std::map<NodeId, std::vector<int>>
      own_axes_;                        // the stage's axes that a node's axes are, where loops are cut
  std::set<int> cut_axes_;              // axes whose loops are cut between pieces
  std::map<NodeId, double> share_;      // of the stage's points at which a node is computed
  std::map<NodeId, uint64_t> axes_of_;  // the stage's axes that a node's value moves with

  // The share of a node's points at which a read of it happens: of the pieces between which lowering has cut the
  // loops, each point reads one.
  double share_of(NodeId node, const Read& read) const {
    if (boxes_.forms.form(node).accumulation) return 1;
    double share = 1;
    for (const graph::Guard& guard : read.guards) {
      const graph::LinearIndex& at = guard.expr.linear;
      if (at.terms.size() != 1 || !guard.low.is_constant() || !guard.high.is_constant()) continue;
      const auto axis = own_axes_.find(node);
      const int own = axis == own_axes_.end() ? -1 : axis->second[static_cast<size_t>(at.terms[0].axis)];
      if (own < 0 || !cut_axes_.count(own)) continue;
      const double whole = boxes_.extent(stage_.node, own);
      share *= std::min(1.0, static_cast<double>(guard.high.value() - guard.low.value()) / whole);
    }
    return share;
  }

  void find_shares() {
    std::vector<NodeId> order = {stage_.node};
    order.insert(order.end(), stage_.inlined.rbegin(), stage_.inlined.rend());
    for (int a = 0; a < form_.parallel_axes(); ++a)
      if (!schedule::piece_borders(boxes_.forms, stage_, a).empty()) cut_axes_.insert(a);
    share_[stage_.node] = 1;
    if (cut_axes_.empty()) return;
    own_axes_ = schedule::equal_axes(boxes_.forms, order);
    for (NodeId node : order)
      for (const Read& read : boxes_.forms.form(node).reads)
        if (const NodeId producer = boxes_.forms.operand(node, read).node;
            std::binary_search(stage_.inlined.begin(), stage_.inlined.end(), producer))
          share_[producer] = std::min(1.0, share_[producer] + share_[node] * share_of(node, read));
  }
  double share(NodeId node) const {
    const auto it = share_.find(node);
    return it == share_.end() ? 1 : it->second;
  }

  // Each block rebases, combines and stores the state of every element; lanes along the axis are folded each time, and
  // what moves a state on takes a function for a row. Clearing and finishing count as one block more.
  void running_state() {
    const schedule::Chain& chain = boxes_.tree.chains[static_cast<size_t>(stage_.chain)];
    double blocks = boxes_.executions(s_);  // of what is carried: once per block already
    if (chain.runner == s_)
      for (int l = chain.part_loop < 0 ? chain.depth : 0; l <= chain.depth; ++l)
        if (l == chain.depth || l == chain.part_loop) blocks *= std::ceil(boxes_.trips(s_, l));
    const double ends = chain.runner == s_ ? boxes_.executions(s_) : 0;
    const double elements = (blocks + ends) * volume(boxes_.box(s_, 0));
    const bool along_reduction = stage_.vector_axis >= form_.parallel_axes();
    const double vectors = stage_.vector_axis < 0 || along_reduction ? elements : elements * waste_ / lanes_;
    estimate_.cycles.memory_access += vectors * (2 * load_cycles + store_cycles);
    estimate_.cycles.vector += vectors * 2 / alu_per_cycle;
    if (along_reduction) estimate_.cycles.vector += elements * state_fold_cycles;
    const int member = chain.cascade.member_of(stage_.node);
    for (const schedule::CascadeMember& m : chain.cascade.members)
      if (m.reference == member) estimate_.cycles.function += elements * state_step_cycles;
  }

  // Loads the parts of every element, each with its step, and adds them up.
  void combination() {
    const double vectors =
        stage_.vector_axis < 0 || stage_.vector_axis >= form_.parallel_axes() ? points_ : vectors_;
    estimate_.cycles.memory_access += vectors * 2 * load_cycles;
    estimate_.cycles.vector += vectors * (add_latency + loop_cycles);
    const schedule::Chain& chain = boxes_.tree.chains[static_cast<size_t>(stage_.chain)];
    for (const schedule::CascadeMember& m : chain.cascade.members) {
      const bool last = m.node == stage_.node;
      const double rows = last ? vectors : points_ / std::max(volume(boxes_.box(s_, 0)), 1.0);
      if (m.reference >= 0) estimate_.cycles.function += rows * state_step_cycles;
    }
    for (NodeId node : stage_.inlined) plain(node);
    stores();
  }

  void find_dependences() {
    uint64_t all = 0;
    for (size_t a = 0; a < form_.axes.size(); ++a) all |= uint64_t{1} << std::min<size_t>(a, 63);
    axes_of_[stage_.node] = all;
    std::map<NodeId, std::vector<uint64_t>> bits;
    for (size_t a = 0; a < form_.axes.size(); ++a)
      bits[stage_.node].push_back(uint64_t{1} << std::min<size_t>(a, 63));
    std::vector<NodeId> order = {stage_.node};
    order.insert(order.end(), stage_.inlined.rbegin(), stage_.inlined.rend());
    for (NodeId node : order) {
      const std::vector<uint64_t> own = bits[node];
      for (const Read& read : boxes_.forms.form(node).reads) {
        const NodeId producer = boxes_.forms.operand(node, read).node;
        if (!std::binary_search(stage_.inlined.begin(), stage_.inlined.end(), producer)) continue;
        std::vector<uint64_t>& theirs = bits[producer];
        theirs.resize(read.index.size(), 0);
        for (size_t d = 0; d < read.index.size(); ++d) {
          for (const graph::AxisTerm& t : read.index[d].linear.terms)
            if (static_cast<size_t>(t.axis) < own.size()) theirs[d] |= own[static_cast<size_t>(t.axis)];
          for (const graph::QuasiTerm& q : read.index[d].quasi)
            for (const graph::AxisTerm& t : q.inner.terms)
              if (static_cast<size_t>(t.axis) < own.size()) theirs[d] |= own[static_cast<size_t>(t.axis)];
          if (read.index[d].gathered) theirs[d] |= axes_of_[node];
          axes_of_[producer] |= theirs[d];
        }
      }
    }
  }

  // The body adds loops over the axes that no loop of the schedule cuts, but for the vectors'.
  double row_trips() const {
    if (stage_.placement == Placement::registers) return 0;
    double trips = 1;
    for (size_t a = 0; a < boxes_.tile(s_).size(); ++a) {
      const auto axis = static_cast<int>(a);
      const bool cut = std::any_of(stage_.loops.begin(), stage_.loops.end(),
                                   [&](const schedule::LoopChoice& l) { return l.axis == axis; });
      if (axis != stage_.vector_axis && !cut) trips *= static_cast<double>(boxes_.tile(s_)[a]);
    }
    return trips > 1 ? trips : 0;
  }

  bool moves_with_lanes(NodeId node) const {
    const auto it = axes_of_.find(node);
    if (stage_.vector_axis < 0) return false;
    return it != axes_of_.end() && (it->second >> std::min(stage_.vector_axis, 63) & 1);
  }
  double lanes_of(NodeId node) const { return moves_with_lanes(node) ? lanes_ / waste_ : 1; }

  // How often the instructions of a node are issued: what the innermost axes do not change is kept in a register,
  // and in an unrolled register tile what some of its axes do not change.
  double repeats(NodeId node) const {
    const auto it = axes_of_.find(node);
    const uint64_t axes = it == axes_of_.end() ? 0 : it->second;
    double n = points_ * share(node);
    const bool unrolled = form_.accumulation && form_.accumulation->sequential;
    if (unrolled)
      for (size_t a = 0; a < boxes_.tile(s_).size(); ++a)
        if (static_cast<int>(a) != stage_.vector_axis && !(axes >> std::min<size_t>(a, 63) & 1))
          n /= static_cast<double>(std::min<int64_t>(boxes_.tile(s_)[a], 16));
    if (stage_.vector_axis < 0) return n;
    return moves_with_lanes(node) ? n * waste_ / lanes_ : n / along_;
  }

  void plain(NodeId node) {
    if (boxes_.passes_on(s_, node)) return;
    const PointWork work = point_work(boxes_.forms.form(node), machine_);
    double n = node == stage_.node ? vectors_ : repeats(node);
    estimate_.cycles.vector += n * work.cycles.vector;
    estimate_.cycles.function += n * work.cycles.function;
    estimate_.cycles.convert += n * work.cycles.convert;
    estimate_.cycles.multiply_add += n * work.cycles.multiply_add;
    if (node != stage_.node) estimate_.flops += n * lanes_of(node) * work.flops;
  }

  // A register tile of rows x vectors per step along the reduction, as the tile chooser reckons.
  void contraction() {
    double rows = 1;
    for (size_t a = 0; a < boxes_.tile(s_).size(); ++a)
      if (static_cast<int>(a) != stage_.vector_axis) rows *= static_cast<double>(boxes_.tile(s_)[a]);
    const double vectors = stage_.vector_axis < 0 ? 1 : vectors_along_;
    const double tiles = points_ / std::max(rows * (stage_.vector_axis < 0 ? 1 : along_), 1.0);
    bool every_read_moves = stage_.vector_axis >= 0;
    for (const Read& read : form_.reads)
      every_read_moves =
          every_read_moves && access_of(boxes_, s_, stage_.node, read, steps_, lanes_) != Access::uniform;
    const double live = std::min(rows, 64.0);
    const double work = rows * vectors;
    const double loads = every_read_moves ? work + vectors : rows + vectors;
    const double latency = add_latency * machine_.fma_units;
    const double busy = std::max({work, 0.8 * loads, latency}) + 0.12 * loads;
    estimate_.cycles.multiply_add +=
        tiles * busy / machine_.fma_units *
        std::max(1.0, bits_of(form_.accumulation->accumulator) / 32.0 * lanes_ / full_lanes_);
    if (!every_read_moves && live * vectors + vectors > machine_.vector_registers + 0.5)
      estimate_.spills = true;
  }

  static bool uses(const Read& read, int axis) {
    return std::any_of(read.index.begin(), read.index.end(), [&](const graph::IndexExpr& e) {
      const auto in = [&](const graph::LinearIndex& l) {
        return std::any_of(l.terms.begin(), l.terms.end(),
                           [&](const graph::AxisTerm& t) { return t.axis == axis; });
      };
      return in(e.linear) || std::any_of(e.quasi.begin(), e.quasi.end(),
                                         [&](const graph::QuasiTerm& q) { return in(q.inner); });
    });
  }

  // Additions to one accumulator wait for each other.
  void chain_latency() {
    const bool along_reduction = stage_.vector_axis >= form_.parallel_axes();
    const double chains = along_reduction
                              ? std::max(1.0, static_cast<double>(boxes_.tree.order.lanes) / lanes_)
                              : vectors_along_;
    const double issue = point_work(form_, machine_).cycles.vector;
    const double wait = add_latency / std::min(chains, add_latency / std::max(issue, 0.1));
    estimate_.cycles.vector += std::max(0.0, wait - issue) * vectors_;
  }

  void loads(NodeId node) {
    const Form& form = boxes_.forms.form(node);
    // What a contraction's tile reads, through views or not, is reckoned with its multiply-adds.
    const bool contracts = form_.accumulation && form_.accumulation->multiply_add;
    const bool passes_on = boxes_.passes_on(s_, node);
    const bool in_tile = contracts && (node == stage_.node || is_view(form) || passes_on);
    for (const Read& read : form.reads) {
      const Value operand = boxes_.forms.operand(node, read);
      const bool member = boxes_.forms.is_member(operand.node);
      const int producer = member ? boxes_.tree.stage_index(boxes_.forms, operand.node) : -1;
      if (member && producer < 0) continue;
      if (member && boxes_.stage(producer).placement == Placement::registers) continue;
      if (!member && schedule::literal_of(*boxes_.forms.graph, operand)) continue;
      load(node, read, in_tile);
    }
  }

  static bool is_view(const Form& form) {
    return !form.accumulation &&
           std::none_of(form.body.begin(), form.body.end(),
                        [](const graph::BodyNode& b) { return b.kind == graph::BodyNode::Kind::apply; });
  }

  void load(NodeId node, const Read& read, bool in_tile) {
    const Access access = access_of(boxes_, s_, node, read, steps_, lanes_);
    double n = (node == stage_.node ? vectors_ : repeats(node)) * share_of(node, read);
    if (in_tile && node == stage_.node) {
      // Shared by the axes of the register tile that the read does not move with.
      n = access == Access::uniform ? points_ / along_ : vectors_;
      for (size_t a = 0; a < boxes_.tile(s_).size(); ++a)
        if (static_cast<int>(a) != stage_.vector_axis && !uses(read, static_cast<int>(a)))
          n /= static_cast<double>(boxes_.tile(s_)[a]);
    } else if (access == Access::uniform && node == stage_.node) {
      n = points_ / along_;
    }
    double cycles = 0;
    if (access == Access::scattered || access == Access::irregular) {
      const double step = memory_step(boxes_, node, read, steps_);
      cycles = is_short(step) ? step * (load_cycles + shuffle_cycles)
                              : apart_cycles(step, boxes_.forms.operand(node, read), lane_load_cycles,
                                             conflict_load_cycles);
    } else if (!in_tile) {
      cycles = load_cycles;
    }
    estimate_.cycles.memory_access += n * cycles;
    if (access == Access::reversed) estimate_.cycles.shuffle += n * shuffle_cycles;
    if (boxes_.address_of(node, read)) return;  // no division is left
    for (const graph::IndexExpr& e : read.index)
      for (const graph::QuasiTerm& q : e.quasi) {
        const int divisions = (q.divisor.is(1) ? 0 : 1) + (q.modulus.is(0) ? 0 : 1);
        // What the reduction does not change is divided once in front of it.
        const bool fixed =
            node == stage_.node &&
            std::none_of(q.inner.terms.begin(), q.inner.terms.end(), [&](const graph::AxisTerm& t) {
              return form_.axes[static_cast<size_t>(t.axis)].reduction;
            });
        const double times = fixed ? n / boxes_.reduction_points(s_) : n;
        estimate_.cycles.shuffle +=
            times * divisions * index_division_cycles * (access == Access::irregular ? lanes_ : 1);
      }
  }

  // Elements of memory between neighbours along an axis of the result; NaN where it does not lie at strides.
  double stride_of(int axis) const {
    const Shape& shape = boxes_.forms.graph->type({stage_.node, 0}).shape;
    const auto layout = boxes_.tree.layouts.find({stage_.node, 0});
    const bool in_memory = stage_.placement == Placement::memory;
    if (!in_memory || (layout != boxes_.tree.layouts.end() && !layout->second.blocks.empty())) return NAN;
    const std::vector<Dim> strides = schedule::strides_of(
        layout != boxes_.tree.layouts.end() ? layout->second
                                            : schedule::row_major(static_cast<int>(shape.size())),
        shape);
    return static_cast<double>(schedule::usual_value(strides[static_cast<size_t>(axis)], boxes_.usual));
  }

  // Whether whole vectors are taken or stored for lanes `step` elements apart.
  bool is_short(double step) const { return step >= 2 && step <= longest_short_step && step < lanes_; }

  // Of a vector whose lanes, `step` elements apart, are loaded or stored one by one.
  double apart_cycles(double step, graph::Value value, double lane, double conflict) const {
    const double bytes = step * bits_of(boxes_.forms.graph->type(value).element) / 8;
    return lanes_ * (std::fmod(bytes, conflict_bytes) == 0 ? conflict : lane);
  }

  void stores() {
    if (stage_.placement == Placement::registers || stage_.partial) return;
    const double elements = boxes_.executions(s_) * volume(boxes_.box(s_, 0));
    int contiguous = stage_.storage.empty() ? -1 : stage_.storage.back();
    const Shape& shape = boxes_.forms.graph->type({stage_.node, 0}).shape;
    if (stage_.placement == Placement::memory) {
      const auto layout = boxes_.tree.layouts.find({stage_.node, 0});
      contiguous = static_cast<int>(shape.size()) - 1;
      if (layout != boxes_.tree.layouts.end())
        contiguous = layout->second.innermost();
      else
        while (contiguous > 0 && shape[static_cast<size_t>(contiguous)].is(1)) --contiguous;
    }
    const bool vector = stage_.vector_axis >= 0 && stage_.vector_axis < form_.parallel_axes();
    const bool whole = vector && contiguous == stage_.vector_axis;
    double cycles = vector ? store_cycles : store_cycles * lanes_;
    if (vector && !whole) {
      const double step = stride_of(stage_.vector_axis);
      cycles = is_short(step) && machine_.vector_bits >= masked_vector_bits
                   ? step * (store_cycles + shuffle_cycles)
                   : apart_cycles(step, {stage_.node, 0}, store_cycles, conflict_store_cycles);
    }
    estimate_.cycles.memory_access += elements / lanes_ * cycles * (whole ? waste_ : 1);
  }
};

}  // namespace

void add_work(const TreeBoxes& boxes, int phase, const machine::Machine& machine, Estimate& estimate) {
  double least = 0, issued = 0, useful = 0, done = 0;
  for (int s = 0; s < boxes.stages(); ++s)
    if (boxes.phase(s) == phase) StageWork(boxes, s, machine, estimate).add(least, issued, useful, done);
  if (useful > 0) estimate.tail_waste = issued / useful;
  if (least > 0) estimate.recompute = std::max(1.0, done / least);
}

}  // namespace fusewise::cost
