// Contractions and window reductions: accumulators in registers, the reduction axes as loops in strict order. A guard
// on a tap becomes a loop bound where it is the same for the whole register tile, and a select elsewhere.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "schedule/lower/lowering.h"

namespace fusewise::schedule {

using kernel::Scope;
using kernel::Type;

BufferId Lowering::register_buffer(const char* name, DataType type, int64_t elements,
                                   std::vector<StmtId>& statements) {
  kernel::Buffer buffer;
  buffer.name = name;
  buffer.element = type;
  buffer.scope = Scope::registers;
  buffer.written = true;
  buffer.size = builder_.integer(std::max<int64_t>(elements, 1));
  const BufferId id = builder_.buffer(buffer);
  statements.push_back(builder_.allocate(id));
  return id;
}

// True if the guard has one truth value for all elements of the register tile.
bool Lowering::uniform(const Guard& guard, const Box& box, const Form& form) const {
  const auto points = [&](const LinearIndex& linear) {
    return std::all_of(linear.terms.begin(), linear.terms.end(), [&](const graph::AxisTerm& t) {
      const auto axis = static_cast<size_t>(t.axis);
      return form.axes[axis].reduction || box[axis].extent.exact == 1;
    });
  };
  return points(guard.expr.linear) && guard.expr.quasi.empty() && !guard.expr.gathered;
}

// True if the guard is a constant for every element and tap once the register tile and the taps are written out: the
// tile lies at a constant place, and the guard's taps are few.
bool Lowering::settled(const Guard& guard, const Box& box, const Tile& tile, const Form& form) const {
  constexpr int64_t most_taps = 16;
  if (!guard.expr.quasi.empty() || guard.expr.gathered) return false;
  return std::all_of(guard.expr.linear.terms.begin(), guard.expr.linear.terms.end(),
                     [&](const graph::AxisTerm& t) {
                       const auto axis = static_cast<size_t>(t.axis);
                       if (form.axes[axis].reduction) {
                         const Dim& taps = form.axes[axis].extent;
                         return taps.is_constant() && taps.value() <= most_taps;
                       }
                       return t.axis != tile.vector_axis && box[axis].extent.exact &&
                              builder_.constant_value(box[axis].low).has_value();
                     });
}

StmtId Lowering::emit_accumulate_body(int index, const Box& box, const KnownGuards& known) {
  std::vector<StmtId> statements;
  const DataType type = forms_.form(stage(index).node).accumulation->accumulator;
  const BufferId accumulators = register_buffer("acc", type, tile_of(index, box).elements, statements);
  statements.push_back(begin_accumulation(index, box, accumulators));
  statements.push_back(accumulate(index, box, known, accumulators, std::nullopt));
  statements.push_back(finish_accumulation(index, box, accumulators));
  return builder_.block(std::move(statements));
}

StmtId Lowering::begin_accumulation(int index, const Box& box, BufferId accumulators) {
  const graph::Accumulation& how = *forms_.form(stage(index).node).accumulation;
  const Tile tile = tile_of(index, box);
  const ExprId begin =
      runs(index) ? running_value(index, tile.coordinates) : identity_of(how.combine, how.accumulator);
  return over_tile(tile, builder_.store(accumulators, tile.position, begin));
}

StmtId Lowering::accumulate(int index, const Box& box, const KnownGuards& known, BufferId accumulators,
                            const std::optional<Part>& part) {
  const NodeId node = stage(index).node;
  const Form& form = forms_.form(node);
  const Tile tile = tile_of(index, box);
  std::vector<const Guard*> open;
  for (const Read& read : form.reads)
    for (const Guard& guard : read.guards)
      if (!known.count({node, &guard})) open.push_back(&guard);
  Coordinates axes = tile.coordinates;
  axes.resize(form.axes.size(), zero());
  return reduction_nest(index, box, tile, accumulators, axes, form.parallel_axes(), open, part);
}

StmtId Lowering::finish_accumulation(int index, const Box& box, BufferId accumulators) {
  const Tile tile = tile_of(index, box);
  std::vector<StmtId> stores;
  const ExprId result = builder_.load(accumulators, tile.position);
  if (runs(index))
    update_state(index, tile.coordinates, result, tile.mask, stores);
  else
    store_element(index, tile.coordinates, result, tile.mask, stores);
  return over_tile(tile, builder_.block(std::move(stores)));
}

StmtId Lowering::reduction_nest(int index, const Box& box, const Tile& tile, BufferId accumulators,
                                Coordinates& axes, int reduction, std::vector<const Guard*>& open,
                                const std::optional<Part>& part) {
  const NodeId node = stage(index).node;
  const Form& form = forms_.form(node);
  if (reduction == static_cast<int>(form.axes.size()))
    return update(index, box, tile, accumulators, axes, open);

  const auto axis = static_cast<size_t>(reduction);
  ExprId begin = zero(), end = dim_expr(form.axes[axis].extent);
  if (part && reduction == form.parallel_axes()) std::tie(begin, end) = *part;
  const auto block = block_of_.find(node);
  const bool in_block = block != block_of_.end() && reduction == block_axis(form);
  // Inside a loop over blocks the axis counts from the block's beginning.
  const ExprId origin = in_block ? block->second.low : zero();
  if (in_block) end = block->second.extent.value;
  std::vector<const Guard*> rest;
  for (const Guard* guard : open) {
    int64_t coefficient = 0;
    bool later = false;
    for (const graph::AxisTerm& t : guard->expr.linear.terms) {
      if (t.axis == reduction && t.coefficient.is_constant())
        coefficient = t.coefficient.value();
      else if (t.axis >= reduction)
        later = true;
    }
    if (coefficient <= 0 || later || !uniform(*guard, box, form)) {
      rest.push_back(guard);
      continue;
    }
    // low <= c * r + other < high  =>  ceil((low - other) / c) <= r < ceil((high - other) / c)
    Coordinates at_zero = axes;
    at_zero[axis] = origin;
    const ExprId other = index_expr(node, guard->expr, at_zero, kernel::none);
    const ExprId step = builder_.integer(coefficient);
    const auto ceiling = [&](const Dim& limit) {
      const ExprId distance = builder_.sub(dim_expr(limit), other);
      return builder_.floor_div(builder_.add(distance, builder_.integer(coefficient - 1)), step);
    };
    begin = builder_.max(begin, ceiling(guard->low));
    end = builder_.min(end, ceiling(guard->high));
  }
  const auto trips = builder_.constant_value(builder_.sub(end, begin));
  if (trips && *trips <= 0) return builder_.block({});
  if (trips == 1) {
    axes[axis] = builder_.add(origin, begin);
    return reduction_nest(index, box, tile, accumulators, axes, reduction + 1, rest, part);
  }
  // Few constant taps of the innermost loop are unrolled, so that neighbouring windows share their loads; so are taps
  // that are absent for some windows of a tile at the border only.
  const auto settles = [&](const Guard* guard) {
    return settled(*guard, box, tile, form) &&
           std::any_of(guard->expr.linear.terms.begin(), guard->expr.linear.terms.end(),
                       [&](const graph::AxisTerm& t) { return t.axis == reduction; });
  };
  const bool border = std::any_of(rest.begin(), rest.end(), settles);
  const bool innermost = std::all_of(form.axes.begin() + reduction + 1, form.axes.end(),
                                     [](const graph::Axis& a) { return a.extent.is(1); });
  const bool unrolled =
      trips && (border || (innermost && *trips <= 8)) && builder_.constant_value(begin) == 0;
  const VariableId k = builder_.variable("k", {DataType::int64, 1});
  builder_.set_range(
      k, 0, trips && builder_.constant_value(begin) == 0 ? *trips - 1 : std::numeric_limits<int64_t>::max());
  axes[axis] = builder_.add(origin, builder_.read(k));
  const StmtId body = reduction_nest(index, box, tile, accumulators, axes, reduction + 1, rest, part);
  return builder_.loop(unrolled ? LoopKind::unrolled : LoopKind::serial, k, begin, end, 1, body);
}

StmtId Lowering::update(int index, const Box& box, const Tile& tile, BufferId accumulators,
                        const Coordinates& axes, const std::vector<const Guard*>& open) {
  const NodeId node = stage(index).node;
  const Form& form = forms_.form(node);
  const DataType type = form.accumulation->accumulator;
  // What is constant in each copy of the unrolled tile decides whether the copy is there, and masks nothing.
  ExprId condition = kernel::none, present = kernel::none;
  for (const Guard* guard : open) {
    ExprId& holds = settled(*guard, box, tile, form) ? present : condition;
    holds = both(holds, guard_expr(node, *guard, axes, kernel::none));
  }

  const ExprId old = builder_.load(accumulators, tile.position);
  std::map<int, ExprId> done;
  ExprId next = kernel::none;
  if (form.accumulation->multiply_add) {
    const std::vector<int>& factors = form.body.back().arguments;
    const ExprId a = convert(body_value(node, factors[0], axes, condition, done), type);
    const ExprId b = convert(body_value(node, factors[1], axes, condition, done), type);
    next = is_float(type) ? builder_.fma(a, b, old)
                          : builder_.apply(ScalarOp::add, {type, 1}, old,
                                           builder_.apply(ScalarOp::mul, {type, 1}, a, b));
  } else {
    const ExprId value = body_value(node, static_cast<int>(form.body.size()) - 1, axes, condition, done);
    next = combined(form.accumulation->combine, type, old, convert(value, type));
  }
  if (condition != kernel::none) next = builder_.apply(ScalarOp::select, {type, 1}, condition, next, old);
  StmtId store = builder_.store(accumulators, tile.position, next);
  if (present != kernel::none) store = builder_.branch(present, store);
  return over_tile(tile, store);
}

// --- The interior of an axis along which taps can fall on padding.

namespace {

struct Interior {
  std::vector<std::pair<NodeId, const Guard*>> guards;
  ExprId begin = kernel::none, end = kernel::none;
};

}  // namespace

// Where a register tile spans several windows, the part of the axis on which no tap of any window falls on padding
// runs without guards. At a constant place the tiles at the border stay whole: their taps are written out, each for
// the windows that have it (`border_tiles`). Elsewhere the border runs one window at a time, its taps cut by the loop
// bounds.
StmtId Lowering::loop_interior(int index, const Box& box, int axis, int64_t tile, bool vector,
                               const KnownGuards& known, const Continuation& next) {
  Interior interior;
  const std::vector<int> holders = stages_of_body(index);
  for (int holder : holders) {
    const NodeId node = stage(holder).node;
    const Form& form = forms_.form(node);
    if (!form.accumulation || !form.accumulation->sequential) continue;
    const std::vector<int> own = axes_in_body(index, node);
    for (const Read& read : form.reads)
      for (const Guard& guard : read.guards) {
        const auto range = guard_range(form, guard, own, axis);
        if (!range) continue;
        interior.guards.push_back({node, &guard});
        interior.begin =
            interior.begin == kernel::none ? range->first : builder_.max(interior.begin, range->first);
        interior.end =
            interior.end == kernel::none ? range->second : builder_.min(interior.end, range->second);
      }
  }
  if (interior.guards.empty() || (tile == 1 && !vector))
    return loop_over(box, axis, tile, true, vector, known, next);

  const BoxDim& dim = box[static_cast<size_t>(axis)];
  const ExprId low = dim.low, high = builder_.add(dim.low, dim.extent.value);
  const ExprId begin = builder_.min(builder_.max(interior.begin, low), high);
  const ExprId end = builder_.max(builder_.min(interior.end, high), begin);
  KnownGuards inside = known;
  inside.insert(interior.guards.begin(), interior.guards.end());
  if (const auto whole =
          vector ? std::nullopt : border_tiles(box, axis, tile, begin, end, known, inside, next))
    return *whole;
  std::vector<StmtId> statements;
  const auto part = [&](ExprId from, ExprId to, int64_t step, const KnownGuards& facts) {
    const ExprId count = builder_.sub(to, from);
    if (builder_.constant_value(count) == 0) return;
    Box inner = box;
    BoxDim& d = inner[static_cast<size_t>(axis)];
    d.low = from;
    d.extent = extent_of(builder_, count, dim.extent.bound, dim.extent.bound_value, 1);
    statements.push_back(loop_over(inner, axis, step, true, vector && step == tile, facts, next));
  };
  part(low, begin, 1, known);
  part(begin, end, tile, inside);
  part(end, high, 1, known);
  return builder_.block(std::move(statements));
}

// The tiles of an axis at a constant place, where [begin, end) has no padding: the few that reach beyond it one by
// one, the others as a loop. None if place or border is known at run time only, or if many tiles reach beyond.
std::optional<StmtId> Lowering::border_tiles(const Box& box, int axis, int64_t tile, ExprId begin, ExprId end,
                                             const KnownGuards& known, const KnownGuards& inside,
                                             const Continuation& next) {
  constexpr int64_t most_tiles = 2;  // on each side
  const BoxDim& dim = box[static_cast<size_t>(axis)];
  const auto low = builder_.constant_value(dim.low), first = builder_.constant_value(begin),
             last = builder_.constant_value(end);
  if (!low || !first || !last || !dim.extent.exact || *dim.extent.exact <= 0) return std::nullopt;
  const int64_t extent = *dim.extent.exact, tiles = (extent + tile - 1) / tile;
  const auto end_of = [&](int64_t t) { return std::min((t + 1) * tile, extent); };
  int64_t leading = 0, trailing = 0;
  while (leading < tiles && *low + leading * tile < *first) ++leading;
  while (leading + trailing < tiles && *low + end_of(tiles - 1 - trailing) > *last) ++trailing;
  if (leading > most_tiles || trailing > most_tiles) return std::nullopt;
  const auto part = [&](int64_t from, int64_t to) {
    Box inner = box;
    inner[static_cast<size_t>(axis)].low = builder_.integer(*low + from);
    inner[static_cast<size_t>(axis)].extent = exact_extent(builder_, to - from);
    return inner;
  };
  std::vector<StmtId> statements;
  for (int64_t t = 0; t < leading; ++t) statements.push_back(next(part(t * tile, end_of(t)), known));
  if (leading + trailing < tiles)
    statements.push_back(
        loop_over(part(leading * tile, end_of(tiles - 1 - trailing)), axis, tile, true, false, inside, next));
  for (int64_t t = tiles - trailing; t < tiles; ++t)
    statements.push_back(next(part(t * tile, end_of(t)), known));
  return builder_.block(std::move(statements));
}

// The stage itself and the register tiles attached to its body.
std::vector<int> Lowering::stages_of_body(int index) const {
  std::vector<int> result = {index};
  for (int c : stage(index).children)
    if (stage(c).placement == Placement::registers) result.push_back(c);
  return result;
}

// The range of the body's axis `axis` on which the guard holds for every tap, if the guard is of that kind: linear,
// one parallel axis that is the body's axis, constant tap extents.
std::optional<std::pair<ExprId, ExprId>> Lowering::guard_range(const Form& form, const Guard& guard,
                                                               const std::vector<int>& own, int axis) {
  const IndexExpr& e = guard.expr;
  if (!e.quasi.empty() || e.gathered) return std::nullopt;
  int64_t coefficient = 0, least = 0, most = 0;
  for (const graph::AxisTerm& t : e.linear.terms) {
    if (!t.coefficient.is_constant()) return std::nullopt;
    const int64_t c = t.coefficient.value();
    const graph::Axis& a = form.axes[static_cast<size_t>(t.axis)];
    if (a.reduction) {
      if (!a.extent.is_constant() || a.extent.is(0)) return std::nullopt;
      const int64_t span = c * (a.extent.value() - 1);
      (span < 0 ? least : most) += span;
    } else if (own[static_cast<size_t>(t.axis)] == axis && c > 0) {
      coefficient = c;
    } else {
      return std::nullopt;
    }
  }
  if (coefficient == 0) return std::nullopt;
  const ExprId step = builder_.integer(coefficient);
  // c * x + constant + least >= low;  c * x + constant + most <= high - 1
  const Dim from = guard.low - e.linear.constant - Dim(least) + Dim(coefficient - 1);
  const Dim to = guard.high - Dim(1) - e.linear.constant - Dim(most);
  return std::make_pair(builder_.floor_div(dim_expr(from), step),
                        builder_.add(builder_.floor_div(dim_expr(to), step), builder_.integer(1)));
}

// For each parallel axis of `node`, the axis of the stage's node that it equals through the inlined readers between
// them, -1 if none.
std::vector<int> Lowering::axes_in_body(int index, NodeId node) const {
  const Stage& s = stage(index);
  std::vector<NodeId> order = {s.node};
  order.insert(order.end(), s.inlined.rbegin(), s.inlined.rend());
  const auto axes = equal_axes(forms_, order);
  const auto it = axes.find(node);
  return it != axes.end() ? it->second
                          : std::vector<int>(static_cast<size_t>(forms_.form(node).parallel_axes()), -1);
}

}  // namespace fusewise::schedule
