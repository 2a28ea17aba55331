#include "cost/tree_boxes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "graph/form_index.h"
#include "schedule/memory_index.h"

namespace fusewise::cost {

using graph::Form;
using graph::IndexExpr;
using graph::LinearIndex;
using graph::Read;
using schedule::Stage;

double volume(const Extents& extents) {
  double n = 1;
  for (int64_t e : extents) n *= static_cast<double>(e);
  return n;
}

TreeBoxes::TreeBoxes(const schedule::RegionForms& region_forms, const schedule::Tree& loop_tree,
                     const SymbolValues& usual_values)
    : forms(region_forms), tree(loop_tree), usual(usual_values) {
  computed_.resize(tree.stages.size());
  for (int s = stages(); s-- > 0;) {
    std::vector<NodeId>& own = computed_[static_cast<size_t>(s)];
    own.insert(own.end(), stage(s).inlined.begin(), stage(s).inlined.end());
    own.push_back(stage(s).node);
    for (int c : stage(s).children) {
      const std::vector<NodeId>& theirs = computed_[static_cast<size_t>(c)];
      own.insert(own.end(), theirs.begin(), theirs.end());
    }
    std::sort(own.begin(), own.end(), std::greater<>());
    own.erase(std::unique(own.begin(), own.end()), own.end());
  }
  for (int s = 0; s < stages(); ++s) place(s);
}

int TreeBoxes::phase(int s) const {
  while (stage(s).parent >= 0) s = stage(s).parent;
  return stage(s).phase;
}

bool TreeBoxes::passes_on(int s, NodeId node) const {
  for (const schedule::Chain& chain : tree.chains) {
    int inside = s;
    while (inside >= 0 && inside != chain.runner) inside = stage(inside).parent;
    if (inside >= 0 && schedule::only_applies_factor(forms, chain.cascade, node)) return true;
  }
  return false;
}

bool TreeBoxes::combines_parts(int s) const {
  if (stage(s).chain < 0) return false;
  const schedule::Chain& chain = tree.chains[static_cast<size_t>(stage(s).chain)];
  return chain.split() && chain.finisher == s;
}

schedule::ReducedBlocks TreeBoxes::reduced_blocks(int s, int l) const {
  schedule::ReducedBlocks blocks;
  if (stage(s).chain < 0) return blocks;
  const schedule::Chain& chain = tree.chains[static_cast<size_t>(stage(s).chain)];
  const bool runs = chain.runner == s, carried = stage(s).reuse == schedule::Reuse::carry;
  if (!runs && !carried) return blocks;
  const auto& left = reduced_[static_cast<size_t>(chain.runner)];
  for (const schedule::CascadeMember& m : chain.cascade.members)
    if (runs || m.node == stage(s).node)
      blocks[m.node] = {schedule::block_axis(forms.form(m.node)),
                        runs ? left[static_cast<size_t>(l)] : left.back()};
  return blocks;
}

void TreeBoxes::place(int s) {
  const Stage& t = stage(s);
  Extents full;
  double executions = 1;
  int64_t reduced = 1;
  if (const int axis = schedule::block_axis(forms.form(t.node)); axis >= 0)
    reduced = static_cast<int64_t>(extent(t.node, axis));
  reduced_.push_back({reduced});
  const bool runs = t.chain >= 0 && tree.chains[static_cast<size_t>(t.chain)].runner == s;
  depends_.push_back(
      schedule::root_dependences(forms, t.cone, runs ? reduced_blocks(s, 0) : schedule::ReducedBlocks{}));
  if (t.parent < 0) {
    for (int a = 0; a < forms.form(t.node).parallel_axes(); ++a)
      full.push_back(static_cast<int64_t>(extent(t.node, a)));
  } else {
    full = needed(t.parent, t.depth).at(t.node);
    executions = this->executions(t.parent);
    uint64_t moves = 0;
    for (uint64_t bits : dependences(t.parent).at(t.node)) moves |= bits;
    for (int l = 0; l < t.depth; ++l) {
      const double n = trips(t.parent, l);
      const bool moved = moves >> std::min(stage(t.parent).loops[static_cast<size_t>(l)].axis, 63) & 1;
      executions *= moved ? n : std::ceil(n);
    }
    if (t.reuse == schedule::Reuse::slide && t.slide_axis >= 0) {
      // Only what the last iteration did not compute: together the extent of the axis, once per outer iteration.
      const auto axis = static_cast<size_t>(t.slide_axis);
      const double steps = std::ceil(trips(t.parent, t.depth - 1));
      executions *= std::min(1.0, extent(t.node, t.slide_axis) / (static_cast<double>(full[axis]) * steps));
    }
  }
  std::vector<Extents> boxes = {full};
  std::vector<double> all_trips;
  for (const schedule::LoopChoice& loop : t.loops) {
    Extents next = boxes.back();
    const bool cuts_reduction = static_cast<size_t>(loop.axis) >= next.size();
    int64_t& e = cuts_reduction ? reduced : next[static_cast<size_t>(loop.axis)];
    const int64_t tile = std::clamp<int64_t>(loop.tile, 1, std::max<int64_t>(e, 1));
    all_trips.push_back(static_cast<double>(e) / static_cast<double>(tile));
    e = tile;
    reduced_.back().push_back(reduced);
    boxes.push_back(std::move(next));
  }
  boxes_.push_back(std::move(boxes));
  trips_.push_back(std::move(all_trips));
  executions_.push_back(executions);
}

double TreeBoxes::body_executions(int s) const {
  double n = executions(s);
  for (int l = 0; l < loops(s); ++l) n *= trips(s, l);
  return n;
}

const std::map<NodeId, Extents>& TreeBoxes::needed(int s, int l) const {
  const auto [it, fresh] = needed_.try_emplace({s, l});
  if (fresh)
    it->second = schedule::needed_extents(forms, stage(s).cone, box(s, l), usual, reduced_blocks(s, l));
  return it->second;
}

bool TreeBoxes::read_moves(int s, NodeId node, const Read& read, int axis) const {
  const auto it = dependences(s).find(node);
  if (it == dependences(s).end()) return false;
  std::vector<uint64_t> own = it->second;
  if (stage(s).chain >= 0) {
    const schedule::Chain& chain = tree.chains[static_cast<size_t>(stage(s).chain)];
    const int reduced =
        chain.runner == s && chain.cascade.member_of(node) >= 0 ? schedule::block_axis(forms.form(node)) : -1;
    if (reduced >= 0) {
      own.resize(forms.form(node).axes.size(), 0);
      own[static_cast<size_t>(reduced)] = uint64_t{1}
                                          << std::min(schedule::block_axis(forms.form(stage(s).node)), 63);
    }
  }
  const uint64_t bit = uint64_t{1} << std::min(axis, 63);
  const auto in = [&](const LinearIndex& linear) {
    return std::any_of(linear.terms.begin(), linear.terms.end(), [&](const graph::AxisTerm& t) {
      return static_cast<size_t>(t.axis) < own.size() && (own[static_cast<size_t>(t.axis)] & bit);
    });
  };
  return std::any_of(read.index.begin(), read.index.end(), [&](const IndexExpr& e) {
    return e.gathered || in(e.linear) ||
           std::any_of(e.quasi.begin(), e.quasi.end(),
                       [&](const graph::QuasiTerm& q) { return in(q.inner); });
  });
}

double TreeBoxes::extent(NodeId node, int axis) const {
  return static_cast<double>(
      schedule::usual_value(forms.form(node).axes[static_cast<size_t>(axis)].extent, usual));
}

double TreeBoxes::reduction_points(int s) const {
  const schedule::Stage& t = stage(s);
  const double whole = whole_reduction_points(t.node);
  if (t.chain < 0) return whole;
  const schedule::Chain& chain = tree.chains[static_cast<size_t>(t.chain)];
  const double axis = extent(t.node, schedule::block_axis(forms.form(t.node)));
  if (combines_parts(s))
    return std::ceil(
        axis / static_cast<double>(stage(chain.runner).loops[static_cast<size_t>(chain.part_loop)].tile));
  if (t.reuse != schedule::Reuse::carry) return whole;
  return whole * static_cast<double>(reduced_[static_cast<size_t>(chain.runner)].back()) / axis;
}

double TreeBoxes::whole_reduction_points(NodeId node) const {
  double n = 1;
  const Form& form = forms.form(node);
  for (size_t a = 0; a < form.axes.size(); ++a)
    if (form.axes[a].reduction) n *= extent(node, static_cast<int>(a));
  return n;
}

double TreeBoxes::whole_elements(Value value) const {
  double n = 1;
  for (const Dim& d : forms.graph->type(value).shape)
    n *= static_cast<double>(schedule::usual_value(d, usual));
  return n;
}

int64_t TreeBoxes::axis_extent(NodeId node, int axis, const Extents& box,
                               const schedule::ReducedBlocks& blocks) const {
  if (static_cast<size_t>(axis) < box.size()) return box[static_cast<size_t>(axis)];
  const auto block = blocks.find(node);
  if (block != blocks.end() && block->second.axis == axis) return block->second.extent;
  return schedule::usual_value(forms.form(node).axes[static_cast<size_t>(axis)].extent, usual);
}

const LinearIndex* TreeBoxes::address_of(NodeId node, const Read& read) const {
  const auto [it, fresh] = addresses_.try_emplace(&read);
  std::optional<LinearIndex>& address = it->second;
  if (!fresh) return address ? &*address : nullptr;
  const Value operand = forms.operand(node, read);
  const int producer = forms.is_member(operand.node) ? tree.stage_index(forms, operand.node) : -1;
  if (forms.is_member(operand.node) &&
      (producer < 0 || stage(producer).placement != schedule::Placement::memory))
    return nullptr;
  const Shape& shape = forms.graph->type(operand).shape;
  const auto found = tree.layouts.find(operand);
  const schedule::Layout layout =
      found != tree.layouts.end() ? found->second : schedule::row_major(static_cast<int>(shape.size()));
  if (!layout.blocks.empty()) return nullptr;
  std::optional<IndexExpr> composed =
      graph::substitute(schedule::memory_index(layout, shape), read.index, forms.form(node).axes);
  if (!composed || !composed->quasi.empty()) return nullptr;
  address = std::move(composed->linear);
  return &*address;
}

bool divides(const Read& read) {
  return std::any_of(read.index.begin(), read.index.end(),
                     [](const IndexExpr& e) { return !e.quasi.empty(); });
}

Extents TreeBoxes::image(NodeId node, const Read& read, const Extents& box,
                         const schedule::ReducedBlocks& blocks) const {
  const Form& form = forms.form(node);
  const Shape& shape = forms.graph->type(forms.operand(node, read)).shape;
  const auto span = [&](const LinearIndex& linear) {
    int64_t n = 1;
    for (const graph::AxisTerm& t : linear.terms)
      n += std::abs(schedule::usual_value(t.coefficient, usual)) *
           (axis_extent(node, t.axis, box, blocks) - 1);
    return n;
  };
  // A gathered dimension is touched at most once per index read.
  Extents result;
  for (size_t d = 0; d < read.index.size(); ++d) {
    const int64_t whole = std::max<int64_t>(schedule::usual_value(shape[d], usual), 1);
    const IndexExpr& e = read.index[d];
    int64_t n = span(e.linear);
    if (e.gathered) {
      const Extents indices = image(node, form.reads[static_cast<size_t>(*e.gathered)], box, blocks);
      n = static_cast<int64_t>(std::min(volume(indices), static_cast<double>(whole)));
    }
    for (const graph::QuasiTerm& q : e.quasi) {
      const int64_t inner = span(q.inner),
                    divisor = std::max<int64_t>(schedule::usual_value(q.divisor, usual), 1);
      int64_t part = (inner - 1) / divisor + 1;
      if (!q.modulus.is(0)) part = std::min(part, schedule::usual_value(q.modulus, usual));
      n += std::abs(schedule::usual_value(q.coefficient, usual)) * (part - 1);
    }
    result.push_back(std::clamp<int64_t>(n, 1, whole));
  }
  return result;
}

namespace {

constexpr double irregular = std::numeric_limits<double>::quiet_NaN();

double linear_step(const LinearIndex& linear, const std::vector<double>& steps, const SymbolValues& usual) {
  double step = 0;
  for (const graph::AxisTerm& t : linear.terms) {
    const double s = static_cast<size_t>(t.axis) < steps.size() ? steps[static_cast<size_t>(t.axis)] : 0;
    if (s == 0) continue;
    const auto c = t.coefficient.constant();
    step +=
        (c ? static_cast<double>(*c) : static_cast<double>(schedule::usual_value(t.coefficient, usual))) * s;
  }
  return step;
}

// What stage `s` computes at once along its vectors: the lanes of one, and all of its register tile.
struct Together {
  int lanes = 1;
  int64_t tile = 1;
  bool within(const Dim& d) const { return d.is_multiple_of(lanes) || d.is_multiple_of(tile); }
};

Together together(const TreeBoxes& boxes, int s, int lanes) {
  const auto axis = static_cast<size_t>(boxes.stage(s).vector_axis);
  return {lanes, axis < boxes.tile(s).size() ? std::max<int64_t>(boxes.tile(s)[axis], 1) : lanes};
}

// The step along one dimension of a read. Division and remainder by a multiple of what is computed at once keep it
// together.
double index_step(const IndexExpr& e, const std::vector<double>& steps,
                  const std::map<int, bool>& index_moves, const SymbolValues& usual, Together at_once) {
  double step = linear_step(e.linear, steps, usual);
  for (const graph::QuasiTerm& q : e.quasi) {
    const double inner = linear_step(q.inner, steps, usual);
    if (inner == 0) continue;
    const bool aligned_divisor = q.divisor.is(1) || at_once.within(q.divisor);
    const bool aligned_modulus = q.modulus.is(0) || at_once.within(q.modulus);
    if (inner != 1 || !aligned_divisor || !aligned_modulus) return irregular;
    if (q.divisor.is(1)) step += static_cast<double>(schedule::usual_value(q.coefficient, usual));
  }
  if (e.gathered) {
    const auto it = index_moves.find(*e.gathered);
    if (it != index_moves.end() && it->second) return irregular;
  }
  return step;
}

std::vector<double> read_steps(const TreeBoxes& boxes, NodeId node, const Read& read,
                               const std::vector<double>& steps, Together at_once) {
  const Form& form = boxes.forms.form(node);
  std::map<int, bool> index_moves;
  for (const IndexExpr& e : read.index)
    if (e.gathered) {
      bool moves = false;
      for (const IndexExpr& i : form.reads[static_cast<size_t>(*e.gathered)].index) {
        const double s = index_step(i, steps, {}, boxes.usual, at_once);
        moves = moves || std::isnan(s) || s != 0;
      }
      index_moves[*e.gathered] = moves;
    }
  std::vector<double> result;
  for (const IndexExpr& e : read.index)
    result.push_back(index_step(e, steps, index_moves, boxes.usual, at_once));
  return result;
}

}  // namespace

std::map<NodeId, std::vector<double>> lane_steps(const TreeBoxes& boxes, int s, int lanes) {
  const Stage& stage = boxes.stage(s);
  std::map<NodeId, std::vector<double>> steps;
  std::vector<double>& own = steps[stage.node];
  own.assign(boxes.forms.form(stage.node).axes.size(), 0);
  if (stage.vector_axis >= 0) own[static_cast<size_t>(stage.vector_axis)] = 1;
  std::vector<NodeId> order = {stage.node};
  order.insert(order.end(), stage.inlined.rbegin(), stage.inlined.rend());
  for (NodeId node : order) {
    const auto it = steps.find(node);
    if (it == steps.end()) continue;
    const std::vector<double> mine = it->second;
    for (const Read& read : boxes.forms.form(node).reads) {
      const NodeId producer = boxes.forms.operand(node, read).node;
      if (!std::binary_search(stage.inlined.begin(), stage.inlined.end(), producer)) continue;
      std::vector<double> found = read_steps(boxes, node, read, mine, together(boxes, s, lanes));
      const auto [place, fresh] = steps.emplace(producer, found);
      if (fresh) continue;
      for (size_t d = 0; d < found.size(); ++d)
        if (place->second[d] != found[d] && std::abs(place->second[d]) <= std::abs(found[d]))
          place->second[d] = found[d];
    }
  }
  return steps;
}

namespace {

Access access_at(double step) {
  if (step == 0) return Access::uniform;
  if (step == 1) return Access::contiguous;
  if (std::isnan(step)) return Access::irregular;
  return step == -1 ? Access::reversed : Access::scattered;
}

bool is_strided(const TreeBoxes& boxes, Value value) {
  const auto layout = boxes.tree.layouts.find(value);
  return layout != boxes.tree.layouts.end() && !layout->second.strides.empty();
}

}  // namespace

double memory_step(const TreeBoxes& boxes, NodeId node, const Read& read,
                   const std::map<NodeId, std::vector<double>>& steps) {
  const auto it = steps.find(node);
  const LinearIndex* address = boxes.address_of(node, read);
  return it == steps.end() || !address ? irregular : linear_step(*address, it->second, boxes.usual);
}

Access access_of(const TreeBoxes& boxes, int s, NodeId node, const Read& read,
                 const std::map<NodeId, std::vector<double>>& steps, int lanes) {
  const auto it = steps.find(node);
  if (it == steps.end() || boxes.stage(s).vector_axis < 0) return Access::uniform;
  const Value operand = boxes.forms.operand(node, read);
  if ((is_strided(boxes, operand) || divides(read)) && boxes.address_of(node, read))
    return access_at(memory_step(boxes, node, read, steps));
  const std::vector<double> found = read_steps(boxes, node, read, it->second, together(boxes, s, lanes));
  const Shape& shape = boxes.forms.graph->type(operand).shape;
  int contiguous = -1;
  const int producer =
      boxes.forms.is_member(operand.node) ? boxes.tree.stage_index(boxes.forms, operand.node) : -1;
  if (producer >= 0 && boxes.stage(producer).placement != schedule::Placement::memory) {
    if (!boxes.stage(producer).storage.empty()) contiguous = boxes.stage(producer).storage.back();
  } else {
    const auto layout = boxes.tree.layouts.find(operand);
    if (layout != boxes.tree.layouts.end())
      contiguous = layout->second.innermost();
    else
      for (size_t d = shape.size(); d-- > 0 && contiguous < 0;)
        if (!shape[d].is(1)) contiguous = static_cast<int>(d);
  }
  Access access = Access::uniform;
  for (size_t d = 0; d < found.size(); ++d) {
    if (found[d] == 0) continue;
    if (std::isnan(found[d])) return Access::irregular;
    const bool inner = static_cast<int>(d) == contiguous;
    if (access != Access::uniform || !inner || std::abs(found[d]) != 1)
      access = Access::scattered;
    else
      access = found[d] == 1 ? Access::contiguous : Access::reversed;
  }
  return access;
}

}  // namespace fusewise::cost
