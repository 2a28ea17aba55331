// The state and the parts of lowering one tree. Split over files by what they emit: boxes_of_tree.cpp (which box
// every producer needs), evaluate.cpp (a value at given coordinates), stages.cpp (loop nests and elementwise
// bodies), accumulate.cpp (contractions and windows), blocked_reduction.cpp (reductions in lanes and blocks),
// running_state.cpp (reductions over blocks of their axis, and in parts), threads.cpp (what the threads of a group
// compute together), team_reduction.cpp (reductions by several threads each).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "schedule/lower.h"
#include "schedule/lower/boxes.h"
#include "schedule/lower/emitter.h"
#include "schedule/tree.h"

namespace fusewise::schedule {

using graph::Form;
using graph::Guard;
using graph::IndexExpr;
using graph::LinearIndex;
using graph::Read;

// Guards of reading maps that hold everywhere in the part of the nest that is being emitted.
using KnownGuards = std::set<std::pair<NodeId, const Guard*>>;

class Lowering : Emitter {
 public:
  Lowering(const RegionForms& forms, const Tree& tree, const LowerOptions& options);
  LoweredKernel run();

 private:
  // Where a stage's result lies: element index = sum of (coordinate - low) * stride, the ring dimension modulo its
  // size. Arguments are addressed by layout instead.
  struct Storage {
    BufferId buffer = kernel::none;
    std::vector<ExprId> low, stride;
    int ring_dim = -1;
    ExprId ring = kernel::none;
  };
  using Coordinates = std::vector<ExprId>;
  using Continuation = std::function<StmtId(const Box&, const KnownGuards&)>;

  // --- evaluate.cpp
  ExprId linear_expr(const LinearIndex& index, const Coordinates& axes);
  ExprId index_expr(NodeId node, const IndexExpr& index, const Coordinates& axes, ExprId mask);
  ExprId guard_expr(NodeId node, const Guard& guard, const Coordinates& axes, ExprId mask);
  ExprId read_value(NodeId node, const Read& read, const Coordinates& axes, ExprId mask);
  ExprId value_at(Value value, const Coordinates& coordinates, ExprId mask);
  // The body of an elementwise form at these coordinates.
  ExprId evaluate(NodeId node, const Coordinates& axes, ExprId mask);
  ExprId body_value(NodeId node, int position, const Coordinates& axes, ExprId mask,
                    std::map<int, ExprId>& done);
  ExprId argument_address(Value value, const Coordinates& coordinates);
  ExprId stage_address(int stage, const Coordinates& coordinates);
  ExprId masked_load(BufferId buffer, ExprId address, ExprId mask);
  struct Edge;
  bool varies(Edge& edge, ExprId expr);
  ExprId both(ExprId a, ExprId b);

  // --- boxes_of_tree.cpp
  std::map<NodeId, Box> needed_boxes(int stage, const Box& box);
  Box image(NodeId consumer, const Read& read, const Box& box);
  BoxDim image_along(NodeId consumer, const Read& read, size_t dim, const Box& box, const Dim& domain);
  Extent domain_extent(const Dim& dim);

  // --- stages.cpp
  struct Grid {
    ExprId blocks = kernel::none;
    std::vector<ExprId> trips, reach;  // per grid loop: steps, and the greatest extent that it cuts
  };
  Box grid_box(const Stage& root);
  Grid grid_of(int stage);
  StmtId emit_phase(const std::vector<int>& roots);
  StmtId emit_block(int stage, const Grid& grid, ExprId block);
  StmtId emit_depth(int stage, int depth, const Box& box, const KnownGuards& known);
  void emit_attached(int stage, int depth, const Box& box, const KnownGuards& known, bool registers,
                     std::vector<StmtId>& statements);
  StmtId emit_innermost(int stage, const Box& box, const KnownGuards& known);
  Box whole_vectors(int stage, const Box& box);
  StmtId emit_loop(int stage, int depth, const Box& box, const KnownGuards& known);
  StmtId emit_child(int child, const Box& needed);
  StmtId emit_body(int stage, const Box& box, const KnownGuards& known);
  StmtId emit_map_body(int stage, const Box& box);
  void store_element(int stage, const Coordinates& coordinates, ExprId value, ExprId mask,
                     std::vector<StmtId>& statements);
  void place(int stage, const Box& box, std::vector<StmtId>& statements);
  // A dense box in the stage's storage order, and its size; without a buffer.
  Storage dense(int stage, const Box& box, ExprId& size);
  ExprId address_in(const Storage& storage, const Coordinates& coordinates);
  void place_rings(int stage, int depth, const Box& box, std::vector<StmtId>& statements);
  StmtId loop_pieces(int stage, const Box& box, int axis, int64_t tile, bool vector, const KnownGuards& known,
                     const Continuation& next);
  // Runs `next` over steps of `tile` along `axis`; `last`: nothing cuts the axis further, so every step but the tail
  // has an exact extent.
  StmtId loop_over(const Box& box, int axis, int64_t tile, bool last, bool vector, const KnownGuards& known,
                   const Continuation& next);
  StmtId exact_steps(const Box& box, int axis, int64_t tile, bool vector, const KnownGuards& known,
                     const Continuation& next);
  StmtId row_tail(const Box& box, int axis, int64_t tile, ExprId start, ExprId rest, const KnownGuards& known,
                  const Continuation& next);
  StmtId vector_tail(const Box& box, int axis, int64_t tile, ExprId start, ExprId rest,
                     const KnownGuards& known, const Continuation& next);
  // The next axis whose remaining extent the innermost body cannot take, with the tile to cut it by; -1 if none.
  std::pair<int, int64_t> unfinished_axis(int stage, const Box& box) const;
  int64_t body_limit(const Stage& stage, int axis) const;

  // The register tile of a body: loops over its axes, and the element's place in a dense tile.
  struct Tile {
    std::vector<VariableId> variables;  // per axis, none where the extent is 1
    Coordinates coordinates;
    std::vector<int> order;  // axes, outermost first
    std::vector<int64_t> extents;
    int64_t elements = 1;
    ExprId position = kernel::none;
    int vector_axis = -1;
    ExprId mask = kernel::none;  // of the vector axis, none: all
  };
  Tile tile_of(int stage, const Box& box);
  StmtId over_tile(const Tile& tile, StmtId body, bool rolled = false);

  // --- accumulate.cpp
  StmtId emit_accumulate_body(int stage, const Box& box, const KnownGuards& known);
  // The accumulators' store of the identity, or of the running value inside a loop over blocks; the reduction (its first
  // axis over a part only, if given); and the store of what they hold in the end, in the result or the running state.
  StmtId begin_accumulation(int index, const Box& box, BufferId accumulators);
  using Part = std::pair<ExprId, ExprId>;  // from, to
  StmtId accumulate(int index, const Box& box, const KnownGuards& known, BufferId accumulators,
                    const std::optional<Part>& part);
  StmtId finish_accumulation(int index, const Box& box, BufferId accumulators);
  StmtId reduction_nest(int index, const Box& box, const Tile& tile, BufferId accumulators, Coordinates& axes,
                        int reduction, std::vector<const Guard*>& open, const std::optional<Part>& part);
  StmtId update(int stage, const Box& box, const Tile& tile, BufferId accumulators, const Coordinates& axes,
                const std::vector<const Guard*>& open);
  BufferId register_buffer(const char* name, DataType type, int64_t elements,
                           std::vector<StmtId>& statements);
  bool uniform(const Guard& guard, const Box& box, const Form& form) const;
  bool settled(const Guard& guard, const Box& box, const Tile& tile, const Form& form) const;
  StmtId loop_interior(int stage, const Box& box, int axis, int64_t tile, bool vector,
                       const KnownGuards& known, const Continuation& next);
  std::optional<StmtId> border_tiles(const Box& box, int axis, int64_t tile, ExprId begin, ExprId end,
                                     const KnownGuards& known, const KnownGuards& inside,
                                     const Continuation& next);
  std::vector<int> stages_of_body(int stage) const;
  std::vector<int> axes_in_body(int stage, NodeId node) const;
  std::optional<std::pair<ExprId, ExprId>> guard_range(const Form& form, const Guard& guard,
                                                       const std::vector<int>& own, int axis);

  // --- running_state.cpp
  // The state of one member while its chain runs: the raw value, for a reference what it stands for, and what brings
  // this member's accumulator to the reference's last change. All lie in boxes of the member, the step in one of the
  // reference.
  struct MemberState {
    Storage box;
    BufferId state = kernel::none, reference = kernel::none, step = kernel::none;
  };
  struct Running {
    std::vector<MemberState> members;
    BoxDim range, block;  // of the block axis: the part that is run over, and the block at hand
    bool active = false;  // inside the loop over blocks
  };
  enum class Pass : uint8_t { reduce, clear, store_part, finish };
  StmtId emit_blocks(int stage, int depth, const Box& box);
  void place_states(int chain, const std::vector<Box>& boxes, std::vector<StmtId>& statements);
  StmtId run_pass(Pass pass, int stage, const Box& box);
  // Places what a chain carries where its finisher is; for a split one, finishes it.
  void begin_finish(int finisher, const std::map<NodeId, Box>& needed, std::vector<StmtId>& statements);
  StmtId emit_state_pass(int stage, const Box& box);
  StmtId emit_finish(int stage, const Box& box);
  bool finishes_parts(int stage) const;
  bool runs(int stage) const;
  int member_at(int stage) const;
  // The running value of the member against the reference at hand, before this block.
  ExprId running_value(int stage, const Coordinates& coordinates);
  void update_state(int stage, const Coordinates& coordinates, ExprId value, ExprId mask,
                    std::vector<StmtId>& statements);
  ExprId part_value(int chain, int member, ExprId part, const Coordinates& coordinates);
  ExprId finished(int chain, int member, const Coordinates& coordinates, ExprId value);
  ExprId as_count(DataType type, ExprId elements);
  Coordinates mapped(const ConstantCoordinates& at, const Coordinates& coordinates);
  // What a value reads as inside a loop over blocks, none: as it is.
  ExprId overridden(Value value, const Coordinates& coordinates, ExprId mask);
  std::optional<Coordinates> coordinates_at(NodeId from, const Coordinates& coordinates, NodeId to,
                                            ExprId mask);
  // Elements per index of the block axis.
  Dim elements_per_index(const Form& form) const;

  // --- blocked_reduction.cpp
  struct Blocks {
    int stage = 0;
    Box box;
    DataType type = DataType::undefined;
    Combine combine = Combine::sum;
    ReductionOrder order;
    Dim extent;            // elements reduced
    int64_t elements = 1;  // of the register tile
    bool along_reduction = false;
  };
  // The binary counter of completed blocks: results by level.
  struct Counter {
    BufferId stack = kernel::none;
    int64_t levels = 0;
    ExprId count = kernel::none;  // of blocks
  };
  StmtId emit_blocked_reduction(int stage, const Box& box);
  Blocks blocks_of(int stage, const Box& box);
  bool is_one_block(const Blocks& blocks);
  StmtId parallel_lanes(const Blocks& blocks, BufferId result, ExprId base, ExprId length);
  StmtId vector_lanes(const Blocks& blocks, BufferId result, ExprId base, ExprId length);
  // Lane `mine` of the tree takes lane number `other`, if the block has such a lane.
  ExprId joined_lanes(const Blocks& blocks, ExprId mine, ExprId theirs, ExprId other, ExprId length);
  StmtId merge_blocks(const Blocks& blocks, BufferId result,
                      const std::function<StmtId(ExprId, ExprId)>& one_block);
  // `partial`: the result of the block of this number, or of all in the end.
  Counter place_counter(const Blocks& blocks, std::vector<StmtId>& statements);
  StmtId over_level(const Blocks& blocks, ExprId level, const std::function<StmtId(ExprId, ExprId)>& body);
  StmtId merge_level(const Blocks& blocks, const Counter& counter, BufferId partial, ExprId level);
  StmtId count_block(const Blocks& blocks, const Counter& counter, BufferId partial, ExprId number);
  StmtId merge_counted(const Blocks& blocks, const Counter& counter, BufferId partial);
  ExprId element(const Blocks& blocks, const Coordinates& parallel, ExprId index, ExprId mask);

  // --- threads.cpp
  struct ThreadTile {
    Box box;
    ExprId exists = kernel::none;  // none: always
  };
  StmtId emit_group(int index, const Box& box);
  StmtId emit_group_depth(int index, int depth, const Box& box);
  void emit_group_attached(int index, int depth, const Box& box, std::vector<StmtId>& statements);
  StmtId emit_threads(int index, const Box& box);
  StmtId emit_thread(int index, const ThreadTile& tile);
  StmtId emit_in_steps(int index, const Box& box, const std::vector<int>& reductions);
  StmtId reduction_steps(int index, const Box& box, const ThreadTile& tile, const Box& own,
                         BufferId accumulators);
  std::vector<ExprId> thread_trips(int index, const Box& box);
  ThreadTile thread_tile(int index, const Box& box, const std::vector<ExprId>& trips, ExprId number);
  StmtId where(ExprId condition, StmtId body);
  std::vector<int> steps_of(int index) const;
  bool reads_any(int index, const std::vector<int>& stages) const;

  // --- team_reduction.cpp
  struct Team {
    Blocks blocks;
    int64_t lanes, slots, teams;   // of a block; blocks at a time; teams of a group
    ExprId lane, slot, number;     // the thread's: its lane, its block of those at a time, its team
    BufferId of_lanes, of_blocks;  // shared: results by thread, and by slot of a team
    ExprId is_first;               // the first thread of a team keeps its results
    bool counts = false;           // there may be several blocks
    bool is_repeated = true;       // there are several passes
  };
  StmtId emit_team_reduction(int index, const Box& box);
  Team team_of(int index, const Box& box);
  StmtId team_pass(const Team& team, const ThreadTile& tile);
  StmtId keep_single_block(const Team& team, const ThreadTile& tile);
  void store_team_result(const Team& team, const ThreadTile& tile, BufferId partial,
                         std::vector<StmtId>& statements);
  StmtId reduce_lane(const Team& team, const ThreadTile& tile, ExprId first, ExprId length);
  StmtId join_team_lanes(const Team& team, ExprId length, BufferId result, ExprId place);
  BufferId shared_buffer(const char* name, DataType type, int64_t elements);

  const Stage& stage(int index) const { return tree_.stages[static_cast<size_t>(index)]; }
  const Shape& shape_of(NodeId node) const { return forms_.graph->type({node, 0}).shape; }
  DataType element_of(NodeId node) const { return forms_.graph->type({node, 0}).element; }

  const RegionForms& forms_;
  const Tree& tree_;
  LowerOptions options_;
  std::vector<std::optional<Storage>> storage_;  // per stage, while it is visible
  std::vector<VariableId> ring_done_;            // per sliding stage: the first coordinate not computed yet
  // A loop around what is being evaluated some of whose iterations stand for elements that do not exist: lanes of a
  // vector's tail, or the elements of a thread's tile that stick out.
  struct Edge {
    VariableId variable;
    ExprId mask;                              // holds where the element exists
    std::unordered_map<ExprId, bool> varies;  // memo: whether an expression varies with the variable
  };
  std::vector<Edge> edges_;
  ExprId thread_ = kernel::none;            // the thread's number in its group
  std::vector<StmtId> shared_allocations_;  // of the group
  std::map<int, Running> running_;          // per chain, while its loop is emitted
  std::map<NodeId, BoxDim> block_of_;       // of members inside their loop: the block of their block axis
  std::map<int, std::pair<BoxDim, ExprId>> part_of_;  // per partial stage: the part at hand and its number
  std::vector<std::vector<BufferId>> partials_;       // per chain and member
  Pass pass_ = Pass::reduce;
  std::map<std::tuple<NodeId, Coordinates, ExprId>, ExprId> evaluated_;
};

}  // namespace fusewise::schedule
