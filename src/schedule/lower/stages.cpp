// A stage inside its loops: the stages attached on the way, their storage, elementwise bodies.
#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "schedule/lower/lowering.h"
#include "schedule/pieces.h"

namespace fusewise::schedule {

using kernel::Scope;
using kernel::Type;

StmtId Lowering::emit_depth(int index, int depth, const Box& box, const KnownGuards& known) {
  const Stage& s = stage(index);
  if (s.cooperative) return emit_group_depth(index, depth, box);
  std::vector<StmtId> statements;
  emit_attached(index, depth, box, known, false, statements);
  const bool innermost = depth == static_cast<int>(s.loops.size());
  statements.push_back(innermost ? emit_innermost(index, box, known) : emit_loop(index, depth, box, known));
  return builder_.block(std::move(statements));
}

void Lowering::emit_attached(int index, int depth, const Box& box, const KnownGuards& known, bool registers,
                             std::vector<StmtId>& statements) {
  const auto wanted = [&](int c) {
    return stage(c).depth == depth && (stage(c).placement == Placement::registers) == registers &&
           !stage(c).cooperative;
  };
  const std::vector<int>& children = stage(index).children;
  if (std::none_of(children.begin(), children.end(), wanted)) return;
  const std::map<NodeId, Box> needed = needed_boxes(index, box);
  for (int child : children) {
    if (!wanted(child)) continue;
    const Box& child_box = needed.at(stage(child).node);
    const Reuse reuse = stage(child).reuse;
    if (reuse != Reuse::slide && reuse != Reuse::carry) place(child, child_box, statements);
    if (reuse != Reuse::carry && stage(child).chain >= 0) begin_finish(child, needed, statements);
    statements.push_back(registers ? emit_body(child, child_box, known) : emit_child(child, child_box));
  }
}

StmtId Lowering::emit_innermost(int index, const Box& box, const KnownGuards& known) {
  const auto [axis, tile] = unfinished_axis(index, box);
  if (axis >= 0) {
    const Continuation next = [&, index](const Box& b, const KnownGuards& k) {
      return emit_innermost(index, b, k);
    };
    const auto cut = stages_of_body(index).size() == 1 ? &Lowering::loop_pieces : &Lowering::loop_interior;
    return (this->*cut)(index, box, axis, tile, axis == stage(index).vector_axis, known, next);
  }
  std::vector<StmtId> statements;
  const Box body = whole_vectors(index, box);
  emit_attached(index, static_cast<int>(stage(index).loops.size()), body, known, true, statements);
  statements.push_back(emit_body(index, body, known));
  return builder_.block(std::move(statements));
}

// Where masks cost nothing, columns that would take several vectors of falling widths at their end take one, masked.
Box Lowering::whole_vectors(int index, const Box& box) {
  constexpr int lanes_with_masks = 16;
  constexpr int64_t most_vectors = 8;
  const int axis = stage(index).vector_axis;
  const int64_t lanes = options_.vector_lanes;
  if (lanes < lanes_with_masks || axis < 0 || axis >= static_cast<int>(box.size())) return box;
  const std::optional<int64_t> exact = box[static_cast<size_t>(axis)].extent.exact;
  if (!exact || *exact <= 0 || std::popcount(static_cast<uint64_t>(*exact % lanes)) < 2) return box;
  const int64_t whole = (*exact + lanes - 1) / lanes * lanes;
  if (whole > most_vectors * lanes) return box;
  Box result = box;
  Extent& extent = result[static_cast<size_t>(axis)].extent;
  extent = {};
  extent.value = builder_.integer(*exact);
  extent.bound = whole;
  extent.bound_value = builder_.integer(whole);
  extent.masked = true;
  return result;
}

// A child that is not a register tile runs its own nest over the part of its box that exists.
StmtId Lowering::emit_child(int index, const Box& needed) {
  const Stage& child = stage(index);
  const Shape& shape = shape_of(child.node);
  Box box;
  for (size_t d = 0; d < needed.size(); ++d) box.push_back(clamp_to(builder_, needed[d], dim_expr(shape[d])));
  if (child.reuse != Reuse::slide) return emit_depth(index, 0, box, {});

  // Sliding: everything below the high-water mark was computed by an earlier iteration and still lies in the ring.
  BoxDim& along = box[static_cast<size_t>(child.slide_axis)];
  const VariableId done = ring_done_[static_cast<size_t>(index)];
  const VariableId begin = builder_.variable("begin", {DataType::int64, 1});
  builder_.set_range(begin, 0, std::numeric_limits<int64_t>::max());
  const ExprId end = builder_.add(along.low, along.extent.value);
  std::vector<StmtId> statements;
  statements.push_back(builder_.let(begin, builder_.max(along.low, builder_.read(done))));
  along.low = builder_.read(begin);
  along.extent = extent_of(builder_, builder_.max(builder_.sub(end, along.low), zero()), along.extent.bound,
                           along.extent.bound_value, 1);
  statements.push_back(emit_depth(index, 0, box, {}));
  statements.push_back(builder_.assign(done, builder_.max(end, builder_.read(done))));
  return builder_.block(std::move(statements));
}

Lowering::Storage Lowering::dense(int index, const Box& box, ExprId& size) {
  const Stage& s = stage(index);
  Storage storage;
  storage.low.resize(box.size());
  storage.stride.resize(box.size());
  size = builder_.integer(1);
  for (size_t i = s.storage.size(); i-- > 0;) {
    const auto d = static_cast<size_t>(s.storage[i]);
    const Extent& extent = box[d].extent;
    storage.low[d] = box[d].low;
    storage.stride[d] = size;
    const bool ring = s.reuse == Reuse::slide && s.storage[i] == s.slide_axis;
    const ExprId bound =
        extent.bound ? builder_.integer(std::max<int64_t>(*extent.bound, 0)) : extent.bound_value;
    check(bound != kernel::none, "a stage without a bound on its size");
    if (ring) {
      storage.ring_dim = s.slide_axis;
      storage.ring = builder_.max(bound, builder_.integer(1));
    }
    size = builder_.mul(size, bound);
  }
  size = builder_.max(size, builder_.integer(1));
  return storage;
}

// Allocates the storage of a scratch or register stage.
void Lowering::place(int index, const Box& box, std::vector<StmtId>& statements) {
  const Stage& s = stage(index);
  if (s.placement == Placement::memory) return;
  kernel::Buffer buffer;
  Storage storage = dense(index, box, buffer.size);
  buffer.name = (s.placement == Placement::registers ? "r" : "s") + std::to_string(index);
  buffer.element = element_of(s.node);
  buffer.scope = s.placement == Placement::registers ? Scope::registers
                 : s.cooperative                     ? Scope::shared
                                                     : Scope::scratch;
  buffer.written = true;
  storage.buffer = builder_.buffer(buffer);
  (s.cooperative ? shared_allocations_ : statements).push_back(builder_.allocate(storage.buffer));
  storage_[static_cast<size_t>(index)] = std::move(storage);
}

// The ring and its high-water mark live outside the loop along which the box moves. The ring has room for what a full
// step of that loop needs wherever it is: reads that lie apart may need nothing at the first one.
void Lowering::place_rings(int index, int depth, const Box& box, std::vector<StmtId>& statements) {
  const Stage& s = stage(index);
  const LoopChoice& loop = s.loops[static_cast<size_t>(depth)];
  const auto slides = [&](int c) { return stage(c).depth == depth + 1 && stage(c).reuse == Reuse::slide; };
  if (std::none_of(s.children.begin(), s.children.end(), slides)) return;
  Box step = box;
  BoxDim& along = step[static_cast<size_t>(loop.axis)];
  if (!along.extent.exact || *along.extent.exact > loop.tile) {
    const VariableId anywhere = builder_.variable("anywhere", {DataType::int64, 1});  // sizes do not read it
    builder_.set_range(anywhere, 0, std::numeric_limits<int64_t>::max());
    along.low = builder_.add(along.low, builder_.read(anywhere));
  }
  along.extent =
      exact_extent(builder_, along.extent.bound ? std::min(*along.extent.bound, loop.tile) : loop.tile);
  const std::map<NodeId, Box> needed = needed_boxes(index, step);
  for (int c : s.children) {
    if (!slides(c)) continue;
    place(c, needed.at(stage(c).node), statements);
    const VariableId done = builder_.variable("done", {DataType::int64, 1}, true);
    statements.push_back(builder_.assign(done, zero()));
    ring_done_[static_cast<size_t>(c)] = done;
  }
}

std::pair<int, int64_t> Lowering::unfinished_axis(int index, const Box& box) const {
  const Stage& s = stage(index);
  const auto fits = [&](int axis, int64_t limit) {
    const Extent& e = box[static_cast<size_t>(axis)].extent;
    if (e.masked && axis == s.vector_axis) return true;
    return e.exact && *e.exact <= limit;
  };
  for (int pass = 0; pass < 2; ++pass)
    for (int axis : s.storage) {
      if ((axis == s.vector_axis) != (pass == 1)) continue;
      const int64_t limit = body_limit(s, axis);
      if (!fits(axis, limit)) return {axis, limit};
    }
  return {-1, 0};
}

int64_t Lowering::body_limit(const Stage& s, int axis) const {
  if (s.vector_axis >= forms_.form(s.node).parallel_axes())
    return 1;  // lanes along the reduction: one element
  for (size_t l = s.loops.size(); l-- > 0;)
    if (s.loops[l].axis == axis) return s.loops[l].tile;
  if (s.placement == Placement::registers) return std::numeric_limits<int64_t>::max();
  if (axis != s.vector_axis) return 1;
  const Form& form = forms_.form(s.node);
  const bool lanes_in_registers = form.accumulation && !form.accumulation->sequential;
  return lanes_in_registers ? options_.vector_lanes : 2 * options_.vector_lanes;
}

StmtId Lowering::emit_body(int index, const Box& box, const KnownGuards& known) {
  evaluated_.clear();
  if (std::any_of(box.begin(), box.end(),
                  [](const BoxDim& d) { return d.extent.exact && *d.extent.exact <= 0; }))
    return builder_.block({});
  if (pass_ == Pass::clear || pass_ == Pass::store_part) return emit_state_pass(index, box);
  if (pass_ == Pass::finish || finishes_parts(index)) return emit_finish(index, box);
  const Form& form = forms_.form(stage(index).node);
  if (!form.accumulation) return emit_map_body(index, box);
  if (form.accumulation->sequential) return emit_accumulate_body(index, box, known);
  return emit_blocked_reduction(index, box);
}

Lowering::Tile Lowering::tile_of(int index, const Box& box) {
  const Stage& s = stage(index);
  Tile tile;
  tile.variables.assign(box.size(), kernel::none);
  tile.vector_axis = s.vector_axis < static_cast<int>(box.size()) ? s.vector_axis : -1;
  for (int axis : s.storage)
    if (axis != tile.vector_axis) tile.order.push_back(axis);
  if (tile.vector_axis >= 0) tile.order.push_back(tile.vector_axis);
  tile.position = zero();
  tile.coordinates.resize(box.size());
  edges_.clear();
  for (int axis : tile.order) {
    const BoxDim& dim = box[static_cast<size_t>(axis)];
    const int64_t extent = dim.extent.exact ? *dim.extent.exact : dim.extent.bound.value_or(-1);
    check(extent >= 0 && (dim.extent.exact || dim.extent.masked),
          "a register tile without a constant extent");
    tile.extents.push_back(extent);
    tile.elements *= extent;
    ExprId offset = zero();
    if (extent > 1 || dim.extent.masked) {
      const VariableId v = builder_.variable(axis == tile.vector_axis ? "v" : "u", {DataType::int64, 1});
      builder_.set_range(v, 0, std::max<int64_t>(extent - 1, 0));
      tile.variables[static_cast<size_t>(axis)] = v;
      offset = builder_.read(v);
      ExprId exists = kernel::none;
      if (dim.extent.masked) exists = builder_.less(offset, dim.extent.value);
      if (dim.end != kernel::none) exists = builder_.less(builder_.add(dim.low, offset), dim.end);
      if (exists != kernel::none && builder_.constant_value(exists) != 1) {
        edges_.push_back({v, exists, {}});
        tile.mask = both(tile.mask, exists);
      }
    }
    tile.coordinates[static_cast<size_t>(axis)] = builder_.add(dim.low, offset);
    tile.position = builder_.add(builder_.mul(tile.position, builder_.integer(extent)), offset);
  }
  return tile;
}

StmtId Lowering::over_tile(const Tile& tile, StmtId body, bool rolled) {
  const LoopKind rows = rolled ? LoopKind::serial : LoopKind::unrolled;
  for (size_t i = tile.order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(tile.order[i]);
    if (tile.extents[i] == 0) return builder_.block({});
    if (tile.variables[axis] == kernel::none) continue;
    const LoopKind kind = tile.order[i] == tile.vector_axis ? LoopKind::vector : rows;
    body = builder_.loop(kind, tile.variables[axis], zero(), builder_.integer(tile.extents[i]), 1, body);
  }
  return body;
}

void Lowering::store_element(int index, const Coordinates& coordinates, ExprId value, ExprId mask,
                             std::vector<StmtId>& statements) {
  const Stage& s = stage(index);
  value = convert(value, element_of(s.node));
  if (s.placement == Placement::memory) {
    const Value result{s.node, 0};
    statements.push_back(
        builder_.store(arguments_.at(result), argument_address(result, coordinates), value, mask));
  } else {
    const BufferId buffer = storage_[static_cast<size_t>(index)]->buffer;
    if (tree_.threads > 1 && s.placement == Placement::registers) mask = kernel::none;
    statements.push_back(builder_.store(buffer, stage_address(index, coordinates), value, mask));
  }
}

// A cheap body acts on every register of the tile in turn. A heavy one would be written out for each of them: it runs
// as a loop over the rows instead, the accumulators having been stored to the stack, where they are still in the
// nearest cache.
StmtId Lowering::emit_map_body(int index, const Box& box) {
  const Tile tile = tile_of(index, box);
  std::vector<StmtId> statements;
  const ExprId value = evaluate(stage(index).node, tile.coordinates, kernel::none);
  store_element(index, tile.coordinates, value, tile.mask, statements);
  const bool rolled = body_operations(forms_, stage(index)) > 16;
  return over_tile(tile, builder_.block(std::move(statements)), rolled);
}

}  // namespace fusewise::schedule
