#include "fusion/assemblies.h"

#include <algorithm>

#include "graph/form.h"

namespace fusewise::fusion {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Value;
using schedule::Layout;
using schedule::Layouts;

const PartCopy* Assemblies::copy_of(Value part, NodeId whole) const {
  const auto it = std::find_if(copies.begin(), copies.end(),
                               [&](const PartCopy& c) { return c.whole == whole && c.part == part; });
  return it == copies.end() ? nullptr : &*it;
}

namespace {

Layout layout_of(const Graph& graph, const Layouts& layouts, Value v) {
  const auto it = layouts.find(v);
  return it != layouts.end() ? it->second : schedule::row_major(graph.type(v).rank());
}

bool same_order(const Layout& a, const Layout& b) { return a.order == b.order && a.blocks == b.blocks; }

size_t axis_of(const Node& whole) {
  return static_cast<size_t>(graph::attributes<graph::ConcatAttributes>(whole).axis);
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
  Placer(const Graph& graph, const std::set<NodeId>& wholes, const std::vector<bool>& constant,
         const Layouts& layouts, const std::vector<Append>& appends)
      : graph_(graph),
        constant_(constant),
        layouts_(layouts),
        appends_(appends),
        in_one_piece_(wanted_in_one_piece(graph)),
        is_output_(graph.size(), false) {
    const std::vector<bool> late = sized_in_run(graph);
    for (NodeId whole : wholes)
      if (can_be_assembled(graph, late, whole)) result_.wholes.insert(whole);
    for (const graph::GraphOutput& output : graph.outputs) is_output_[output.value.node] = true;
  }

  Assemblies place() {
    for (auto whole = result_.wholes.rbegin(); whole != result_.wholes.rend(); ++whole) place_whole(*whole);
    std::stable_sort(result_.copies.begin(), result_.copies.end(),
                     [](const PartCopy& a, const PartCopy& b) { return a.whole < b.whole; });
    return std::move(result_);
  }

 private:
  const Graph& graph_;
  const std::vector<bool>& constant_;
  const Layouts& layouts_;
  const std::vector<Append>& appends_;
  std::vector<bool> in_one_piece_, is_output_;
  Assemblies result_;

  void place_whole(NodeId whole) {
    const Value value{whole, 0};
    if (!result_.places.count(value) && !is_output_[whole] && !in_one_piece_[whole])
      if (const auto found = range_of_parts(whole)) result_.places[value] = *found;
    Place own{value, std::vector<Dim>(graph_.type(value).shape.size(), Dim(0))};
    if (const auto it = result_.places.find(value); it != result_.places.end()) own = it->second;
    const size_t axis = axis_of(graph_.node(whole));
    Dim at = 0;
    for (Value part : graph_.node(whole).operands) {
      Place wanted = own;
      wanted.start[axis] = wanted.start[axis] + at;
      PartCopy copy{part, whole, std::vector<Dim>(own.start.size(), Dim(0)), {}, {}};
      copy.start[axis] = at;
      at = at + graph_.type(part).shape[axis];
      if (const auto it = result_.places.find(part); it != result_.places.end()) {
        if (it->second == wanted) continue;
        copy.reason = "part-shared";
        copy.detail = "it is a part of another concatenation as well and can lie in one place only";
      } else if (!owned_elsewhere(part, value, copy)) {
        result_.places.emplace(part, std::move(wanted));
        continue;
      }
      result_.copies.push_back(std::move(copy));
    }
  }

  // Where all parts lie one after the other inside one host already, the whole is that range of it.
  std::optional<Place> range_of_parts(NodeId whole) const {
    const size_t axis = axis_of(graph_.node(whole));
    std::optional<Place> range;
    Dim at = 0;
    for (Value part : graph_.node(whole).operands) {
      const auto it = result_.places.find(part);
      if (it == result_.places.end()) return std::nullopt;
      Place here = it->second;
      here.start[axis] = here.start[axis] - at;
      if (range && here != *range) return std::nullopt;
      range = std::move(here);
      at = at + graph_.type(part).shape[axis];
    }
    if (!range || range->host.node == whole) return std::nullopt;
    if (!same_order(layout_of(graph_, layouts_, {whole, 0}), layout_of(graph_, layouts_, range->host)))
      return std::nullopt;
    return range;
  }

  bool owned_elsewhere(Value part, Value whole, PartCopy& copy) const {
    const auto because = [&](const char* reason, const char* detail) {
      copy.reason = reason;
      copy.detail = detail;
      return true;
    };
    const auto grows = [&](const Append& append) { return append.whole == whole && append.past == part; };
    if (std::any_of(appends_.begin(), appends_.end(), grows))
      return because("part-grown",
                     "the caller keeps it in the same array; it is copied only where that is not so");
    if (constant_[part.node])
      return because("part-constant", "it is a constant, made when the model is loaded");
    if (in_one_piece_[part.node])
      return because("part-alone",
                     "a step that is no loop over independent elements takes or makes it in one piece");
    if (!graph::has_form(graph_, part.node))
      return because("part-input", "it is the caller's: an input of the model is never written");
    if (is_output_[part.node])
      return because("part-output", "it is an output of the model, which the caller gets in one piece");
    if (!same_order(layout_of(graph_, layouts_, part), layout_of(graph_, layouts_, whole)))
      return because("part-layout", "it lies in another layout than the whole");
    return false;
  }
};

}  // namespace

std::vector<bool> sized_in_run(const Graph& graph) {
  std::vector<bool> late(graph.size(), false);
  std::set<std::string> bound;
  for (NodeId n = 0; n < graph.size(); ++n)
    for (const std::string& symbol : graph::bound_symbols(graph.node(n))) bound.insert(symbol);
  if (bound.empty()) return late;
  const auto speaks = [&](const Dim& extent) {
    const auto symbols = extent.symbols();
    return std::any_of(symbols.begin(), symbols.end(), [&](const auto& s) { return bound.count(s) > 0; });
  };
  for (NodeId n = 0; n < graph.size(); ++n)
    for (const graph::TensorType& type : graph.node(n).results)
      if (std::any_of(type.shape.begin(), type.shape.end(), speaks)) late[n] = true;
  return late;
}

bool can_be_assembled(const Graph& graph, const std::vector<bool>& sized_in_run, NodeId whole) {
  const std::vector<Value>& parts = graph.node(whole).operands;
  return !sized_in_run[whole] &&
         std::none_of(parts.begin(), parts.end(), [&](Value part) { return sized_in_run[part.node]; });
}

Assemblies place_parts(const Graph& graph, const std::set<NodeId>& wholes, const std::vector<bool>& constant,
                       const Layouts& layouts, const std::vector<Append>& appends) {
  return Placer(graph, wholes, constant, layouts, appends).place();
}

Layouts with_capacities(Layouts layouts, const Graph& graph, const std::vector<Append>& appends) {
  for (const Append& append : appends)
    for (const auto& [value, capacity] :
         {std::pair{append.whole, append.whole_capacity}, std::pair{append.past, append.past_capacity}}) {
      Layout& layout = layouts[value];
      Shape array = graph.type(value).shape;
      array[static_cast<size_t>(append.axis)] = Dim::symbol(capacity);
      const Layout order = schedule::row_major(graph.type(value).rank());
      layout = schedule::with_strides(order.order, strides_of(order, array), graph.type(value).shape);
    }
  return layouts;
}

Layouts with_places(Layouts layouts, const Graph& graph, const Assemblies& assemblies) {
  for (const auto& [value, place] : assemblies.places) {
    const Layout host = layout_of(graph, layouts, place.host);
    layouts[value] =
        schedule::with_strides(layout_of(graph, layouts, value).order,
                               strides_of(host, graph.type(place.host).shape), graph.type(value).shape);
  }
  return layouts;
}

}  // namespace fusewise::fusion
