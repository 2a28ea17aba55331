// The traffic of a loop tree through the cache levels. At each level a loop whose body's data fits keeps what does
// not move with it; what does not fit is fetched again for every iteration.
#include <algorithm>
#include <cmath>
#include <set>

#include "cost/constants.h"
#include "cost/tree_boxes.h"

namespace fusewise::cost {

using graph::Read;
using schedule::Placement;
using schedule::Stage;

namespace {

double bytes_per_element(const graph::TensorType& type) { return std::max(bits_of(type.element), 8) / 8.0; }

class Traffic {
 public:
  Traffic(const TreeBoxes& boxes, const machine::Machine& machine, const CostOptions& options,
          Estimate& estimate)
      : boxes_(boxes), machine_(machine), options_(options), estimate_(estimate) {}

  void add(int phase) {
    for (int s = 0; s < boxes_.stages(); ++s)
      if (boxes_.phase(s) == phase) add_stage(s);
    for (int s = 0; s < boxes_.stages(); ++s) {
      const Stage& t = boxes_.stage(s);
      if (boxes_.phase(s) != phase || t.partial) continue;
      if (t.placement == Placement::memory)
        add_whole(boxes_.whole_elements({t.node, 0}) * element_bytes(t.node) * partial_lines({t.node, 0}),
                  false);
      if (t.placement == Placement::scratch) add_scratch(s);
    }
  }

 private:
  const TreeBoxes& boxes_;
  const machine::Machine& machine_;
  const CostOptions& options_;
  Estimate& estimate_;
  std::map<std::pair<int, int>, double> totals_;
  std::set<std::pair<Value, int>> whole_counted_;

  struct Position {
    int stage, loops;
  };

  double element_bytes(NodeId node) const { return bytes_per_element(boxes_.forms.graph->type({node, 0})); }

  void add_whole(double bytes, bool constant) {
    const int home = home_level(bytes, constant, machine_, options_);
    estimate_.l1_bytes += bytes;
    if (home >= 3) estimate_.l2_bytes += bytes;
    if (home >= 4) estimate_.l3_bytes += bytes;
  }

  // Of a value inside of a larger array, rows that fill no whole lines: lines touched against lines of use.
  double partial_lines(Value value) const {
    const auto layout = boxes_.tree.layouts.find(value);
    if (layout == boxes_.tree.layouts.end() || layout->second.strides.empty()) return 1;
    const Shape& shape = boxes_.forms.graph->type(value).shape;
    const double element = bytes_per_element(boxes_.forms.graph->type(value));
    double run = 1;
    for (size_t i = layout->second.order.size(); i-- > 0;) {
      const auto d = static_cast<size_t>(layout->second.order[i]);
      const auto extent = static_cast<double>(schedule::usual_value(shape[d], boxes_.usual));
      if (extent == 1) continue;
      const double stride = usual_stride(layout->second, layout->second.order[i]);
      if (stride != run) return line_share(run * element, stride * element);
      run *= extent;
    }
    return 1;
  }

  // Bytes fetched against bytes of use, of runs that begin so many bytes apart.
  static double line_share(double run, double apart) {
    return std::max(1.0, std::min(cache_line, apart) / run);
  }

  void add_scratch(int s) {
    const Stage& t = boxes_.stage(s);
    const double bytes = volume(boxes_.box(s, 0)) * element_bytes(t.node);
    estimate_.scratch_bytes += bytes;
    // Written, and read back at least once, through the level that it fits.
    const double around = total(t.parent, t.depth);
    if (around > static_cast<double>(machine_.l1_bytes))
      estimate_.l1_bytes += 2 * bytes * boxes_.executions(s);
    if (around > static_cast<double>(machine_.l2_bytes))
      estimate_.l2_bytes += 2 * bytes * boxes_.executions(s);
  }

  bool crosses_border(NodeId node, const Read& read) const {
    const Value operand = boxes_.forms.operand(node, read);
    if (!boxes_.forms.is_member(operand.node)) return !schedule::literal_of(*boxes_.forms.graph, operand);
    const int producer = boxes_.tree.stage_index(boxes_.forms, operand.node);
    return producer >= 0 && boxes_.stage(producer).parent < 0 &&
           producer != boxes_.tree.stage_index(boxes_.forms, node);
  }

  double read_bytes(NodeId node, const Read& read, const Extents& box,
                    const schedule::ReducedBlocks& blocks) const {
    const Value operand = boxes_.forms.operand(node, read);
    const double element = bytes_per_element(boxes_.forms.graph->type(operand));
    const double whole = boxes_.whole_elements(operand) * element * partial_lines(operand);
    if (const graph::LinearIndex* address = divides(read) ? boxes_.address_of(node, read) : nullptr)
      return std::min(address_bytes(node, *address, box, blocks, element), whole);
    const Extents touched = boxes_.image(node, read, box, blocks);
    double elements = volume(touched);
    if (divides(read)) elements = std::min(elements, points(node, box, blocks));
    if (touched.empty()) return elements * element;
    double run = element * static_cast<double>(touched.back()), apart = cache_line;
    if (const auto it = boxes_.tree.layouts.find(operand); it != boxes_.tree.layouts.end()) {
      const schedule::Layout& layout = it->second;
      if (layout.innermost() >= 0) {
        run = element * static_cast<double>(touched[static_cast<size_t>(layout.innermost())]);
      } else {
        run = element;
        apart = element * usual_stride(layout, layout.order.back());
      }
    }
    const double bytes = elements * element;
    return run < cache_line ? std::min(bytes * line_share(run, apart), std::max(whole, bytes)) : bytes;
  }

  double usual_stride(const schedule::Layout& layout, int dim) const {
    return static_cast<double>(schedule::usual_value(layout.strides[static_cast<size_t>(dim)], boxes_.usual));
  }

  double points(NodeId node, const Extents& box, const schedule::ReducedBlocks& blocks) const {
    double n = 1;
    for (size_t a = 0; a < boxes_.forms.form(node).axes.size(); ++a)
      n *= static_cast<double>(boxes_.axis_extent(node, static_cast<int>(a), box, blocks));
    return n;
  }

  // Of a read that is linear in the axes: the axes of small coefficients are a run, the others repeat it.
  double address_bytes(NodeId node, const graph::LinearIndex& address, const Extents& box,
                       const schedule::ReducedBlocks& blocks, double element) const {
    std::vector<std::pair<double, double>> axes;  // elements from one index to the next, indices
    for (const graph::AxisTerm& t : address.terms)
      axes.emplace_back(std::abs(static_cast<double>(schedule::usual_value(t.coefficient, boxes_.usual))),
                        static_cast<double>(boxes_.axis_extent(node, t.axis, box, blocks)));
    std::sort(axes.begin(), axes.end());
    double run = 1, apart = 0, runs = 1;
    for (const auto& [step, extent] : axes) {
      if (extent <= 1) continue;
      if (apart == 0 && step <= run) {
        run += step * (extent - 1);
        continue;
      }
      if (apart == 0) apart = step;
      runs *= extent;
    }
    return runs * run * element * line_share(run * element, apart * element);
  }

  // Bytes that one iteration of the first `l` loops of stage `s` touches, all levels together.
  double total(int s, int l) {
    const auto [it, fresh] = totals_.try_emplace({s, l}, 0.0);
    if (!fresh) return it->second;
    const auto& needed = boxes_.needed(s, l);
    std::map<Value, double> values;
    const schedule::ReducedBlocks blocks = boxes_.reduced_blocks(s, l);
    for (NodeId node : boxes_.computed(s)) {
      const auto box = needed.find(node);
      if (box == needed.end()) continue;
      for (const Read& read : boxes_.forms.form(node).reads)
        if (crosses_border(node, read)) {
          double& most = values[boxes_.forms.operand(node, read)];
          most = std::max(most, read_bytes(node, read, box->second, blocks));
        }
      const int own = boxes_.tree.stage_index(boxes_.forms, node);
      if (own >= 0 && boxes_.stage(own).placement != Placement::registers)
        values[{node, 0}] = volume(box->second) * element_bytes(node);
    }
    double sum = 0;
    for (const auto& [value, bytes] : values) sum += bytes;
    totals_[{s, l}] = sum;
    return sum;
  }

  // The positions from the root to the body of stage `s`, outermost first.
  std::vector<Position> path_to(int s) const {
    std::vector<int> chain;
    for (int t = s; t >= 0; t = boxes_.stage(t).parent) chain.push_back(t);
    std::reverse(chain.begin(), chain.end());
    std::vector<Position> path;
    for (size_t i = 0; i < chain.size(); ++i) {
      const int depth = i + 1 < chain.size() ? boxes_.stage(chain[i + 1]).depth : boxes_.loops(chain[i]);
      for (int l = 0; l <= depth; ++l)
        if (l < depth || i + 1 == chain.size()) path.push_back({chain[i], l});
    }
    return path;
  }

  void add_stage(int s) {
    const Stage& t = boxes_.stage(s);
    std::vector<NodeId> nodes = t.inlined;
    if (!boxes_.combines_parts(s)) nodes.push_back(t.node);
    std::map<Value, std::vector<std::pair<NodeId, const Read*>>> reads;
    for (NodeId node : nodes)
      for (const Read& read : boxes_.forms.form(node).reads)
        if (crosses_border(node, read)) reads[boxes_.forms.operand(node, read)].push_back({node, &read});
    const std::vector<Position> path = path_to(s);
    for (const auto& [value, from] : reads) {
      const double whole = boxes_.whole_elements(value) * bytes_per_element(boxes_.forms.graph->type(value));
      const bool constant = graph::constant_of(*boxes_.forms.graph, value) != nullptr;
      const int home = home_level(std::max(whole, whole_around(from)), constant, machine_, options_);
      estimate_.l1_bytes += fetched(value, from, path, static_cast<double>(machine_.l1_bytes), 1);
      if (home >= 3)
        estimate_.l2_bytes += fetched(value, from, path, static_cast<double>(machine_.l2_bytes), 2);
      if (home >= 4)
        estimate_.l3_bytes += fetched(value, from, path, static_cast<double>(machine_.l3_bytes), 3);
    }
  }

  // Parts that are read one beside the other lie where the whole would: together they take its room.
  double whole_around(const std::vector<std::pair<NodeId, const Read*>>& from) const {
    double most = 0;
    for (const auto& [node, read] : from)
      if (!read->guards.empty() && boxes_.forms.form(node).reads.size() > 1 &&
          !boxes_.forms.form(node).accumulation)
        most = std::max(most, boxes_.whole_elements({node, 0}) * element_bytes(node));
    return most;
  }

  double bytes_at(const std::vector<std::pair<NodeId, const Read*>>& from, Position p) const {
    const auto& needed = boxes_.needed(p.stage, p.loops);
    const schedule::ReducedBlocks blocks = boxes_.reduced_blocks(p.stage, p.loops);
    double most = 0;
    for (const auto& [node, read] : from)
      if (const auto box = needed.find(node); box != needed.end())
        most = std::max(most, read_bytes(node, *read, box->second, blocks));
    return most;
  }

  double fetched(Value value, const std::vector<std::pair<NodeId, const Read*>>& from,
                 const std::vector<Position>& path, double capacity, int level) {
    size_t at = 0;
    while (at + 1 < path.size() && total(path[at].stage, path[at].loops) > capacity) ++at;
    // Everything fits: read once, however many stages read it.
    if (at == 0 && !whole_counted_.insert({value, level}).second) return 0;
    double times = 1;
    bool trailing = true;
    for (size_t i = at; i-- > 0;) {
      if (path[i].loops >= boxes_.loops(path[i].stage)) continue;
      const int axis = boxes_.stage(path[i].stage).loops[static_cast<size_t>(path[i].loops)].axis;
      const bool moves = std::any_of(from.begin(), from.end(), [&](const auto& f) {
        return boxes_.read_moves(path[i].stage, f.first, *f.second, axis);
      });
      if (trailing && !moves) continue;
      trailing = false;
      const double n = boxes_.trips(path[i].stage, path[i].loops);
      times *= moves ? n : std::ceil(n);
    }
    return times * bytes_at(from, path[at]);
  }
};

}  // namespace

void add_traffic(const TreeBoxes& boxes, int phase, const machine::Machine& machine,
                 const CostOptions& options, Estimate& estimate) {
  Traffic(boxes, machine, options, estimate).add(phase);
}

}  // namespace fusewise::cost
