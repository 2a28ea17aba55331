#include "fusion/assemblies.h"

#include <algorithm>

#include "schedule/memory_index.h"

namespace fusewise::fusion {

using graph::Graph;
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

}  // namespace

bool is_movable_view(const Graph& graph, NodeId node) {
  const graph::Node& n = graph.node(node);
  if (graph::kind_of(n.op) != graph::Kind::view || n.op == graph::Op::concat || n.operands.size() != 1)
    return false;
  if (bits_of(n.results[0].element) % 8 != 0 || !graph::has_form(graph, node)) return false;
  const graph::Form form = graph::form_of(graph, node);
  return form.reads.size() == 1 && form.reads[0].guards.empty() && form.body.size() == 1;
}

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

bool can_be_in_place(const Graph& graph, const std::vector<bool>& sized_in_run, NodeId node) {
  const std::vector<Value>& operands = graph.node(node).operands;
  return !sized_in_run[node] &&
         std::none_of(operands.begin(), operands.end(), [&](Value v) { return sized_in_run[v.node]; });
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
    if (!schedule::is_strided(place.memory)) continue;
    const Shape& shape = graph.type(value).shape;
    Layout layout = schedule::with_strides(layout_of(graph, layouts, value).order,
                                           schedule::strides_of(place.memory, shape.size()), shape);
    if (layout.is_row_major())
      layouts.erase(value);
    else
      layouts[value] = std::move(layout);
  }
  return layouts;
}

}  // namespace fusewise::fusion
