#include "fusion/layouts.h"

#include <algorithm>

#include "fusion/tiles/choose_schedule.h"
#include "graph/form.h"
#include "schedule/footprint.h"

namespace fusewise::fusion {

using graph::Graph;
using graph::Kind;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Value;
using schedule::Layout;
using schedule::Layouts;

std::vector<bool> constant_only(const Graph& graph) {
  std::vector<bool> constant(graph.size(), false);
  for (NodeId n = 0; n < graph.size(); ++n) {
    const Node& node = graph.node(n);
    if (node.op == Op::constant)
      constant[n] = true;
    else if (graph::kind_of(node.op) == Kind::control)
      constant[n] = false;
    else if (graph::kind_of(node.op) == Kind::source)
      constant[n] = node.op == Op::iota && !graph.type({n, 0}).shape.empty() &&
                    product(graph.type({n, 0}).shape).is_constant();
    else if (graph::kind_of(node.op) != Kind::opaque)
      constant[n] = std::all_of(node.operands.begin(), node.operands.end(),
                                [&](Value v) { return constant[v.node]; }) &&
                    std::all_of(node.results.begin(), node.results.end(),
                                [](const graph::TensorType& t) { return product(t.shape).is_constant(); });
  }
  return constant;
}

namespace {

bool is_windowed(const Node& node) { return node.op == Op::convolution || node.op == Op::window_reduce; }

// Operations through which a layout of equal rank passes unchanged.
bool keeps_layout(const Node& node) {
  return node.op == Op::map || node.op == Op::pad || node.op == Op::slice || node.op == Op::concat;
}

Layout channels_last(int rank) {
  Layout layout;
  layout.order.push_back(0);
  for (int d = 2; d < rank; ++d) layout.order.push_back(d);
  layout.order.push_back(1);
  return layout;
}

class Assigner {
 public:
  Assigner(const Graph& graph, const machine::Machine& machine, const SymbolValues& usual)
      : graph_(graph), machine_(machine), usual_(usual), constant_(constant_only(graph)) {}

  Layouts assign() {
    spread_channels_last();
    for (NodeId n = 0; n < graph_.size(); ++n) {
      const Node& node = graph_.node(n);
      if (node.op == Op::convolution) place_convolution_weights(node);
      if (node.op == Op::dot) place_dot_operand(node);
    }
    // What nodes that stand alone and the caller see is row-major.
    for (NodeId n = 0; n < graph_.size(); ++n) {
      if (!graph::stands_alone(graph_, n)) continue;
      for (Value v : graph_.node(n).operands) layouts_.erase(v);
      for (uint32_t i = 0; i < graph_.node(n).results.size(); ++i) layouts_.erase(Value{n, i});
    }
    for (const graph::GraphOutput& o : graph_.outputs) layouts_.erase(o.value);
    for (const graph::GraphInput& i : graph_.inputs) layouts_.erase(Value{i.node, 0});
    // And so is what bodies see.
    for (NodeId n = 0; n < graph_.size(); ++n) {
      const Node& node = graph_.node(n);
      if (node.op == Op::result) layouts_.erase({n, 0});
      if (graph::kind_of(node.op) == Kind::control)
        for (Value v : node.operands) layouts_.erase(v);
    }
    return std::move(layouts_);
  }

 private:
  const Graph& graph_;
  const machine::Machine& machine_;
  const SymbolValues& usual_;
  std::vector<bool> constant_;
  Layouts layouts_;

  int64_t usual(const Dim& dim) const { return schedule::usual_value(dim, usual_); }

  void spread_channels_last() {
    std::vector<bool> seen(graph_.size(), false);
    std::vector<NodeId> work;
    const auto add = [&](Value v) {
      const Node& node = graph_.node(v.node);
      const int rank = graph_.type(v).rank();
      if (rank < 3 || node.op == Op::input || node.op == Op::constant || seen[v.node]) return;
      seen[v.node] = true;
      layouts_[v] = channels_last(rank);
      work.push_back(v.node);
    };
    for (NodeId n = 0; n < graph_.size(); ++n) {
      if (!is_windowed(graph_.node(n)) || constant_[n]) continue;
      add({n, 0});
      add(graph_.node(n).operands[0]);
    }
    if (work.empty()) return;
    const auto users = graph::users(graph_);
    while (!work.empty()) {
      const NodeId n = work.back();
      work.pop_back();
      const int rank = graph_.type({n, 0}).rank();
      for (NodeId user : users[n])
        if (keeps_layout(graph_.node(user)) && graph_.type({user, 0}).rank() == rank) add({user, 0});
      if (keeps_layout(graph_.node(n)) || graph_.node(n).op == Op::broadcast)
        for (Value v : graph_.node(n).operands)
          if (graph_.type(v).rank() == rank && !constant_[v.node]) add(v);
    }
  }

  void place_convolution_weights(const Node& node) {
    const Value w = node.operands[1];
    if (!constant_[w.node]) return;
    const auto& a = graph::attributes<graph::ConvolutionAttributes>(node);
    const graph::TensorType& type = graph_.type(w);
    const Shape& out = node.results[0].shape;
    const int rank = type.rank();
    Layout layout;
    const Dim group = floor_div(type.shape[0], a.groups);
    const int64_t span = a.groups == 1 || !group.is_constant() ? 0 : group.value();
    if (a.groups == 1 || span >= 4) {
      layout = channels_last(rank);
      layout.blocks.push_back({0, panel(type.element, out.back(), type.shape[0], span)});
    } else {
      for (int d = 1; d < rank; ++d) layout.order.push_back(d);
      layout.order.push_back(0);
    }
    layouts_[w] = layout;
  }

  void place_dot_operand(const Node& node) {
    const Value w = node.operands[1];
    if (!constant_[w.node]) return;
    const auto& a = graph::attributes<graph::DotAttributes>(node);
    const graph::TensorType& type = graph_.type(w);
    int column = -1;
    for (int d = 0; d < type.rank(); ++d)
      if (!std::count(a.rhs_contract.begin(), a.rhs_contract.end(), d) &&
          !std::count(a.rhs_batch.begin(), a.rhs_batch.end(), d))
        column = d;
    if (column < 0) return;
    Dim rows = 1;
    const Shape& lhs = graph_.type(node.operands[0]).shape;
    for (int d = 0; d < static_cast<int>(lhs.size()); ++d)
      if (!std::count(a.lhs_contract.begin(), a.lhs_contract.end(), d) &&
          !std::count(a.lhs_batch.begin(), a.lhs_batch.end(), d))
        rows = lhs[static_cast<size_t>(d)];
    Layout layout;
    for (int d : a.rhs_batch) layout.order.push_back(d);
    for (int d = 0; d < type.rank(); ++d)
      if (!std::count(a.rhs_batch.begin(), a.rhs_batch.end(), d) &&
          !std::count(a.rhs_contract.begin(), a.rhs_contract.end(), d))
        layout.order.push_back(d);
    for (int d : a.rhs_contract) layout.order.push_back(d);
    layout.blocks.push_back({column, panel(type.element, rows, type.shape[static_cast<size_t>(column)])});
    layouts_[w] = layout;
  }

  int64_t panel(DataType element, const Dim& rows, const Dim& columns, int64_t span = 0) const {
    return contraction_tile(machine_, accumulator_of(element), usual(rows), usual(columns), 1, 0, span)
        .columns;
  }
};

}  // namespace

Layouts assign_layouts(const Graph& graph, const machine::Machine& machine, const SymbolValues& usual) {
  return Assigner(graph, machine, usual).assign();
}

}  // namespace fusewise::fusion
