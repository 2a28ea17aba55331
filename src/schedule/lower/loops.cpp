// The loops of a stage: cut at borders, full tiles first, then their tails.
#include <algorithm>
#include <bit>
#include <numeric>

#include "schedule/lower/lowering.h"
#include "schedule/pieces.h"

namespace fusewise::schedule {

StmtId Lowering::emit_loop(int index, int depth, const Box& box, const KnownGuards& known) {
  const Stage& s = stage(index);
  const LoopChoice& loop = s.loops[static_cast<size_t>(depth)];
  if (loop.axis >= forms_.form(s.node).parallel_axes()) return emit_blocks(index, depth, box);
  const bool last = std::none_of(s.loops.begin() + depth + 1, s.loops.end(),
                                 [&](const LoopChoice& l) { return l.axis == loop.axis; });
  const bool vector = loop.axis == s.vector_axis;
  const Continuation next = [&, index, depth](const Box& b, const KnownGuards& k) {
    return emit_depth(index, depth + 1, b, k);
  };
  std::vector<StmtId> statements;
  place_rings(index, depth, box, statements);
  const bool alone =
      std::all_of(s.children.begin(), s.children.end(), [&](int c) { return stage(c).depth <= depth; });
  const auto cut = alone ? &Lowering::loop_pieces : &Lowering::loop_interior;
  statements.push_back(last ? (this->*cut)(index, box, loop.axis, loop.tile, vector, known, next)
                            : loop_over(box, loop.axis, loop.tile, false, vector, known, next));
  return builder_.block(std::move(statements));
}

// A loop along which the pieces of a concat lie is cut at their borders, so that each part reads one of them and asks
// nothing.
StmtId Lowering::loop_pieces(int index, const Box& box, int axis, int64_t tile, bool vector,
                             const KnownGuards& known, const Continuation& next) {
  const BoxDim& dim = box[static_cast<size_t>(axis)];
  const auto low = builder_.constant_value(dim.low);
  if (!low || !dim.extent.exact) return loop_interior(index, box, axis, tile, vector, known, next);
  const int64_t high = *low + *dim.extent.exact;
  std::vector<int64_t> ends;
  for (int64_t border : piece_borders(forms_, stage(index), axis))
    if (border > *low && border < high) ends.push_back(border);
  ends.push_back(high);
  std::vector<StmtId> statements;
  int64_t from = *low;
  for (int64_t end : ends) {
    Box part = box;
    part[static_cast<size_t>(axis)].low = builder_.integer(from);
    part[static_cast<size_t>(axis)].extent = exact_extent(builder_, end - from);
    statements.push_back(loop_interior(index, ends.size() > 1 ? part : box, axis, tile, vector, known, next));
    from = end;
  }
  return builder_.block(std::move(statements));
}

StmtId Lowering::loop_over(const Box& box, int axis, int64_t tile, bool last, bool vector,
                           const KnownGuards& known, const Continuation& next) {
  const BoxDim& dim = box[static_cast<size_t>(axis)];
  if (dim.extent.exact && *dim.extent.exact <= tile && dim.extent.bound) return next(box, known);
  if (last) return exact_steps(box, axis, tile, vector, known, next);
  const ExprId step = builder_.integer(tile);
  const ExprId trips = builder_.floor_div(builder_.add(dim.extent.value, builder_.integer(tile - 1)), step);
  return serial_loop("t", trips, [&](ExprId t) {
    Box inner = box;
    BoxDim& d = inner[static_cast<size_t>(axis)];
    const ExprId offset = builder_.mul(t, step);
    d.low = builder_.add(dim.low, offset);
    const int64_t multiple = std::gcd(dim.extent.multiple, tile);
    d.extent = multiple == tile
                   ? exact_extent(builder_, tile)
                   : extent_of(builder_, builder_.min(step, builder_.sub(dim.extent.value, offset)), tile,
                               step, multiple);
    return next(inner, known);
  });
}

// Full tiles first, then the tail: known at compile time, or a ladder of smaller tiles (rows), or masked vectors.
StmtId Lowering::exact_steps(const Box& box, int axis, int64_t tile, bool vector, const KnownGuards& known,
                             const Continuation& next) {
  const BoxDim& dim = box[static_cast<size_t>(axis)];
  const auto part = [&](ExprId offset, Extent extent) {
    Box inner = box;
    inner[static_cast<size_t>(axis)].low = builder_.add(dim.low, offset);
    inner[static_cast<size_t>(axis)].extent = std::move(extent);
    return inner;
  };
  const ExprId step = builder_.integer(tile);
  const ExprId trips = builder_.floor_div(dim.extent.value, step);
  std::vector<StmtId> statements;
  statements.push_back(serial_loop("t", trips, [&](ExprId t) {
    return next(part(builder_.mul(t, step), exact_extent(builder_, tile)), known);
  }));
  if (dim.extent.multiple % tile != 0 || (dim.extent.exact && *dim.extent.exact % tile != 0)) {
    const ExprId start = builder_.mul(trips, step);
    const ExprId rest = builder_.sub(dim.extent.value, start);
    if (const auto left = builder_.constant_value(rest)) {
      if (*left > 0) statements.push_back(next(part(start, exact_extent(builder_, *left)), known));
    } else if (vector) {
      statements.push_back(vector_tail(box, axis, tile, start, rest, known, next));
    } else {
      statements.push_back(row_tail(box, axis, tile, start, rest, known, next));
    }
  }
  return builder_.block(std::move(statements));
}

// rest < tile, as its binary digits: steps of the powers of two below `tile`, largest first.
StmtId Lowering::row_tail(const Box& box, int axis, int64_t tile, ExprId start, ExprId rest,
                          const KnownGuards& known, const Continuation& next) {
  const BoxDim& dim = box[static_cast<size_t>(axis)];
  std::vector<StmtId> statements;
  const VariableId left = builder_.variable("rest", {DataType::int64, 1});
  builder_.set_range(left, 0, tile - 1);
  statements.push_back(builder_.let(left, rest));
  const ExprId remaining = builder_.read(left);
  for (auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(tile - 1))); step >= 1;
       step /= 2) {
    const ExprId from_here = builder_.floor_mod(remaining, builder_.integer(2 * step));
    const ExprId count = builder_.floor_div(from_here, builder_.integer(step));
    if (builder_.constant_value(count) == 0) continue;
    Box inner = box;
    BoxDim& d = inner[static_cast<size_t>(axis)];
    d.low = builder_.add(dim.low, builder_.add(start, builder_.sub(remaining, from_here)));
    d.extent = exact_extent(builder_, step);
    statements.push_back(builder_.branch(builder_.less(zero(), count), next(inner, known)));
  }
  return builder_.block(std::move(statements));
}

// Single vectors, the last one masked.
StmtId Lowering::vector_tail(const Box& box, int axis, int64_t tile, ExprId start, ExprId rest,
                             const KnownGuards& known, const Continuation& next) {
  const BoxDim& dim = box[static_cast<size_t>(axis)];
  const int64_t lanes = std::min<int64_t>(tile, options_.vector_lanes);
  const ExprId step = builder_.integer(lanes);
  std::vector<StmtId> statements;
  const VariableId left = builder_.variable("rest", {DataType::int64, 1});
  builder_.set_range(left, 0, tile - 1);
  statements.push_back(builder_.let(left, rest));
  const ExprId remaining = builder_.read(left);
  const ExprId count = builder_.floor_div(builder_.add(remaining, builder_.integer(lanes - 1)), step);
  statements.push_back(serial_loop("t", count, [&](ExprId t) {
    Box inner = box;
    BoxDim& d = inner[static_cast<size_t>(axis)];
    const ExprId offset = builder_.mul(t, step);
    d.low = builder_.add(dim.low, builder_.add(start, offset));
    Extent extent = extent_of(builder_, builder_.min(step, builder_.sub(remaining, offset)), lanes, step, 1);
    extent.masked = !extent.exact;
    d.extent = extent;
    return next(inner, known);
  }));
  return builder_.block(std::move(statements));
}

}  // namespace fusewise::schedule
