// From the last node to the first: what has a place asks its operands to lie there. Then, from the first to the last,
// views that nobody asked are read where their operands lie.
#include <algorithm>

#include "fusion/assemblies.h"
#include "graph/form_index.h"
#include "schedule/memory_index.h"

namespace fusewise::fusion {

using graph::Axis;
using graph::Graph;
using graph::IndexExpr;
using graph::Node;
using graph::NodeId;
using graph::Value;
using schedule::Layout;
using schedule::Layouts;

namespace {

// Views of views of ...: longer chains are cut.
constexpr size_t longest_chain = 32;

bool same_order(const Layout& a, const Layout& b) { return a.order == b.order && a.blocks == b.blocks; }

size_t axis_of(const Node& whole) {
  return static_cast<size_t>(graph::attributes<graph::ConcatAttributes>(whole).axis);
}

std::vector<Axis> axes_of(const Shape& shape) {
  std::vector<Axis> axes;
  for (const Dim& extent : shape) axes.push_back({extent, false});
  return axes;
}

IndexExpr axis_index(int axis) {
  IndexExpr index;
  graph::add_term(index.linear, axis);
  return index;
}

// For a view that has all of its operand's elements once: the index of its value at which each of them is, over the
// operand's dimensions.
std::optional<std::vector<IndexExpr>> inverse_of(const Graph& graph, NodeId view) {
  const Node& node = graph.node(view);
  const Shape &from = graph.type(node.operands[0]).shape, &to = node.results[0].shape;
  std::vector<IndexExpr> index(to.size());
  switch (node.op) {
    case graph::Op::reshape:
      return graph::reshape_index(to, axes_of(from));
    case graph::Op::transpose: {
      const auto& permutation = graph::attributes<graph::TransposeAttributes>(node).permutation;
      for (size_t d = 0; d < to.size(); ++d) index[d] = axis_index(permutation[d]);
      return index;
    }
    case graph::Op::broadcast: {
      const auto& dims = graph::attributes<graph::BroadcastAttributes>(node).dims;
      std::vector<bool> kept(to.size(), false);
      for (size_t d = 0; d < from.size(); ++d) {
        const auto place = static_cast<size_t>(dims[d]);
        if (from[d] != to[place]) return std::nullopt;
        index[place] = axis_index(static_cast<int>(d));
        kept[place] = true;
      }
      for (size_t d = 0; d < to.size(); ++d)
        if (!kept[d] && !to[d].is(1)) return std::nullopt;
      return index;
    }
    default:
      return std::nullopt;
  }
}

// By node: computed or read by one that stands alone, which knows no strides.
std::vector<bool> wanted_in_one_piece(const Graph& graph) {
  std::vector<bool> wanted(graph.size(), false);
  for (NodeId n = 0; n < graph.size(); ++n) {
    if (!graph::stands_alone(graph, n) && graph.node(n).op != graph::Op::result) continue;
    wanted[n] = true;
    for (Value v : graph.node(n).operands) wanted[v.node] = true;
  }
  return wanted;
}

class Placer {
 public:
  Placer(const Graph& graph, const std::set<NodeId>& nodes, const std::vector<bool>& constant,
         const Layouts& layouts, const std::vector<Append>& appends)
      : graph_(graph),
        constant_(constant),
        layouts_(layouts),
        appends_(appends),
        users_(graph::users(graph)),
        in_one_piece_(wanted_in_one_piece(graph)),
        is_output_(graph.size(), false) {
    const std::vector<bool> late = sized_in_run(graph);
    for (NodeId node : nodes)
      if (!constant[node] && can_be_in_place(graph, late, node))
        (is_concatenation(node) ? result_.wholes : result_.views).insert(node);
    for (const graph::GraphOutput& output : graph.outputs) is_output_[output.value.node] = true;
  }

  Assemblies place() {
    std::set<NodeId> nodes = result_.wholes;
    nodes.insert(result_.views.begin(), result_.views.end());
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
      is_concatenation(*node) ? place_whole(*node) : place_operand(*node);
    for (NodeId node : nodes)
      if (result_.views.count(node)) place_view(node);
    std::stable_sort(result_.copies.begin(), result_.copies.end(),
                     [](const PartCopy& a, const PartCopy& b) { return a.whole < b.whole; });
    return std::move(result_);
  }

 private:
  const Graph& graph_;
  const std::vector<bool>& constant_;
  const Layouts& layouts_;
  const std::vector<Append>& appends_;
  const std::vector<std::vector<NodeId>> users_;
  const std::vector<bool> in_one_piece_;
  std::vector<bool> is_output_;
  std::set<NodeId> hosts_;  // views that are arrays of their own, in which their operands lie
  Assemblies result_;

  bool is_concatenation(NodeId node) const { return graph_.node(node).op == graph::Op::concat; }
  const Shape& shape(Value v) const { return graph_.type(v).shape; }
  Value operand_of(NodeId view) const { return graph_.node(view).operands[0]; }
  Layout layout_of(Value v) const {
    const auto it = layouts_.find(v);
    return it != layouts_.end() ? it->second : schedule::row_major(graph_.type(v).rank());
  }
  void refuse(NodeId node, Refused why) {
    result_.wholes.erase(node);
    result_.views.erase(node);
    result_.refused[node] = std::move(why);
  }

  // Where the value lies as far as is known: inside of another one or by itself. Nothing for blocks.
  std::optional<Place> place_of(Value v) const {
    if (const auto it = result_.places.find(v); it != result_.places.end()) return it->second;
    const Layout layout = layout_of(v);
    if (!layout.blocks.empty()) return std::nullopt;
    return Place{v, schedule::memory_index(layout, shape(v))};
  }

  // ---------------------------------------------------------------- concatenations

  void place_whole(NodeId whole) {
    const Value value{whole, 0};
    if (!result_.places.count(value) && !is_output_[whole] && !in_one_piece_[whole])
      if (const auto found = range_of_parts(whole)) result_.places[value] = *found;
    const std::optional<Place> own = place_of(value);
    if (!own) return refuse(whole, {"part-layout", "it lies in blocks"});
    Dim at = 0;
    for (Value part : graph_.node(whole).operands) {
      PartCopy copy{part, whole, part_place(whole, *own, part, at), {}, {}};
      at = at + shape(part)[axis_of(graph_.node(whole))];
      std::optional<Refused> refused;
      if (grows(value, part))
        refused = {"part-grown",
                   "the caller keeps it in the same array; it is copied only where that is not so"};
      else if (!result_.views.count(part.node) && own->memory.quasi.empty() && own->host == value &&
               !same_order(layout_of(part), layout_of(value)))
        refused = {"part-layout", "it lies in another layout than the whole"};
      else
        refused = lay(part, copy.to);
      if (!refused) continue;
      // A view's kernel writes what cannot be copied in rows, where it can be sure of the strides.
      if (result_.views.count(part.node) && schedule::is_strided(copy.to.memory) && !in_rows(part, copy.to) &&
          !owned_elsewhere(part) && !result_.places.count(part)) {
        refuse(part.node, *refused);
        result_.places[part] = copy.to;
        continue;
      }
      copy.reason = refused->reason;
      copy.detail = refused->detail;
      result_.copies.push_back(std::move(copy));
    }
  }

  Place part_place(NodeId whole, const Place& own, Value part, const Dim& at) const {
    std::vector<IndexExpr> index;
    for (size_t d = 0; d < shape(part).size(); ++d) index.push_back(axis_index(static_cast<int>(d)));
    index[axis_of(graph_.node(whole))].linear.constant = at;
    // Both are free of data and no division lies inside of another: an index plus a number.
    return {own.host, graph::substitute(own.memory, index, axes_of(shape(part))).value()};
  }

  bool grows(Value whole, Value part) const {
    return std::any_of(appends_.begin(), appends_.end(),
                       [&](const Append& append) { return append.whole == whole && append.past == part; });
  }

  // Copied a row at a time: both have one innermost dimension.
  bool in_rows(Value part, const Place& to) const {
    const Layout target = schedule::with_strides(
        layout_of(part).order, schedule::strides_of(to.memory, shape(part).size()), shape(part));
    return target.innermost() >= 0 || shape(part).empty();
  }

  // Where all parts lie one after the other inside one host already, the whole is that range of it.
  std::optional<Place> range_of_parts(NodeId whole) const {
    const size_t axis = axis_of(graph_.node(whole));
    std::optional<Place> range;
    Dim at = 0;
    for (Value part : graph_.node(whole).operands) {
      const auto it = result_.places.find(part);
      if (it == result_.places.end() || !schedule::is_strided(it->second.memory)) return std::nullopt;
      Place here = it->second;
      const std::vector<Dim> strides = schedule::strides_of(here.memory, shape(part).size());
      here.memory.linear.constant = here.memory.linear.constant - at * strides[axis];
      if (range && here != *range) return std::nullopt;
      range = std::move(here);
      at = at + shape(part)[axis];
    }
    if (!range || range->host.node == whole) return std::nullopt;
    const Value value{whole, 0};
    const Layout own = layout_of(value),
                 there = schedule::with_strides(
                     own.order, schedule::strides_of(range->memory, shape(value).size()), shape(value));
    const Layout alone = schedule::with_strides(own.order, strides_of(own, shape(value)), shape(value));
    if (!own.blocks.empty() || !same_order(alone, there)) return std::nullopt;
    return range;
  }

  // ---------------------------------------------------------------- views

  // Where the view's elements are if it is read in the place of its operand, through further views without a place.
  std::optional<Place> place_through(NodeId view) const {
    std::vector<NodeId> chain = {view};
    for (Value v = operand_of(view); result_.views.count(v.node) && !hosts_.count(v.node) &&
                                     !result_.places.count(v) && chain.size() < longest_chain;
         v = operand_of(v.node))
      chain.push_back(v.node);
    std::optional<Place> place = place_of(operand_of(chain.back()));
    for (size_t i = chain.size(); place && i-- > 0;) {
      const graph::Form form = graph::form_of(graph_, chain[i]);
      std::optional<IndexExpr> memory = graph::substitute(place->memory, form.reads[0].index, form.axes);
      if (!memory) return std::nullopt;
      place->memory = std::move(*memory);
    }
    return place;
  }

  // A view that has a place hands it on; one that cannot be read in its operand's place, or that is an output, asks the
  // operand to lie in its own.
  void place_operand(NodeId view) {
    const Value value{view, 0};
    if (!result_.views.count(view) || result_.places.count(value)) return;
    const std::optional<Place> there = place_through(view);
    if (there && can_lie(view, *there)) return;
    const std::optional<Place> own = place_of(value);
    if (!own) return refuse(view, {"view-strides", "it lies in blocks"});
    const auto inverse = inverse_of(graph_, view);
    if (!inverse)
      return refuse(
          view,
          is_output_[view]
              ? Refused{"view-output", "it is an output of the model, which the caller gets in one piece"}
              : Refused{"view-strides", "its elements do not lie at even distances in its operand"});
    hosts_.insert(view);
    const Value operand = operand_of(view);
    const auto memory = graph::substitute(own->memory, *inverse, axes_of(shape(operand)));
    std::optional<Refused> refused =
        memory ? lay(operand, {value, *memory})
               : Refused{"part-strides", "its elements would not lie at even distances"};
    if (!refused) return;
    hosts_.erase(view);
    refuse(view, std::move(*refused));
  }

  // Its readers find it there; the caller wants it by itself, and who stands alone in one piece.
  bool can_lie(NodeId view, const Place& there) const {
    if (is_output_[view] || !schedule::is_strided(there.memory)) return false;
    if (!in_one_piece_[view]) return true;
    const Shape& own = shape({view, 0});
    return schedule::with_strides(schedule::row_major(static_cast<int>(own.size())).order,
                                  schedule::strides_of(there.memory, own.size()), own)
        .is_row_major();
  }

  void place_view(NodeId view) {
    const Value value{view, 0};
    if (hosts_.count(view) || result_.places.count(value)) return;
    std::optional<Place> there = place_through(view);
    if (graph_.node(operand_of(view).node).op == graph::Op::dims)
      return refuse(view, {"view-source", "it is a view of sizes"});
    if (!there || !can_lie(view, *there))
      return refuse(view, {"view-strides", "its elements do not lie at even distances in its operand"});
    result_.places[value] = std::move(*there);
  }

  // ---------------------------------------------------------------- operands

  // Has the value lie there, if whoever computes it can write it there; operands of views in between lie accordingly.
  std::optional<Refused> lay(Value value, Place wanted) {
    std::vector<std::pair<Value, Place>> agreed;
    for (;;) {
      if (const auto it = result_.places.find(value); it != result_.places.end()) {
        if (it->second == wanted) break;
        return Refused{"part-shared",
                       "it is a part of another concatenation as well and can lie in one place only"};
      }
      if (agreed.size() == longest_chain)
        return Refused{"part-view", "it is a view of a view of many others"};
      if (auto why = owned_elsewhere(value)) return why;
      const bool view = result_.views.count(value.node) != 0 && !hosts_.count(value.node);
      const bool strided = schedule::is_strided(wanted.memory);
      if (hosts_.count(value.node)) return Refused{"part-shared", "its operand lies in it"};
      if (!strided && !(users_[value.node].size() == 1 && (view || parts_are_strided(value, wanted))))
        return Refused{"part-strides", "its elements would not lie at even distances"};
      agreed.emplace_back(value, wanted);
      if (!view) break;
      const auto inverse = inverse_of(graph_, value.node);
      if (!inverse) return Refused{"part-view", "it is a view of something that lies elsewhere"};
      value = operand_of(value.node);
      auto memory = graph::substitute(wanted.memory, *inverse, axes_of(shape(value)));
      if (!memory) return Refused{"part-strides", "its elements would not lie at even distances"};
      wanted.memory = std::move(*memory);
    }
    for (auto& [v, place] : agreed) result_.places.emplace(v, std::move(place));
    return std::nullopt;
  }

  bool parts_are_strided(Value whole, const Place& own) const {
    if (!result_.wholes.count(whole.node)) return false;
    Dim at = 0;
    for (Value part : graph_.node(whole.node).operands) {
      if (!schedule::is_strided(part_place(whole.node, own, part, at).memory)) return false;
      at = at + shape(part)[axis_of(graph_.node(whole.node))];
    }
    return true;
  }

  std::optional<Refused> owned_elsewhere(Value part) const {
    if (constant_[part.node])
      return Refused{"part-constant", "it is a constant, made when the model is loaded"};
    if (in_one_piece_[part.node])
      return Refused{"part-alone",
                     "a step that is no loop over independent elements takes or makes it in one piece"};
    if (!graph::has_form(graph_, part.node))
      return Refused{"part-input", "it is the caller's: an input of the model is never written"};
    if (is_output_[part.node])
      return Refused{"part-output", "it is an output of the model, which the caller gets in one piece"};
    if (!layout_of(part).blocks.empty()) return Refused{"part-layout", "it lies in blocks"};
    return std::nullopt;
  }
};

}  // namespace

Assemblies place_in_memory(const Graph& graph, const std::set<NodeId>& nodes,
                           const std::vector<bool>& constant, const Layouts& layouts,
                           const std::vector<Append>& appends) {
  return Placer(graph, nodes, constant, layouts, appends).place();
}

}  // namespace fusewise::fusion
