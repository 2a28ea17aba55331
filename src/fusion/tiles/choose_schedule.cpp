#include "fusion/tiles/choose_schedule.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "fusion/tiles/stored_nodes.h"
#include "fusion/tiles/tree_roots.h"
#include "fusion/tiles/usual_sizes.h"
#include "schedule/footprint.h"
#include "schedule/tree.h"

namespace fusewise::fusion {

using graph::Form;
using graph::Kind;
using graph::NodeId;
using schedule::Extents;
using schedule::LoopChoice;
using schedule::Placement;
using schedule::RegionForms;
using schedule::Schedule;
using schedule::StageChoice;
using schedule::Value;

namespace {

// Of an output that is written across its rows: half of a small first-level cache.
constexpr int64_t lines_of_outputs = 256;

class Chooser : UsualSizes {
 public:
  // `separate`: nodes that must be roots of their own; `most_rows`: of a register tile, for regions whose code would
  // become too long.
  Chooser(const RegionForms& forms, const schedule::Layouts& layouts, const machine::Machine& machine,
          const TileOptions& options, const std::set<NodeId>& separate, int64_t most_rows, bool may_slide)
      : UsualSizes(forms, options.usual),
        forms_(forms),
        layouts_(layouts),
        machine_(machine),
        options_(options),
        separate_(separate),
        most_rows_(most_rows),
        may_slide_(may_slide) {}

  Schedule choose() {
    result_.order = options_.order;
    roots_ = tree_roots(forms_, options_.usual, separate_);
    for (const auto& [root, phase] : roots_) choose_tree(root, phase);
    return std::move(result_);
  }

 private:
  const RegionForms& forms_;
  const schedule::Layouts& layouts_;
  const machine::Machine& machine_;
  const TileOptions& options_;
  const std::set<NodeId>& separate_;
  int64_t most_rows_;
  bool may_slide_;

  // Values whose boxes overlap from one step along an outer axis of the root to the next: they slide along it.
  struct Sliding {
    int axis = -1;               // of the root
    std::map<NodeId, int> dims;  // the dimension of each
  };
  Sliding sliding_;  // of the tree that is being chosen
  Schedule result_;
  std::map<NodeId, int> roots_;  // root node -> phase
  std::map<NodeId, int> index_;  // node -> stage

  // ---------------------------------------------------------------- one tree

  struct Host {
    NodeId contraction = graph::no_node;  // in the stage's register tile (or the stage itself)
    int row_axis = -1, column_axis = -1;  // axes of the stage
    ContractionTile tile;
    int contractions = 0;
    bool depthwise = false;
    int64_t span = 0;   // columns that belong together, 0: all
    int64_t depth = 1;  // elements reduced
  };

  void choose_tree(NodeId root, int phase) {
    std::set<NodeId> others;
    for (const auto& [r, p] : roots_)
      if (r != root) others.insert(r);
    const std::vector<NodeId> cone = tree_cone(forms_, root, others);
    const StoredNodes stored = stored_nodes(forms_, layouts_, cone, options_.usual);
    StageChoice choice;
    choice.node = root;
    choice.phase = phase;
    choice.placement = Placement::memory;
    const Host host = host_of(root, stored);
    set_vector_axis(choice, host);
    root_loops(choice, host, stored, cone);
    const int root_index = add(std::move(choice));
    const auto depends = schedule::root_dependences(forms_, cone);
    attach_registers(root_index, stored);
    std::map<NodeId, int> depth_of;
    for (NodeId node : cone) {
      if (node == root || !stored.stages.count(node) || index_.count(node)) continue;
      attach(root_index, node, stored, depends.at(node), depth_of);
    }
  }

  int add(StageChoice choice) {
    const int index = static_cast<int>(result_.stages.size());
    index_[choice.node] = index;
    std::map<int, int64_t> cut;
    for (LoopChoice& loop : choice.loops) {
      const auto [outer, first] = cut.emplace(loop.axis, loop.tile);
      if (!first) loop.tile = outer->second = std::min(loop.tile, outer->second);
    }
    result_.stages.push_back(std::move(choice));
    return index;
  }

  // The contraction (or window) whose register tile this stage's body is.
  Host host_of(NodeId node, const StoredNodes& stored) const {
    Host host;
    const Form& form = forms_.form(node);
    std::vector<NodeId> held;
    if (form.accumulation && form.accumulation->sequential) held.push_back(node);
    for (const auto& [child, owner] : stored.register_owner)
      if (owner == node) held.push_back(child);
    for (NodeId c : held) {
      const Form& f = forms_.form(c);
      ++host.contractions;
      if (host.contraction != graph::no_node && reduction_elements(c) <= host.depth) continue;
      host.contraction = c;
      host.depth = reduction_elements(c);
      const std::vector<int> own = c == node ? identity(f.parallel_axes()) : stored.host_axes.at(c);
      const RowColumn axes = row_and_column(forms_, layouts_, c, options_.usual);
      host.depthwise = axes.depthwise;
      host.span = axes.span;
      host.row_axis = axes.row >= 0 ? own[static_cast<size_t>(axes.row)] : -1;
      host.column_axis = axes.column >= 0 ? own[static_cast<size_t>(axes.column)] : -1;
    }
    if (host.contraction == graph::no_node) return host;
    const int64_t rows = host.row_axis >= 0 ? extent(node, host.row_axis) : 1;
    const int64_t columns = host.column_axis >= 0 ? extent(node, host.column_axis) : 1;
    host.tile = contraction_tile(machine_, forms_.form(host.contraction).accumulation->accumulator, rows,
                                 columns, host.contractions, panel_of(host.contraction), host.span);
    if (!forms_.form(host.contraction).accumulation->multiply_add)
      host.tile.rows = std::min<int64_t>(host.tile.rows, 4);
    if (host.depthwise) host.tile = {std::min<int64_t>(rows, 7), machine_.lanes(DataType::float32)};
    host.tile.rows = std::min(host.tile.rows, most_rows_);
    if (most_rows_ == 1)
      host.tile.columns = std::min<int64_t>(host.tile.columns, machine_.lanes(DataType::float32));
    return host;
  }

  // The block size in which the vector operand lies along the columns, 0 if it does not.
  int64_t panel_of(NodeId contraction) const {
    const RowColumn axes = row_and_column(forms_, layouts_, contraction, options_.usual);
    if (axes.vector_operand < 0) return 0;
    const graph::Read& read = forms_.form(contraction).reads[static_cast<size_t>(axes.vector_operand)];
    const auto it = layouts_.find(forms_.operand(contraction, read));
    if (it == layouts_.end() || it->second.blocks.empty()) return 0;
    return it->second.blocks.back().block;
  }

  static std::vector<int> identity(int n) {
    std::vector<int> axes(static_cast<size_t>(n));
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }

  void set_vector_axis(StageChoice& choice, const Host& host) const {
    const Form& form = forms_.form(choice.node);
    const int rank = form.parallel_axes();
    choice.storage = identity(rank);
    if (host.contraction != graph::no_node && host.column_axis >= 0) {
      choice.vector_axis = host.column_axis;
    } else if (form.accumulation) {
      const int axis =
          form.reads.empty() ? -1 : contiguous_axis(forms_, layouts_, choice.node, form.reads[0]);
      const bool along = axis >= rank && !form.accumulation->sequential && single_reduction_tail(form, axis);
      choice.vector_axis = along ? axis : innermost_parallel(choice.node, axis);
    } else if (const int axis = input_axis(choice); axis >= 0) {
      choice.vector_axis = axis;
      if (const auto it = layouts_.find({choice.node, 0}); it != layouts_.end())
        choice.storage = it->second.order;  // rows that share lines of the output follow each other
    } else {
      choice.vector_axis = innermost_output_axis(choice);
    }
    if (choice.vector_axis >= 0 && choice.vector_axis < rank) {
      auto& order = choice.storage;
      order.erase(std::find(order.begin(), order.end(), choice.vector_axis));
      order.push_back(choice.vector_axis);
    }
  }

  // Lanes along the reduction: its innermost axis is the contiguous one.
  static bool single_reduction_tail(const Form& form, int axis) {
    return axis == static_cast<int>(form.axes.size()) - 1;
  }

  int innermost_parallel(NodeId node, int preferred) const {
    const int rank = forms_.form(node).parallel_axes();
    if (preferred >= 0 && preferred < rank && extent(node, preferred) > 1) return preferred;
    for (int a = rank; a-- > 0;)
      if (extent(node, a) > 1) return a;
    return rank - 1;
  }

  // The axis along which a root finds its inputs side by side, where vectors are to lie along that.
  int input_axis(const StageChoice& choice) const {
    if (!options_.along_inputs || choice.parent >= 0 || choice.placement != Placement::memory) return -1;
    const int axis = contiguous_axis(forms_, layouts_, choice.node);
    const bool parallel = axis >= 0 && axis < forms_.form(choice.node).parallel_axes();
    return parallel && extent(choice.node, axis) > 1 ? axis : -1;
  }

  int innermost_output_axis(const StageChoice& choice) const {
    const Value value{choice.node, 0};
    const int rank = forms_.form(choice.node).parallel_axes();
    schedule::Layout layout = schedule::row_major(rank);
    if (choice.placement == Placement::memory)
      if (const auto it = layouts_.find(value); it != layouts_.end()) layout = it->second;
    std::vector<int> dims;
    for (const auto& b : layout.blocks) dims.push_back(b.dim);
    std::reverse(dims.begin(), dims.end());
    for (size_t i = layout.order.size(); i-- > 0;) dims.push_back(layout.order[i]);
    if (choice.placement != Placement::memory) {
      const int wanted = contiguous_axis(forms_, layouts_, choice.node);
      if (wanted >= 0 && wanted < rank && extent(choice.node, wanted) > 1) return wanted;
    }
    for (int d : dims)
      if (extent(choice.node, d) > 1) return d;
    return rank - 1;
  }

  // ---------------------------------------------------------------- loops

  // Grid loops first: unit tiles of the outer axes, a tile of the row axis by the capacity of the L2 cache for what the
  // tree keeps in scratch, a tile of the column axis where the tree keeps nothing; then the loops of the body.
  void root_loops(StageChoice& choice, const Host& host, const StoredNodes& stored,
                  const std::vector<NodeId>& cone) {
    const Form& form = forms_.form(choice.node);
    const int rank = form.parallel_axes();
    const bool scratch = std::any_of(stored.stages.begin(), stored.stages.end(), [&](NodeId n) {
      return n != choice.node && !stored.register_owner.count(n);
    });
    int row = host.row_axis >= 0 ? host.row_axis : main_row(choice);
    const int column = choice.vector_axis < rank ? choice.vector_axis : -1;
    std::vector<int> outer;
    for (int a : choice.storage)
      if (a != row && a != column) outer.push_back(a);
    find_sliding(choice.node, stored, cone, outer);
    if (sliding_.axis >= 0) return sliding_loops(choice, host, row, outer);
    const int64_t row_tile = row >= 0 ? choose_row_tile(choice, host, stored, cone, row, outer, scratch) : 1;
    for (int a : outer)
      if (extent(choice.node, a) > 1 || !form.axes[static_cast<size_t>(a)].extent.is_constant())
        choice.loops.push_back({a, outer_tile(choice, host, row, a)});
    if (row >= 0) choice.loops.push_back({row, row_tile});
    if (column >= 0 && !needs_whole(choice.node, column, stored, cone)) {
      const int64_t tile = column_grid_tile(choice, host, column, row_tile, row, outer);
      if (tile > 0) choice.loops.push_back({column, tile});
    }
    choice.grid_loops = static_cast<int>(choice.loops.size());
    body_loops(choice, host, row, scratch && host.contraction == graph::no_node);
    if (host.contraction == graph::no_node) single_rows(choice);
  }

  // The first outer axis along which the boxes of some stored value overlap, and those values.
  void find_sliding(NodeId root, const StoredNodes& stored, const std::vector<NodeId>& cone,
                    const std::vector<int>& outer) {
    sliding_ = {};
    if (!may_slide_) return;
    for (int a : outer) {
      if (extent(root, a) <= 2) continue;
      const auto needed = [&](int64_t along) {
        Extents box;
        for (int i = 0; i < forms_.form(root).parallel_axes(); ++i)
          box.push_back(i == a ? along : std::count(outer.begin(), outer.end(), i) ? 1 : extent(root, i));
        return schedule::needed_extents(forms_, cone, box, options_.usual);
      };
      const auto one = needed(1), two = needed(2);
      for (NodeId n : stored.stages) {
        if (n == root || stored.register_owner.count(n) || forms_.is_output(n) || !one.count(n)) continue;
        for (size_t d = 0; d < one.at(n).size(); ++d) {
          const int64_t step = two.at(n)[d] - one.at(n)[d];
          if (step > 0 && step < one.at(n)[d]) sliding_.dims[n] = static_cast<int>(d);
        }
      }
      if (sliding_.dims.empty()) continue;
      sliding_.axis = a;
      return;
    }
  }

  // Blocks of consecutive steps along the sliding axis, whole in the others that the overlap spans; inside, a serial
  // loop of single steps.
  void sliding_loops(StageChoice& choice, const Host& host, int row, const std::vector<int>& outer) const {
    const int64_t steps = extent(choice.node, sliding_.axis);
    const int64_t blocks = options_.threads > 1 ? 4 * options_.threads : 1;
    const int64_t tile =
        options_.grid_tile > 0 ? options_.grid_tile : std::max<int64_t>(7, (steps + blocks - 1) / blocks);
    for (int a : outer)
      if (a != sliding_.axis && (extent(choice.node, a) > 1 ||
                                 !forms_.form(choice.node).axes[static_cast<size_t>(a)].extent.is_constant()))
        choice.loops.push_back({a, 1});
    choice.loops.push_back({sliding_.axis, std::min(tile, steps)});
    choice.grid_loops = static_cast<int>(choice.loops.size());
    choice.loops.push_back({sliding_.axis, 1});
    body_loops(choice, host, row, host.contraction == graph::no_node);
    if (host.contraction == graph::no_node) single_rows(choice);
  }

  // What a grid tile leaves would be unrolled as one register tile: an elementwise body takes one row at a time, the
  // lanes of a reduction one vector.
  void single_rows(StageChoice& choice) const {
    const Form& form = forms_.form(choice.node);
    std::map<int, int64_t> left;
    for (const LoopChoice& loop : choice.loops) left[loop.axis] = loop.tile;
    for (int a : choice.storage) {
      const auto cut = left.find(a);
      if (cut == left.end() || cut->second <= 1) continue;
      if (a != choice.vector_axis)
        choice.loops.push_back({a, 1});
      else if (form.accumulation)
        choice.loops.push_back({a, machine_.lanes(form.accumulation->accumulator)});
    }
  }

  // Outer axes run one element at a time, but for an elementwise tree of small rows, which takes more at once.
  int64_t outer_tile(const StageChoice& choice, const Host& host, int row, int axis) const {
    if (host.contraction != graph::no_node || row >= 0) return 1;
    const int64_t rest = element_count(choice.node) / std::max<int64_t>(extent(choice.node, axis), 1);
    return std::clamp<int64_t>(8192 / std::max<int64_t>(rest, 1), 1,
                               std::max<int64_t>(extent(choice.node, axis), 1));
  }

  int main_row(const StageChoice& choice) const {
    const int rank = forms_.form(choice.node).parallel_axes();
    for (size_t i = choice.storage.size(); i-- > 0;) {
      const int a = choice.storage[i];
      if (a != (choice.vector_axis < rank ? choice.vector_axis : -1) && extent(choice.node, a) > 1) return a;
    }
    return -1;
  }

  int64_t blocks_wanted() const { return options_.threads > 1 ? 8 * options_.threads : 4; }

  int64_t choose_row_tile(const StageChoice& choice, const Host& host, const StoredNodes& stored,
                          const std::vector<NodeId>& cone, int row, const std::vector<int>& outer,
                          bool scratch) const {
    const int64_t rows = extent(choice.node, row);
    if (options_.grid_tile > 0) return std::min(options_.grid_tile, std::max<int64_t>(rows, 1));
    int64_t others = 1;
    for (int a : outer) others *= extent(choice.node, a);
    const bool contracts = host.contraction != graph::no_node || stored.contracts;
    int64_t tile = 128;
    if (!scratch && host.contraction != graph::no_node)
      tile =
          std::max<int64_t>(host.tile.rows, machine_.l2_bytes / 2 / (4 * std::max<int64_t>(host.depth, 1)));
    if (!contracts) {
      // Stages hang at single rows, so that a tile may have many: enough work for what it costs to begin one.
      const int64_t width =
          choice.vector_axis >= 0 && choice.vector_axis < forms_.form(choice.node).parallel_axes()
              ? extent(choice.node, choice.vector_axis)
              : 1;
      tile = std::max<int64_t>(scratch ? 16 : 1,
                               16384 / std::max<int64_t>(width * reduction_elements(choice.node), 1));
    }
    const int64_t unit = std::max<int64_t>(host.row_axis == row ? host.tile.rows : 1, 1);
    while (scratch && tile > unit &&
           scratch_bytes(choice, stored, cone, row, outer, tile) > machine_.l2_bytes / 2)
      tile /= 2;
    // Enough blocks for the threads, but no tile below the register tile.
    const int64_t wanted = std::max<int64_t>(1, blocks_wanted() / std::max<int64_t>(others, 1));
    if (scratch || host.contraction == graph::no_node)
      tile = std::min(tile, std::max<int64_t>(unit, (rows + wanted - 1) / wanted));
    tile = std::min(tile, rows);
    return std::max<int64_t>(unit, (tile + unit - 1) / unit * unit);
  }

  int64_t scratch_bytes(const StageChoice& choice, const StoredNodes& stored, const std::vector<NodeId>& cone,
                        int row, const std::vector<int>& outer, int64_t tile) const {
    Extents box;
    for (int a = 0; a < forms_.form(choice.node).parallel_axes(); ++a) {
      int64_t e = extent(choice.node, a);
      if (a == row) e = std::min(tile, e);
      if (std::count(outer.begin(), outer.end(), a)) e = 1;
      box.push_back(e);
    }
    int64_t bytes = 0;
    for (const auto& [node, needed] : schedule::needed_extents(forms_, cone, box, options_.usual)) {
      if (node == choice.node || !stored.stages.count(node) || stored.register_owner.count(node)) continue;
      int64_t elements = bytes_of(forms_.graph->type({node, 0}).element);
      for (int64_t e : needed) elements *= e;
      bytes += elements;
    }
    return bytes;
  }

  // Some stage of the tree reduces along this axis of the root (its box does not move with it while the root's does).
  bool needs_whole(NodeId root, int axis, const StoredNodes& stored, const std::vector<NodeId>& cone) const {
    const auto depends = schedule::root_dependences(forms_, cone);
    for (NodeId n : stored.stages) {
      if (n == root || stored.register_owner.count(n)) continue;
      uint64_t bits = 0;
      for (uint64_t b : depends.at(n)) bits |= b;
      if (!(bits >> std::min(axis, 63) & 1)) return true;
    }
    return false;
  }

  int64_t column_grid_tile(const StageChoice& choice, const Host& host, int column, int64_t row_tile, int row,
                           const std::vector<int>& outer) const {
    const int64_t columns = extent(choice.node, column);
    int64_t blocks = row >= 0 ? (extent(choice.node, row) + row_tile - 1) / row_tile : 1;
    for (int a : outer) blocks *= extent(choice.node, a);
    if (host.contraction == graph::no_node) {
      // As many lines of the output as stay in the cache from one row to the next.
      if (options_.along_inputs) return std::min<int64_t>(columns, lines_of_outputs);
      if (blocks >= blocks_wanted() && columns <= 65536) return 0;
      return std::max<int64_t>(machine_.lanes(DataType::float32) * 4,
                               std::min<int64_t>(4096, columns / 8 / 64 * 64));
    }
    const int64_t wanted =
        std::max<int64_t>(1, (blocks_wanted() + blocks - 1) / std::max<int64_t>(blocks, 1));
    const int64_t panels = (columns + host.tile.columns - 1) / host.tile.columns;
    const int64_t per_block = std::max<int64_t>(1, panels / std::min(wanted, panels));
    return per_block * host.tile.columns;
  }

  // Inside a tile: panels of columns, then register rows, so that a panel of the vector operand stays in the cache.
  void body_loops(StageChoice& choice, const Host& host, int row, bool by_rows) const {
    const int rank = forms_.form(choice.node).parallel_axes();
    if (host.contraction != graph::no_node) {
      if (host.column_axis >= 0) choice.loops.push_back({host.column_axis, host.tile.columns});
      for (int a : choice.storage)
        if (a != host.column_axis && a != host.row_axis && (extent(choice.node, a) > 1))
          choice.loops.push_back({a, 1});
      if (host.row_axis >= 0) choice.loops.push_back({host.row_axis, host.tile.rows});
    } else if (by_rows && row >= 0 && row < rank) {
      choice.loops.push_back({row, 1});
    }
  }

  // ---------------------------------------------------------------- attached stages

  void attach_registers(int host_index, const StoredNodes& stored) {
    const NodeId host = result_.stages[static_cast<size_t>(host_index)].node;
    for (const auto& [child, owner] : stored.register_owner) {
      if (owner != host) continue;
      StageChoice choice;
      choice.node = child;
      choice.parent = host_index;
      choice.depth = static_cast<int>(result_.stages[static_cast<size_t>(host_index)].loops.size());
      choice.placement = Placement::registers;
      const std::vector<int>& own = stored.host_axes.at(child);
      const int vector = result_.stages[static_cast<size_t>(host_index)].vector_axis;
      choice.storage = identity(static_cast<int>(own.size()));
      const auto it = std::find(own.begin(), own.end(), vector);
      choice.vector_axis = it == own.end() ? -1 : static_cast<int>(it - own.begin());
      if (choice.vector_axis >= 0) {
        choice.storage.erase(std::find(choice.storage.begin(), choice.storage.end(), choice.vector_axis));
        choice.storage.push_back(choice.vector_axis);
      }
      add(std::move(choice));
    }
  }

  // A stage with a contraction runs once per grid tile; others as deep as their box moves with the loops, so that a
  // row stays in the nearest cache, but never inside a loop that they do not depend on.
  void attach(int root_index, NodeId node, const StoredNodes& stored, const std::vector<uint64_t>& depends,
              std::map<NodeId, int>& depth_of) {
    const StageChoice root = result_.stages[static_cast<size_t>(root_index)];
    StageChoice choice;
    choice.node = node;
    choice.parent = root_index;
    choice.placement = forms_.is_output(node) ? Placement::memory : Placement::scratch;
    uint64_t bits = 0;
    for (uint64_t b : depends) bits |= b;
    const Host host = host_of(node, stored);
    int depth = root.grid_loops;
    if (sliding_.axis >= 0 && (bits >> std::min(sliding_.axis, 63) & 1)) ++depth;
    if (const auto slides = sliding_.dims.find(node); slides != sliding_.dims.end()) {
      choice.reuse = schedule::Reuse::slide;
      choice.slide_axis = slides->second;
    } else if (host.contraction == graph::no_node)
      while (depth < static_cast<int>(root.loops.size()) &&
             (bits >> std::min(root.loops[static_cast<size_t>(depth)].axis, 63) & 1))
        ++depth;
    for (NodeId reader : stored.readers.at(node))
      if (const auto it = depth_of.find(reader); it != depth_of.end()) depth = std::min(depth, it->second);
    if (depth <= root.grid_loops) choice.reuse = schedule::Reuse::keep;
    depth_of[node] = depth;
    choice.depth = depth;
    set_vector_axis(choice, host);
    keep_reader_contiguous(choice, stored);
    body_loops(choice, host, -1, false);
    attach_registers(add(std::move(choice)), stored);
  }

  // A stored operand of a contraction is laid out so that its reader's vectors are contiguous.
  void keep_reader_contiguous(StageChoice& choice, const StoredNodes& stored) const {
    const auto it = stored.wanted_axis.find(choice.node);
    if (it == stored.wanted_axis.end() || it->second < 0) return;
    auto& order = choice.storage;
    order.erase(std::find(order.begin(), order.end(), it->second));
    order.push_back(it->second);
    if (!forms_.form(choice.node).accumulation && !has_registers(choice.node, stored))
      choice.vector_axis = it->second;
  }
  static bool has_registers(NodeId node, const StoredNodes& stored) {
    return std::any_of(stored.register_owner.begin(), stored.register_owner.end(),
                       [&](const auto& entry) { return entry.second == node; });
  }
};

}  // namespace

// A value that the rules place where it cannot be (an output whose tiles would overlap, a reduction that two trees
// read) becomes a root of an earlier phase.
Schedule choose_schedule(const RegionForms& forms, const schedule::Layouts& layouts,
                         const machine::Machine& machine, const TileOptions& options) {
  std::set<NodeId> separate;
  int64_t most_rows = 16;
  bool may_slide = true;
  while (true) {
    Schedule schedule = Chooser(forms, layouts, machine, options, separate, most_rows, may_slide).choose();
    const Verdict verdict = schedule::build_tree(forms, schedule, layouts).verdict;
    if (verdict.allowed()) return schedule;
    if (verdict.code == "slide" && may_slide) {
      may_slide = false;
    } else if (verdict.code == "code-size") {
      if (most_rows == 1) return schedule;
      most_rows /= 2;
    } else if (verdict.nodes.empty() || !separate.insert(verdict.nodes[0]).second) {
      return schedule;
    }
  }
}

}  // namespace fusewise::fusion
