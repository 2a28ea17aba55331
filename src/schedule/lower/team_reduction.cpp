// Reductions by several threads each, in the fixed order (reduction_order.h): a thread adds one lane of a block, one
// thread joins the lanes of a block, the first thread of a team merges the blocks. The group's threads are so many teams;
// each pass gives every team one result, and each step within it so many blocks as a team has threads for. All loops
// with barriers inside are the same for all threads: a thread without an element, a block or a result does nothing there.
#include "base/error.h"
#include "schedule/lower/lowering.h"

namespace fusewise::schedule {

using kernel::Scope;

BufferId Lowering::shared_buffer(const char* name, DataType type, int64_t elements) {
  kernel::Buffer buffer;
  buffer.name = name;
  buffer.element = type;
  buffer.scope = Scope::shared;
  buffer.written = true;
  buffer.size = builder_.integer(elements);
  const BufferId id = builder_.buffer(buffer);
  shared_allocations_.push_back(builder_.allocate(id));
  return id;
}

Lowering::Team Lowering::team_of(int index, const Box& box) {
  const Stage& s = stage(index);
  Team team;
  team.blocks = blocks_of(index, box);
  team.lanes = team.blocks.order.lanes;
  team.slots = s.team / team.lanes;
  team.teams = tree_.threads / s.team;
  team.lane = builder_.floor_mod(thread_, builder_.integer(team.lanes));
  team.slot = builder_.floor_mod(builder_.floor_div(thread_, builder_.integer(team.lanes)),
                                 builder_.integer(team.slots));
  team.number = builder_.floor_div(thread_, builder_.integer(s.team));
  team.is_first = builder_.less(builder_.floor_mod(thread_, builder_.integer(s.team)), builder_.integer(1));
  team.of_lanes = shared_buffer("lanes", team.blocks.type, tree_.threads);
  team.counts = team.slots > 1 || !is_one_block(team.blocks);
  team.of_blocks =
      team.counts ? shared_buffer("blocks", team.blocks.type, team.teams * team.slots) : kernel::none;
  return team;
}

StmtId Lowering::emit_team_reduction(int index, const Box& box) {
  const std::vector<ExprId> trips = thread_trips(index, box);
  ExprId total = builder_.integer(1);
  for (ExprId t : trips) total = builder_.mul(total, t);
  const Team team = team_of(index, box);
  const ExprId teams = builder_.integer(team.teams);
  const ExprId passes = builder_.floor_div(builder_.add(total, builder_.integer(team.teams - 1)), teams);
  return serial_loop("pass", passes, [&](ExprId pass) {
    const ExprId number = builder_.add(builder_.mul(pass, teams), team.number);
    ThreadTile tile = thread_tile(index, box, trips, number);
    const ExprId is_there = builder_.less(number, total);
    if (builder_.constant_value(is_there) != 1) tile.exists = both(is_there, tile.exists);
    Team own = team;
    own.blocks.box = tile.box;
    own.is_repeated = builder_.constant_value(passes) != 1;
    return team_pass(own, tile);
  });
}

// One result of each team. Between barriers a thread carries the counter of blocks alone.
StmtId Lowering::team_pass(const Team& team, const ThreadTile& tile) {
  const Blocks& blocks = team.blocks;
  const ExprId keeps = both(team.is_first, tile.exists);
  if (!team.counts)
    return builder_.block({reduce_lane(team, tile, zero(), dim_expr(blocks.extent)), builder_.barrier(),
                           where(keeps, keep_single_block(team, tile)),
                           team.is_repeated ? builder_.barrier() : builder_.block({})});
  std::vector<StmtId> statements;
  const Counter counter = place_counter(blocks, statements);
  const ExprId block = builder_.integer(blocks.order.block), slots = builder_.integer(team.slots);
  const ExprId extent = dim_expr(blocks.extent);
  const ExprId most = builder_.add(counter.count, builder_.integer(team.slots - 1));
  statements.push_back(serial_loop("step", builder_.floor_div(most, slots), [&](ExprId step) {
    const ExprId number = builder_.add(builder_.mul(step, slots), team.slot);
    const ExprId first = builder_.mul(number, block);
    const ExprId length = builder_.min(block, builder_.sub(extent, first));
    const ExprId place = builder_.floor_div(thread_, builder_.integer(team.lanes));
    std::vector<StmtId> inner = {reduce_lane(team, tile, first, length), builder_.barrier()};
    inner.push_back(where(builder_.less(team.lane, builder_.integer(1)),
                          join_team_lanes(team, length, team.of_blocks, place)));
    inner.push_back(builder_.barrier());
    inner.push_back(where(keeps, serial_loop("slot", slots, [&](ExprId slot) {
                            const ExprId from = builder_.add(builder_.mul(team.number, slots), slot);
                            const ExprId b = builder_.add(builder_.mul(step, slots), slot);
                            std::vector<StmtId> count;
                            const BufferId partial = register_buffer("partial", blocks.type, 1, count);
                            count.push_back(
                                builder_.store(partial, zero(), builder_.load(team.of_blocks, from)));
                            count.push_back(count_block(blocks, counter, partial, b));
                            return where(builder_.less(b, counter.count), builder_.block(std::move(count)));
                          })));
    return builder_.block(std::move(inner));
  }));
  std::vector<StmtId> last;
  const BufferId partial = register_buffer("partial", blocks.type, 1, last);
  last.push_back(builder_.store(partial, zero(), identity_of(blocks.combine, blocks.type)));
  last.push_back(merge_counted(blocks, counter, partial));
  store_team_result(team, tile, partial, last);
  statements.push_back(where(keeps, builder_.block(std::move(last))));
  return builder_.block(std::move(statements));
}

StmtId Lowering::keep_single_block(const Team& team, const ThreadTile& tile) {
  std::vector<StmtId> statements;
  const BufferId partial = register_buffer("partial", team.blocks.type, 1, statements);
  statements.push_back(join_team_lanes(team, dim_expr(team.blocks.extent), partial, zero()));
  store_team_result(team, tile, partial, statements);
  return builder_.block(std::move(statements));
}

void Lowering::store_team_result(const Team& team, const ThreadTile& tile, BufferId partial,
                                 std::vector<StmtId>& statements) {
  const Tile one = tile_of(team.blocks.stage, tile.box);
  store_element(team.blocks.stage, one.coordinates, builder_.load(partial, zero()), one.mask, statements);
}

// The thread's lane of a block that begins at an element; what does not exist is the identity.
StmtId Lowering::reduce_lane(const Team& team, const ThreadTile& tile, ExprId first, ExprId length) {
  const Blocks& blocks = team.blocks;
  const ExprId lanes = builder_.integer(team.lanes);
  std::vector<StmtId> statements;
  const BufferId acc = register_buffer("acc", blocks.type, 1, statements);
  statements.push_back(builder_.store(acc, zero(), identity_of(blocks.combine, blocks.type)));
  const Tile one = tile_of(blocks.stage, tile.box);
  const ExprId count = builder_.floor_div(
      builder_.add(builder_.sub(length, team.lane), builder_.integer(team.lanes - 1)), lanes);
  evaluated_.clear();
  const StmtId sum = serial_loop("k", count, [&](ExprId k) {
    const ExprId index = builder_.add(builder_.add(first, builder_.mul(k, lanes)), team.lane);
    const ExprId value = element(blocks, one.coordinates, index, kernel::none);
    return builder_.store(acc, zero(),
                          combined(blocks.combine, blocks.type, builder_.load(acc, zero()), value));
  });
  statements.push_back(where(tile.exists, sum));
  statements.push_back(builder_.store(team.of_lanes, thread_, builder_.load(acc, zero())));
  return builder_.block(std::move(statements));
}

// The lanes that begin with this thread's, in one.
StmtId Lowering::join_team_lanes(const Team& team, ExprId length, BufferId result, ExprId place) {
  const Blocks& blocks = team.blocks;
  std::vector<StmtId> statements;
  const BufferId fold = register_buffer("fold", blocks.type, team.lanes, statements);
  const auto for_lanes = [&](int64_t count, const std::function<StmtId(ExprId)>& body) {
    statements.push_back(serial_loop("lane", builder_.integer(count), body, LoopKind::unrolled));
  };
  for_lanes(team.lanes, [&](ExprId lane) {
    return builder_.store(fold, lane, builder_.load(team.of_lanes, builder_.add(thread_, lane)));
  });
  for (int64_t width = team.lanes / 2; width >= 1; width /= 2)
    for_lanes(width, [&](ExprId lane) {
      const ExprId other = builder_.add(lane, builder_.integer(width));
      return builder_.store(
          fold, lane,
          joined_lanes(blocks, builder_.load(fold, lane), builder_.load(fold, other), other, length));
    });
  statements.push_back(builder_.store(result, place, builder_.load(fold, zero())));
  return builder_.block(std::move(statements));
}

}  // namespace fusewise::schedule
