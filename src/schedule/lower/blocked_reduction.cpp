// Reductions in the order that reduction_order.h fixes: lanes within a block, a tree over the lanes, blocks merged
// like a binary counter. The lanes are the lanes of a vector along the reduced axis, or separate accumulators when
// the vector runs along a parallel axis; the result is the same to the bit.
#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "schedule/lower/lowering.h"

namespace fusewise::schedule {

using kernel::Native;
using kernel::Scope;
using kernel::Type;

namespace {

// Levels of the binary counter for a run-time extent.
constexpr int64_t most_levels = 31;

}  // namespace

// Element `index` of the row-major reduction at the tile's coordinates.
ExprId Lowering::element(const Blocks& blocks, const Coordinates& parallel, ExprId index, ExprId mask) {
  const NodeId node = stage(blocks.stage).node;
  const Form& form = forms_.form(node);
  Coordinates axes = parallel;
  const auto first = static_cast<size_t>(form.parallel_axes());
  axes.resize(form.axes.size());
  ExprId rest = index;
  for (size_t a = form.axes.size(); a-- > first;) {
    const ExprId extent = dim_expr(form.axes[a].extent);
    axes[a] = a == first ? rest : builder_.floor_mod(rest, extent);
    rest = builder_.floor_div(rest, extent);
  }
  std::map<int, ExprId> done;
  return convert(body_value(node, static_cast<int>(form.body.size()) - 1, axes, mask, done), blocks.type);
}

Lowering::Blocks Lowering::blocks_of(int index, const Box& box) {
  const Stage& s = stage(index);
  const Form& form = forms_.form(s.node);
  Blocks blocks;
  blocks.stage = index;
  blocks.box = box;
  blocks.type = form.accumulation->accumulator;
  blocks.combine = form.accumulation->combine;
  blocks.order = tree_.order;
  blocks.extent = 1;
  for (const graph::Axis& a : form.axes)
    if (a.reduction) blocks.extent = blocks.extent * a.extent;
  blocks.along_reduction = s.vector_axis >= form.parallel_axes();
  return blocks;
}

bool Lowering::is_one_block(const Blocks& blocks) {
  return builder_.range(dim_expr(blocks.extent)).high <= blocks.order.block;
}

StmtId Lowering::emit_blocked_reduction(int index, const Box& box) {
  const Form& form = forms_.form(stage(index).node);
  Blocks blocks = blocks_of(index, box);
  const Tile tile = tile_of(index, box);
  blocks.elements = tile.elements;
  check(!blocks.along_reduction || tile.elements == 1,
        "lanes along the reduction need a tile of one element");
  std::vector<StmtId> statements;
  const BufferId partial = register_buffer("partial", blocks.type, blocks.elements, statements);
  const ExprId extent = dim_expr(blocks.extent);
  const auto at_hand = block_of_.find(stage(index).node);
  const auto one_block = [&](ExprId base, ExprId length) {
    return blocks.along_reduction ? vector_lanes(blocks, partial, base, length)
                                  : parallel_lanes(blocks, partial, base, length);
  };
  if (at_hand != block_of_.end()) {
    const ExprId inner = dim_expr(elements_per_index(form));
    statements.push_back(one_block(builder_.mul(at_hand->second.low, inner),
                                   builder_.mul(at_hand->second.extent.value, inner)));
  } else if (is_one_block(blocks)) {
    statements.push_back(one_block(zero(), extent));
  } else {
    const ExprId fits = builder_.less(extent, builder_.integer(blocks.order.block + 1));
    const auto several = [&] { return merge_blocks(blocks, partial, one_block); };
    if (builder_.constant_value(fits) == 0)
      statements.push_back(several());
    else
      statements.push_back(builder_.branch(fits, one_block(zero(), extent), several()));
  }
  const Tile last = tile_of(index, box);
  std::vector<StmtId> stores;
  const ExprId result = builder_.load(partial, last.position);
  if (runs(index))
    update_state(index, last.coordinates,
                 combined(blocks.combine, blocks.type, running_value(index, last.coordinates), result),
                 last.mask, stores);
  else
    store_element(index, last.coordinates, result, last.mask, stores);
  statements.push_back(over_tile(last, builder_.block(std::move(stores))));
  return builder_.block(std::move(statements));
}

ExprId Lowering::joined_lanes(const Blocks& blocks, ExprId mine, ExprId theirs, ExprId other, ExprId length) {
  const ExprId sum = combined(blocks.combine, blocks.type, mine, theirs);
  return builder_.apply(ScalarOp::select, {blocks.type, 1}, builder_.less(other, length), sum, mine);
}

// Accumulators [lane][tile element].
StmtId Lowering::parallel_lanes(const Blocks& blocks, BufferId result, ExprId base, ExprId length) {
  const int lanes = blocks.order.lanes;
  const ExprId lane_count = builder_.integer(lanes);
  std::vector<StmtId> statements;
  const BufferId acc = register_buffer("acc", blocks.type, lanes * blocks.elements, statements);
  const ExprId tile_size = builder_.integer(blocks.elements);
  const auto place = [&](ExprId lane, const Tile& tile) {
    return builder_.add(builder_.mul(lane, tile_size), tile.position);
  };
  const auto for_lanes = [&](int64_t count, const std::function<StmtId(ExprId, const Tile&)>& body) {
    return serial_loop(
        "lane", builder_.integer(count),
        [&](ExprId lane) {
          const Tile tile = tile_of(blocks.stage, blocks.box);
          return over_tile(tile, body(lane, tile));
        },
        LoopKind::unrolled);
  };
  const auto add_element = [&](ExprId lane, const Tile& tile, ExprId index) {
    const ExprId value = element(blocks, tile.coordinates, index, kernel::none);
    const ExprId old = builder_.load(acc, place(lane, tile));
    return builder_.store(acc, place(lane, tile), combined(blocks.combine, blocks.type, old, value));
  };
  statements.push_back(for_lanes(lanes, [&](ExprId lane, const Tile& tile) {
    return builder_.store(acc, place(lane, tile), identity_of(blocks.combine, blocks.type));
  }));
  const ExprId rows = builder_.floor_div(length, lane_count);
  statements.push_back(serial_loop("k", rows, [&](ExprId row) {
    const ExprId start = builder_.add(base, builder_.mul(row, lane_count));
    return for_lanes(lanes, [&](ExprId lane, const Tile& tile) {
      return add_element(lane, tile, builder_.add(start, lane));
    });
  }));
  const ExprId done = builder_.mul(rows, lane_count), rest = builder_.sub(length, done);
  const ExprId tail = builder_.add(base, done);
  if (const auto left = builder_.constant_value(rest)) {
    if (*left > 0)
      statements.push_back(for_lanes(*left, [&](ExprId lane, const Tile& tile) {
        return add_element(lane, tile, builder_.add(tail, lane));
      }));
  } else {
    statements.push_back(serial_loop(
        "lane", lane_count,
        [&](ExprId lane) {
          const Tile tile = tile_of(blocks.stage, blocks.box);
          return builder_.branch(builder_.less(lane, rest),
                                 over_tile(tile, add_element(lane, tile, builder_.add(tail, lane))));
        },
        LoopKind::unrolled));
  }
  for (int width = lanes / 2; width >= 1; width /= 2) {
    statements.push_back(for_lanes(width, [&](ExprId lane, const Tile& tile) {
      const ExprId other = builder_.add(lane, builder_.integer(width));
      const ExprId mine = builder_.load(acc, place(lane, tile));
      const ExprId theirs = builder_.load(acc, place(other, tile));
      return builder_.store(acc, place(lane, tile), joined_lanes(blocks, mine, theirs, other, length));
    }));
  }
  const Tile tile = tile_of(blocks.stage, blocks.box);
  statements.push_back(
      over_tile(tile, builder_.store(result, tile.position, builder_.load(acc, place(zero(), tile)))));
  return builder_.block(std::move(statements));
}

// Accumulators are the lanes of a vector that runs along the reduced axis.
StmtId Lowering::vector_lanes(const Blocks& blocks, BufferId result, ExprId base, ExprId length) {
  const int lanes = blocks.order.lanes;
  const ExprId lane_count = builder_.integer(lanes);
  std::vector<StmtId> statements;
  const BufferId acc = register_buffer("acc", blocks.type, lanes, statements);
  const auto for_lanes = [&](int64_t count, const std::function<StmtId(ExprId)>& body) {
    if (count == 1) return body(zero());
    const VariableId v = builder_.variable("v", {DataType::int64, 1});
    builder_.set_range(v, 0, count - 1);
    edges_.clear();
    const StmtId inner = body(builder_.read(v));
    return builder_.loop(LoopKind::vector, v, zero(), builder_.integer(count), 1, inner);
  };
  const Tile tile = tile_of(blocks.stage, blocks.box);
  statements.push_back(for_lanes(
      lanes, [&](ExprId v) { return builder_.store(acc, v, identity_of(blocks.combine, blocks.type)); }));
  const ExprId rows = builder_.floor_div(length, lane_count);
  statements.push_back(serial_loop("k", rows, [&](ExprId row) {
    const ExprId start = builder_.add(base, builder_.mul(row, lane_count));
    return for_lanes(lanes, [&](ExprId v) {
      const ExprId value = element(blocks, tile.coordinates, builder_.add(start, v), kernel::none);
      return builder_.store(acc, v, combined(blocks.combine, blocks.type, builder_.load(acc, v), value));
    });
  }));
  const ExprId done = builder_.mul(rows, lane_count), rest = builder_.sub(length, done);
  if (builder_.constant_value(rest) != 0) {
    const ExprId start = builder_.add(base, done);
    statements.push_back(for_lanes(lanes, [&](ExprId v) {
      const ExprId mask = builder_.less(v, rest);
      edges_ = {{static_cast<VariableId>(result_.kernel.expr(v).value), mask, {}}};
      const ExprId value = element(blocks, tile.coordinates, builder_.add(start, v), kernel::none);
      edges_.clear();
      const ExprId old = builder_.load(acc, v);
      const ExprId sum = combined(blocks.combine, blocks.type, old, value);
      return builder_.store(acc, v, builder_.apply(ScalarOp::select, {blocks.type, 1}, mask, sum, old));
    }));
  }
  // The tree works on a copy, so that the accumulators above stay whole vectors.
  const BufferId fold = register_buffer("fold", blocks.type, lanes, statements);
  statements.push_back(
      for_lanes(lanes, [&](ExprId v) { return builder_.store(fold, v, builder_.load(acc, v)); }));
  for (int width = lanes / 2; width >= 1; width /= 2) {
    statements.push_back(for_lanes(width, [&](ExprId v) {
      const ExprId other = builder_.add(v, builder_.integer(width));
      const ExprId mine = builder_.load(fold, v), theirs = builder_.load(fold, other);
      return builder_.store(fold, v, joined_lanes(blocks, mine, theirs, other, length));
    }));
  }
  statements.push_back(builder_.store(result, zero(), builder_.load(fold, zero())));
  return builder_.block(std::move(statements));
}

// Block b, once done, merges with the completed blocks below it while the corresponding bit of b is set; what is
// left over is merged last to first, the earlier value on the left.
StmtId Lowering::merge_blocks(const Blocks& blocks, BufferId partial,
                              const std::function<StmtId(ExprId, ExprId)>& one_block) {
  const ExprId extent = dim_expr(blocks.extent), block = builder_.integer(blocks.order.block);
  std::vector<StmtId> statements;
  const Counter counter = place_counter(blocks, statements);
  statements.push_back(serial_loop("block", counter.count, [&](ExprId b) {
    const ExprId base = builder_.mul(b, block);
    return builder_.block({one_block(base, builder_.min(block, builder_.sub(extent, base))),
                           count_block(blocks, counter, partial, b)});
  }));
  statements.push_back(merge_counted(blocks, counter, partial));
  return builder_.block(std::move(statements));
}

Lowering::Counter Lowering::place_counter(const Blocks& blocks, std::vector<StmtId>& statements) {
  const ExprId block = builder_.integer(blocks.order.block);
  Counter counter;
  counter.levels = most_levels;
  counter.count = builder_.floor_div(
      builder_.add(dim_expr(blocks.extent), builder_.integer(blocks.order.block - 1)), block);
  if (const auto constant = builder_.constant_value(counter.count))
    counter.levels = std::bit_width(static_cast<uint64_t>(*constant));
  kernel::Buffer buffer;
  buffer.name = "stack";
  buffer.element = blocks.type;
  buffer.scope = Scope::scratch;
  buffer.written = true;
  buffer.size = builder_.integer(counter.levels * blocks.elements);
  counter.stack = builder_.buffer(buffer);
  statements.push_back(builder_.allocate(counter.stack));
  return counter;
}

// The tile's elements at a level of the counter: their places in the stack and in a tile.
StmtId Lowering::over_level(const Blocks& blocks, ExprId level,
                            const std::function<StmtId(ExprId, ExprId)>& body) {
  const Tile tile = tile_of(blocks.stage, blocks.box);
  const ExprId slot = builder_.add(builder_.mul(level, builder_.integer(blocks.elements)), tile.position);
  return over_tile(tile, body(slot, tile.position));
}

StmtId Lowering::merge_level(const Blocks& blocks, const Counter& counter, BufferId partial, ExprId level) {
  return over_level(blocks, level, [&](ExprId slot, ExprId place) {
    return builder_.store(partial, place,
                          combined(blocks.combine, blocks.type, builder_.load(counter.stack, slot),
                                   builder_.load(partial, place)));
  });
}

// The block of this number is done.
StmtId Lowering::count_block(const Blocks& blocks, const Counter& counter, BufferId partial, ExprId number) {
  const Type index{DataType::int64, 1};
  const ExprId one = builder_.integer(1), next = builder_.add(number, one);
  const auto ends_in_zeros = [&](ExprId bits) {
    const ExprId mask = builder_.sub(builder_.native(Native::shift_left, index, one, bits), one);
    return builder_.apply(ScalarOp::equal, {DataType::boolean, 1},
                          builder_.apply(ScalarOp::and_, index, next, mask), zero());
  };
  const ExprId levels = builder_.integer(counter.levels);
  const StmtId merge = serial_loop("level", levels, [&](ExprId level) {
    return builder_.branch(ends_in_zeros(builder_.add(level, one)),
                           merge_level(blocks, counter, partial, level));
  });
  const StmtId keep = serial_loop("level", levels, [&](ExprId level) {
    const ExprId beyond = ends_in_zeros(builder_.add(level, one));
    const ExprId here = builder_.logical_and(ends_in_zeros(level),
                                             builder_.apply(ScalarOp::not_, {DataType::boolean, 1}, beyond));
    return builder_.branch(here, over_level(blocks, level, [&](ExprId slot, ExprId place) {
                             return builder_.store(counter.stack, slot, builder_.load(partial, place));
                           }));
  });
  return builder_.block({merge, keep});
}

StmtId Lowering::merge_counted(const Blocks& blocks, const Counter& counter, BufferId partial) {
  const Type index{DataType::int64, 1};
  const VariableId have = builder_.variable("have", index, true);
  const StmtId none_yet = builder_.assign(have, zero());
  const StmtId levels = serial_loop("level", builder_.integer(counter.levels), [&](ExprId level) {
    const ExprId bit = builder_.apply(ScalarOp::and_, index,
                                      builder_.native(Native::shift_right, index, counter.count, level),
                                      builder_.integer(1));
    const StmtId first = over_level(blocks, level, [&](ExprId slot, ExprId place) {
      return builder_.store(partial, place, builder_.load(counter.stack, slot));
    });
    const ExprId is_first =
        builder_.apply(ScalarOp::equal, {DataType::boolean, 1}, builder_.read(have), zero());
    const StmtId take = builder_.branch(is_first, first, merge_level(blocks, counter, partial, level));
    return builder_.branch(builder_.less(zero(), bit),
                           builder_.block({take, builder_.assign(have, builder_.integer(1))}));
  });
  return builder_.block({none_yet, levels});
}

}  // namespace fusewise::schedule
