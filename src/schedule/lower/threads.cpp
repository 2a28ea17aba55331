// What the threads of a group compute together. All of them run the same code: loops of the group are the same for all,
// the loops of threads are numbered as one and dealt out, a thread's own work is that of a block on a CPU. What a
// stage leaves in shared memory is complete behind a barrier, and kept until the next one.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "schedule/lower/lowering.h"

namespace fusewise::schedule {

StmtId Lowering::emit_group(int index, const Box& box) {
  const VariableId thread = builder_.variable("t", {DataType::int64, 1});
  builder_.set_range(thread, 0, tree_.threads - 1);
  thread_ = builder_.read(thread);
  shared_allocations_.clear();
  const StmtId body = emit_group_depth(index, stage(index).grid_loops, box);
  std::vector<StmtId> statements = std::move(shared_allocations_);
  statements.push_back(
      builder_.loop(LoopKind::thread, thread, zero(), builder_.integer(tree_.threads), 1, body));
  return builder_.block(std::move(statements));
}

// The contractions of the thread's tile that go on in steps: the stage itself, or register tiles of its body.
std::vector<int> Lowering::steps_of(int index) const {
  std::vector<int> result;
  if (stage(index).reduction_loop >= 0) result.push_back(index);
  for (int c : stage(index).children)
    if (stage(c).placement == Placement::registers && stage(c).reduction_loop >= 0) result.push_back(c);
  return result;
}

StmtId Lowering::emit_group_depth(int index, int depth, const Box& box) {
  const Stage& s = stage(index);
  std::vector<StmtId> statements;
  emit_group_attached(index, depth, box, statements);
  const std::vector<int> steps = steps_of(index);
  const int inner = s.reduction_loop >= 0 ? s.reduction_loop : s.group_loops();
  if (depth == inner) {
    statements.push_back(steps.empty() ? emit_threads(index, box) : emit_in_steps(index, box, steps));
    return builder_.block(std::move(statements));
  }
  const LoopChoice& loop = s.loops[static_cast<size_t>(depth)];
  const bool stores_inside = std::any_of(s.children.begin(), s.children.end(), [&](int c) {
    return stage(c).depth > depth && (stage(c).cooperative || stage(c).reduction_loop >= 0);
  });
  const Continuation next = [&](const Box& b, const KnownGuards&) {
    const StmtId body = emit_group_depth(index, depth + 1, b);
    return stores_inside ? builder_.block({body, builder_.barrier()}) : body;
  };
  statements.push_back(loop_over(box, loop.axis, loop.tile, false, false, {}, next));
  return builder_.block(std::move(statements));
}

// Whether something in the stage's subtree reads what one of these stages stores.
bool Lowering::reads_any(int index, const std::vector<int>& stages) const {
  for (NodeId node : stage(index).cone)
    for (const Read& read : forms_.form(node).reads)
      for (int s : stages)
        if (forms_.operand(node, read).node == stage(s).node) return true;
  return false;
}

void Lowering::emit_group_attached(int index, int depth, const Box& box, std::vector<StmtId>& statements) {
  const std::vector<int>& children = stage(index).children;
  const auto wanted = [&](int c) { return stage(c).depth == depth && stage(c).cooperative; };
  if (std::none_of(children.begin(), children.end(), wanted)) return;
  const std::map<NodeId, Box> needed = needed_boxes(index, box);
  std::vector<int> unseen;  // stored since the last barrier
  for (int child : children) {
    if (!wanted(child)) continue;
    if (reads_any(child, unseen)) {
      statements.push_back(builder_.barrier());
      unseen.clear();
    }
    const Box& child_box = needed.at(stage(child).node);
    place(child, child_box, statements);
    statements.push_back(emit_child(child, child_box));
    unseen.push_back(child);
  }
  if (reads_any(index, unseen)) statements.push_back(builder_.barrier());
}

StmtId Lowering::where(ExprId condition, StmtId body) {
  if (condition == kernel::none || builder_.constant_value(condition) == 1) return body;
  return builder_.branch(condition, body);
}

// How many tiles each thread loop has: for the largest box where that is a constant, so that numbers are split by
// constants.
std::vector<ExprId> Lowering::thread_trips(int index, const Box& box) {
  const Stage& s = stage(index);
  std::vector<ExprId> trips;
  for (int l = s.group_loops(); l < static_cast<int>(s.loops.size()); ++l) {
    const LoopChoice& loop = s.loops[static_cast<size_t>(l)];
    const Extent& extent = box[static_cast<size_t>(loop.axis)].extent;
    const ExprId length = extent.bound ? builder_.integer(*extent.bound) : extent.value;
    trips.push_back(builder_.floor_div(builder_.add(length, builder_.integer(loop.tile - 1)),
                                       builder_.integer(loop.tile)));
  }
  return trips;
}

Lowering::ThreadTile Lowering::thread_tile(int index, const Box& box, const std::vector<ExprId>& trips,
                                           ExprId number) {
  const Stage& s = stage(index);
  ThreadTile result{box, kernel::none};
  ExprId rest = number;
  for (size_t i = trips.size(); i-- > 0;) {
    const LoopChoice& loop = s.loops[static_cast<size_t>(s.group_loops()) + i];
    const ExprId position = i == 0 ? rest : builder_.floor_mod(rest, trips[i]);
    rest = builder_.floor_div(rest, trips[i]);
    const BoxDim& whole = box[static_cast<size_t>(loop.axis)];
    BoxDim& dim = result.box[static_cast<size_t>(loop.axis)];
    dim.low = builder_.add(whole.low, builder_.mul(position, builder_.integer(loop.tile)));
    dim.extent = exact_extent(builder_, loop.tile);
    const bool fits = whole.extent.multiple % loop.tile == 0 && whole.extent.exact;
    if (fits) continue;
    const ExprId end = builder_.add(whole.low, whole.extent.value);
    if (loop.tile > 1) {
      dim.end = end;
      dim.inside = false;
    }
    if (!whole.extent.exact && whole.extent.bound)
      result.exists = both(result.exists, builder_.less(dim.low, end));
  }
  return result;
}

StmtId Lowering::emit_threads(int index, const Box& box) {
  if (stage(index).team > 1) return emit_team_reduction(index, box);
  const std::vector<ExprId> trips = thread_trips(index, box);
  ExprId total = builder_.integer(1);
  for (ExprId t : trips) total = builder_.mul(total, t);
  const auto constant = builder_.constant_value(total);
  if (constant && *constant <= 0) return builder_.block({});
  if (constant && *constant <= tree_.threads)
    return where(builder_.less(thread_, total), emit_thread(index, thread_tile(index, box, trips, thread_)));
  const VariableId number = builder_.variable("e", {DataType::int64, 1});
  builder_.set_range(number, 0, constant ? *constant - 1 : std::numeric_limits<int64_t>::max());
  builder_.set_bound(number, total);
  const StmtId body = emit_thread(index, thread_tile(index, box, trips, builder_.read(number)));
  return builder_.loop(LoopKind::serial, number, thread_, total, tree_.threads, body);
}

// One thread's tile.
StmtId Lowering::emit_thread(int index, const ThreadTile& tile) {
  std::vector<StmtId> statements;
  emit_attached(index, static_cast<int>(stage(index).loops.size()), tile.box, {}, false, statements);
  statements.push_back(emit_innermost(index, tile.box, {}));
  return where(tile.exists, builder_.block(std::move(statements)));
}

// Accumulators live in the thread across the steps of a reduction, for each of which the threads together bring parts of
// the operands into shared memory.
StmtId Lowering::emit_in_steps(int index, const Box& box, const std::vector<int>& reductions) {
  const std::vector<ExprId> trips = thread_trips(index, box);
  ExprId total = builder_.integer(1);
  for (ExprId t : trips) total = builder_.mul(total, t);
  ThreadTile tile = thread_tile(index, box, trips, thread_);
  const ExprId has_tile = builder_.less(thread_, total);
  if (builder_.constant_value(has_tile) != 1) tile.exists = both(has_tile, tile.exists);
  const std::map<NodeId, Box> needed = needed_boxes(index, tile.box);
  std::map<int, BufferId> accumulators;
  std::vector<StmtId> statements;
  for (int r : reductions) {
    const Box& own = needed.at(stage(r).node);
    const DataType type = forms_.form(stage(r).node).accumulation->accumulator;
    accumulators[r] = register_buffer("acc", type, tile_of(r, own).elements, statements);
    statements.push_back(begin_accumulation(r, own, accumulators[r]));
  }
  const std::map<NodeId, Box> of_group = needed_boxes(index, box);
  for (int r : reductions)
    statements.push_back(
        reduction_steps(r, of_group.at(stage(r).node), tile, needed.at(stage(r).node), accumulators[r]));

  std::vector<StmtId> last;
  evaluated_.clear();
  emit_attached(index, static_cast<int>(stage(index).loops.size()), tile.box, {}, false, last);
  for (int c : stage(index).children) {
    if (stage(c).placement != Placement::registers) continue;
    const Box& own = needed.at(stage(c).node);
    place(c, own, last);
    const auto in_steps = accumulators.find(c);
    last.push_back(in_steps == accumulators.end() ? emit_body(c, own, {})
                                                  : finish_accumulation(c, own, in_steps->second));
  }
  const auto self = accumulators.find(index);
  last.push_back(self == accumulators.end() ? emit_body(index, tile.box, {})
                                            : finish_accumulation(index, tile.box, self->second));
  statements.push_back(where(tile.exists, builder_.block(std::move(last))));
  return builder_.block(std::move(statements));
}

// `box` is what the whole group needs of the stage, `own` what the thread does.
StmtId Lowering::reduction_steps(int index, const Box& box, const ThreadTile& tile, const Box& own,
                                 BufferId accumulators) {
  const Stage& s = stage(index);
  const Form& form = forms_.form(s.node);
  const int64_t step = s.loops[static_cast<size_t>(s.reduction_loop)].tile;
  const Extent whole = domain_extent(form.axes[static_cast<size_t>(form.parallel_axes())].extent);
  const ExprId size = builder_.integer(step);
  const ExprId count = builder_.floor_div(builder_.add(whole.value, builder_.integer(step - 1)), size);
  const bool shares = !s.children.empty();
  return serial_loop("step", count, [&](ExprId k) {
    BoxDim part;
    part.low = builder_.mul(k, size);
    part.inside = true;
    part.extent =
        whole.multiple % step == 0 && whole.value != kernel::none && (!whole.exact || *whole.exact > 0)
            ? exact_extent(builder_, step)
            : extent_of(builder_, builder_.min(size, builder_.sub(whole.value, part.low)), step, size, 1);
    Box with_part = box;
    with_part.push_back(part);
    std::vector<StmtId> statements;
    emit_group_attached(index, s.reduction_loop + 1, with_part, statements);
    evaluated_.clear();
    const Part range{part.low, builder_.add(part.low, part.extent.value)};
    statements.push_back(where(tile.exists, accumulate(index, own, {}, accumulators, range)));
    if (shares) statements.push_back(builder_.barrier());
    return builder_.block(std::move(statements));
  });
}

}  // namespace fusewise::schedule
