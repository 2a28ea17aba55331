#include "cost/lower_bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "cost/constants.h"
#include "schedule/footprint.h"

namespace fusewise::cost {

using graph::Form;
using graph::NodeId;
using graph::Read;
using graph::Value;

namespace {

using Box = std::vector<double>;  // extents; none: nothing is needed

double volume(const Box& box) {
  double n = 1;
  for (const double extent : box) n *= extent;
  return n;
}

double extent_of(const Dim& dim, const SymbolValues& usual) {
  return static_cast<double>(schedule::usual_value(dim, usual));
}

double offset_of(const Dim& dim, const SymbolValues& usual) {
  return static_cast<double>(schedule::usual_offset(dim, usual));
}

// At least so many different values a linear index takes while the axes run over `box`: by ascending steps, an axis
// fills the gap to the next one or repeats all below it.
double distinct(const graph::LinearIndex& index, const Box& box, const SymbolValues& usual) {
  std::vector<std::pair<double, double>> axes;  // step, extent
  for (const graph::AxisTerm& term : index.terms)
    axes.emplace_back(std::abs(offset_of(term.coefficient, usual)), box[static_cast<size_t>(term.axis)]);
  std::sort(axes.begin(), axes.end());
  double values = 1, span = 1;
  for (const auto& [step, count] : axes) {
    if (step == 0) continue;
    if (step > span) {
      values *= count;
      span += step * (count - 1);
    } else {
      const bool dense = values == span;
      span += step * (count - 1);
      values = dense ? span : std::max(values, count);
    }
  }
  return values;
}

// Along one dimension of an operand. A reshape's parts of an index are whole numbers of rows, and what is in a row.
double distinct(const graph::IndexExpr& e, const Box& box, const SymbolValues& usual) {
  if (e.gathered) return 1;
  double values = distinct(e.linear, box, usual);
  for (const graph::QuasiTerm& term : e.quasi) {
    double part =
        std::max(1.0, std::floor(distinct(term.inner, box, usual) / extent_of(term.divisor, usual)));
    if (!term.modulus.is(0)) part = std::min(part, extent_of(term.modulus, usual));
    values = std::max(values, part);
  }
  return values;
}

// What a graph, and the bodies in it, cannot do without.
class Compulsory {
 public:
  Compulsory(const GraphFacts& facts, const machine::Machine& machine, const CostOptions& options,
             const std::set<Value>& grown)
      : facts_(facts), graph_(*facts.graph), machine_(machine), options_(options), needed_(graph_.size()) {
    std::set<Value> written;
    for (const graph::GraphOutput& output : graph_.outputs) {
      const NodeFacts& made = facts_.at(output.value.node);
      // What hands an input on is no step of a plan, and what constants alone make is made before any run.
      if (grown.contains(output.value) || made.constant_only ||
          !(made.has_form || made.alone || is_result(output.value)))
        continue;
      need(output.value, whole(output.value));
      if (made.has_form && !made.view && written.insert(output.value).second) add_bytes(made.bytes, false);
    }
    for (NodeId id = static_cast<NodeId>(graph_.size()); id-- > 0;) visit(id);
    for (const auto& [constant, bytes] : constants_)
      if (facts_.at(constant).elements > 1) add_bytes(bytes, true);
  }

  double microseconds() const {
    const double per_microsecond = machine_.gigahertz * 1e3, workers = std::max(options_.threads, 1);
    const double together = std::pow(workers, shared_scaling);
    return bodies_ + std::max({cycles_ / workers, bytes_[0] / machine_.l2_bandwidth / workers,
                               bytes_[1] / machine_.l3_bandwidth / together,
                               bytes_[2] / machine_.memory_bandwidth / together}) /
                         per_microsecond;
  }
  const Box& needed_of_input(size_t input) const { return needed_[graph_.inputs[input].node]; }

 private:
  const GraphFacts& facts_;
  const graph::Graph& graph_;
  const machine::Machine& machine_;
  const CostOptions& options_;
  std::vector<Box> needed_;  // by node: the largest box that one reader needs
  std::vector<bool> reached_ = std::vector<bool>(graph_.size(), false);
  std::vector<bool> moved_ = reached_;
  double cycles_ = 0, bodies_ = 0;
  double bytes_[3] = {};                // that come at least from the second, third and fourth level
  std::map<NodeId, double> constants_;  // the most that a reader takes of each

  Box whole(Value value) const {
    Box box;
    for (const Dim& extent : graph_.type(value).shape) box.push_back(extent_of(extent, options_.usual));
    return box;
  }

  bool is_result(Value value) const { return graph_.node(value.node).op == graph::Op::result; }

  // Constants are read as the file has them, or packed, which is a value like others.
  void add_bytes(double bytes, bool constant) {
    int level = home_level(bytes, false, machine_, options_);
    if (constant) level = std::min(level, home_level(bytes, true, machine_, options_));
    for (int l = 2; l <= level; ++l) bytes_[l - 2] += bytes;
  }

  // Of its bytes, those of so many elements.
  double bytes_of_box(NodeId node, const Box& box) const {
    const NodeFacts& facts = facts_.at(node);
    return facts.bytes * std::min(1.0, volume(box) / facts.elements);
  }

  // `moved`: by the reader itself; what bodies read counts in them.
  void need(Value value, Box box, bool moved = true) {
    const NodeId node = value.node;
    if (!facts_.at(node).constant_only) {
      moved_[node] = moved_[node] || moved;
      if (!reached_[node] || volume(box) > volume(needed_[node])) needed_[node] = std::move(box);
      reached_[node] = true;
      return;
    }
    if (!moved) return;
    NodeId from = node;
    double bytes = bytes_of_box(from, box);
    while (facts_.at(from).view && graph_.node(from).operands.size() == 1) {
      from = graph_.node(from).operands[0].node;
      bytes = std::min(bytes, facts_.at(from).bytes);
    }
    double& known = constants_[from];
    known = std::max(known, bytes);
  }

  void visit(NodeId id) {
    const NodeFacts& facts = facts_.at(id);
    const graph::Node& node = graph_.node(id);
    if (graph::kind_of(node.op) == graph::Kind::control) return visit_bodies(node);
    if (!reached_[id] || facts.constant_only || node.op == graph::Op::result) return;
    if (facts.has_form) {
      cycles_ += std::min(facts.cycles, facts.flops / (2 * machine_.fma_per_cycle())) *
                 std::min(1.0, volume(needed_[id]) / facts.elements);
      visit_reads(id);
    } else if (facts.alone) {
      for (Value operand : node.operands) need(operand, whole(operand));
    } else if (facts.elements > 1 && moved_[id]) {
      add_bytes(bytes_of_box(id, needed_[id]), false);
    }
  }

  void visit_reads(NodeId id) {
    const Form form = graph::form_of(graph_, id);
    Box axes = needed_[id];
    for (size_t a = axes.size(); a < form.axes.size(); ++a)
      axes.push_back(extent_of(form.axes[a].extent, options_.usual));
    for (const Read& read : form.reads) {
      const Box box = form.accumulation ? axes : where_read(form, read, axes);
      if (volume(box) < 1) continue;
      const Value operand = graph_.node(id).operands[static_cast<size_t>(read.operand)];
      Box image = whole(operand);
      for (size_t d = 0; d < image.size(); ++d)
        image[d] = std::min(image[d], distinct(read.index[d], box, options_.usual));
      need(operand, std::move(image));
    }
  }

  // Of a box of a map, what is left where a guarded read happens, wherever the box lies.
  Box where_read(const Form& form, const Read& read, Box box) const {
    for (const graph::Guard& guard : read.guards) {
      const graph::LinearIndex& at = guard.expr.linear;
      if (at.terms.size() != 1 || !at.terms[0].coefficient.is(1) || !guard.expr.quasi.empty()) return {0};
      const auto axis = static_cast<size_t>(at.terms[0].axis);
      const double extent = extent_of(form.axes[axis].extent, options_.usual);
      const double low = std::max(0.0, offset_of(guard.low - at.constant, options_.usual)),
                   high = std::min(extent, offset_of(guard.high - at.constant, options_.usual));
      const double outside = extent - std::max(0.0, high - low);
      box[axis] = std::max(0.0, box[axis] - outside);
    }
    return box;
  }

  void visit_bodies(const graph::Node& node) {
    double times = 1, least = -1;
    size_t lead = 1, first = 0;  // operands that are no input of a body, inputs that are no operand
    size_t scanned_from = 0, scanned_to = 0;
    if (node.op == graph::Op::loop) {
      const auto& loop = graph::attributes<graph::LoopAttributes>(node);
      lead = (loop.counted ? 1 : 0) + (loop.conditional ? 1 : 0);
      first = 1;
      scanned_from = lead + static_cast<size_t>(loop.carried);
      scanned_to = scanned_from + loop.scanned.size();
      // The shapes alone say how often; without an iteration nothing is read.
      times = loop.trips && lead == 0 ? extent_of(*loop.trips, options_.usual) : 0;
    }
    std::vector<std::optional<Box>> boxes(node.operands.size());
    for (const graph::Body& body : node.bodies) {
      const GraphFacts facts = graph_facts(*body, machine_, options_.usual);
      const CostOptions options{options_.threads, options_.usual, facts.constant_bytes};
      const Compulsory inside(facts, machine_, options, {});
      least = least < 0 ? inside.microseconds() : std::min(least, inside.microseconds());
      for (size_t i = lead; i < boxes.size(); ++i) {
        const size_t input = i - lead + first;
        Box box = inside.reached_[facts.graph->inputs[input].node] ? inside.needed_of_input(input) : Box{0};
        if (!boxes[i] || volume(box) < volume(*boxes[i])) boxes[i] = std::move(box);
      }
    }
    bodies_ += times * std::max(least, 0.0);
    for (size_t i = 0; i < boxes.size() && times > 0; ++i) {
      if (!boxes[i] || volume(*boxes[i]) < 1) continue;
      if (i >= scanned_from && i < scanned_to) boxes[i]->insert(boxes[i]->begin(), times);
      need(node.operands[i], std::move(*boxes[i]), false);
    }
  }
};

}  // namespace

double lower_bound_microseconds(const GraphFacts& facts, const machine::Machine& machine,
                                const CostOptions& options, const std::set<Value>& grown) {
  return Compulsory(facts, machine, options, grown).microseconds();
}

}  // namespace fusewise::cost
