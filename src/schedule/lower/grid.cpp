// The grid: all blocks of a phase as one index, and the box that a block computes of each root.
#include <algorithm>
#include <numeric>

#include "schedule/lower/lowering.h"

namespace fusewise::schedule {

// What the grid loops of a root cut: its result, and of a partial one the reduced axes too.
Box Lowering::grid_box(const Stage& root) {
  Box box;
  for (const graph::Axis& a : forms_.form(root.node).axes)
    if (!a.reduction || root.partial) box.push_back({zero(), domain_extent(a.extent), true});
  return box;
}

// All grid loops of a root collapsed into one block index, the last loop fastest.
Lowering::Grid Lowering::grid_of(int index) {
  const Stage& root = stage(index);
  Grid grid;
  grid.blocks = builder_.integer(1);
  std::vector<ExprId> reach;
  for (const BoxDim& d : grid_box(root)) reach.push_back(d.extent.value);
  for (int l = 0; l < root.grid_loops; ++l) {
    const LoopChoice& loop = root.loops[static_cast<size_t>(l)];
    ExprId& extent = reach[static_cast<size_t>(loop.axis)];
    const ExprId tile = builder_.integer(loop.tile);
    grid.reach.push_back(extent);
    grid.trips.push_back(builder_.floor_div(builder_.add(extent, builder_.integer(loop.tile - 1)), tile));
    grid.blocks = builder_.mul(grid.blocks, grid.trips.back());
    extent = builder_.min(extent, tile);
  }
  return grid;
}

// A tile that sticks out of its axis has a run-time extent. Nested tiles of one axis: an outer tile that is cut short
// leaves nothing to some of the inner ones.
StmtId Lowering::emit_block(int index, const Grid& grid, ExprId block) {
  const Stage& root = stage(index);
  const Form& form = forms_.form(root.node);
  Box inner = grid_box(root);
  ExprId rest = block;
  std::vector<ExprId> position(grid.trips.size());
  for (size_t l = grid.trips.size(); l-- > 0;) {
    position[l] = l == 0 ? rest : builder_.floor_mod(rest, grid.trips[l]);
    rest = builder_.floor_div(rest, grid.trips[l]);
  }
  for (size_t l = 0; l < grid.trips.size(); ++l) {
    const LoopChoice& loop = root.loops[l];
    BoxDim& dim = inner[static_cast<size_t>(loop.axis)];
    const ExprId offset = builder_.mul(position[l], builder_.integer(loop.tile));
    const Extent before = dim.extent;
    dim.low = builder_.add(dim.low, offset);
    if (before.multiple % loop.tile == 0 && before.value == grid.reach[l]) {
      dim.extent = exact_extent(builder_, loop.tile);
    } else {
      const ExprId left = builder_.max(builder_.sub(before.value, offset), zero());
      const int64_t multiple = std::gcd(before.multiple, loop.tile);
      dim.extent = extent_of(builder_, builder_.min(builder_.integer(loop.tile), left), loop.tile,
                             builder_.integer(loop.tile), multiple);
    }
  }
  if (root.partial) {
    const Chain& chain = tree_.chains[static_cast<size_t>(root.chain)];
    part_of_[index] = {inner[static_cast<size_t>(block_axis(form))],
                       position[static_cast<size_t>(chain.part_loop)]};
  }
  inner.resize(static_cast<size_t>(form.parallel_axes()));
  if (tree_.threads > 1) return emit_group(index, inner);
  if (!finishes_parts(index)) return emit_depth(index, root.grid_loops, inner, {});
  std::vector<StmtId> statements;
  begin_finish(index, needed_boxes(index, inner), statements);
  statements.push_back(emit_depth(index, root.grid_loops, inner, {}));
  return builder_.block(std::move(statements));
}

// The roots of one phase share its blocks, one root after the other.
StmtId Lowering::emit_phase(const std::vector<int>& roots) {
  std::vector<Grid> grids;
  std::vector<ExprId> begins;
  ExprId blocks = zero();
  for (int root : roots) {
    grids.push_back(grid_of(root));
    begins.push_back(blocks);
    blocks = builder_.add(blocks, grids.back().blocks);
  }
  // Whose block it is, by halving: every block takes one way, without conditions on the others.
  const std::function<StmtId(size_t, size_t, ExprId)> among = [&](size_t from, size_t to, ExprId block) {
    if (to - from > 1) {
      const size_t middle = from + (to - from) / 2;
      const StmtId before = among(from, middle, block), after = among(middle, to, block);
      return builder_.branch(builder_.less(block, begins[middle]), before, after);
    }
    if (roots.size() == 1) return emit_block(roots[0], grids[0], block);
    const VariableId own = builder_.variable("b", {DataType::int64, 1});
    const ExprId count = grids[from].blocks;
    builder_.set_range(own, 0, std::max<int64_t>(builder_.range(count).high - 1, 0));
    builder_.set_bound(own, count);
    const StmtId let = builder_.let(own, builder_.sub(block, begins[from]));
    return builder_.block({let, emit_block(roots[from], grids[from], builder_.read(own))});
  };
  return serial_loop(
      "b", blocks, [&](ExprId block) { return among(0, roots.size(), block); }, LoopKind::block);
}

}  // namespace fusewise::schedule
