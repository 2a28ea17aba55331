// The form of each operation. What the last piece of a concat falls back to is never taken.
#include "graph/form.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "graph/form_index.h"
#include "graph/shape_rules.h"

namespace fusewise::graph {

namespace {

size_t at(int i) { return static_cast<size_t>(i); }

// A form under construction.
class FormBuilder {
 public:
  FormBuilder(const Graph& graph, NodeId id) : graph_(graph), node_(graph.node(id)) {
    form.kind = kind_of(node_.op);
    for (const Dim& extent : result().shape) form.axes.push_back({extent, false});
  }

  const TensorType& result() const { return node_.results[0]; }
  const TensorType& operand(int i) const { return graph_.type(node_.operands[at(i)]); }
  int rank() const { return result().rank(); }

  int add_reduction_axis(const Dim& extent) {
    form.axes.push_back({extent, true});
    return static_cast<int>(form.axes.size()) - 1;
  }
  // The read's index has an entry for each dimension, constant 0 to begin with.
  int add_read(int operand_number) {
    Read read;
    read.operand = operand_number;
    read.index.resize(operand(operand_number).shape.size());
    form.reads.push_back(std::move(read));
    return static_cast<int>(form.reads.size()) - 1;
  }
  Read& read(int i) { return form.reads[at(i)]; }
  // Appends the guard that keeps the index along a dimension inside the operand.
  void guard(int read_number, int dim) {
    Read& r = read(read_number);
    r.guards.push_back({r.index[at(dim)], 0, operand(r.operand).shape[at(dim)]});
  }

  int body_read(int read_number) {
    BodyNode node;
    node.kind = BodyNode::Kind::read;
    node.type = operand(read(read_number).operand).element;
    node.read = read_number;
    return append(std::move(node));
  }
  int body_apply(ScalarOp op, DataType type, std::vector<int> arguments) {
    BodyNode node;
    node.kind = BodyNode::Kind::apply;
    node.type = type;
    node.op = op;
    node.arguments = std::move(arguments);
    return append(std::move(node));
  }
  int body_piece(int read_number, int otherwise) {
    BodyNode node;
    node.kind = BodyNode::Kind::piece;
    node.type = operand(read(read_number).operand).element;
    node.read = read_number;
    node.arguments = {otherwise};
    return append(std::move(node));
  }
  int body_constant(DataType type) {
    BodyNode node;
    node.kind = BodyNode::Kind::constant;
    node.type = type;
    node.constant.type = type;
    return append(std::move(node));
  }
  int body_index(DataType type, IndexExpr index) {
    BodyNode node;
    node.kind = BodyNode::Kind::index;
    node.type = type;
    node.index = std::move(index);
    return append(std::move(node));
  }
  // A read in the accumulator's type.
  int body_accumulated_read(int read_number) {
    const int value = body_read(read_number);
    const DataType accumulator = accumulator_of(result().element);
    if (form.body[at(value)].type == accumulator) return value;
    return body_apply(ScalarOp::cast, accumulator, {value});
  }
  void contract(int lhs_read, int rhs_read) {
    const int lhs = body_accumulated_read(lhs_read), rhs = body_accumulated_read(rhs_read);
    const DataType accumulator = accumulator_of(result().element);
    body_apply(ScalarOp::mul, accumulator, {lhs, rhs});
    form.accumulation = Accumulation{Combine::sum, accumulator, true, true};
  }

  Form form;

 private:
  int append(BodyNode node) {
    form.body.push_back(std::move(node));
    return static_cast<int>(form.body.size()) - 1;
  }
  const Graph& graph_;
  const Node& node_;
};

// The index i * stride + tap * dilation - pad of a window, guarded where it may fall on padding.
struct WindowIndex {
  int read, dim;       // of the operand
  int axis, tap_axis;  // of the form
  int64_t stride, dilation, pad_low, pad_high;
};

void add_window_index(FormBuilder& builder, const WindowIndex& w) {
  LinearIndex& index = builder.read(w.read).index[at(w.dim)].linear;
  index.constant = Dim(0) - Dim(w.pad_low);
  add_term(index, w.axis, w.stride);
  add_term(index, w.tap_axis, w.dilation);
  const auto last = [&](int axis) { return builder.form.axes[at(axis)].extent - 1; };
  const Dim& extent = builder.operand(builder.read(w.read).operand).shape[at(w.dim)];
  const Dim greatest = last(w.axis) * Dim(w.stride) + last(w.tap_axis) * Dim(w.dilation) - Dim(w.pad_low);
  const std::optional<int64_t> excess = (greatest - extent).upper_bound();
  if (w.pad_low > 0 || (w.pad_high > 0 && !(excess && *excess < 0))) builder.guard(w.read, w.dim);
}

void form_op(FormBuilder& b, const BroadcastAttributes& a) {
  const int read = b.add_read(0);
  for (int d = 0; d < b.operand(0).rank(); ++d) {
    const Dim& from = b.operand(0).shape[at(d)];
    const Dim& to = a.shape[at(a.dims[at(d)])];
    if (from.is(1)) continue;
    const Dim coefficient = from == to || never_one(from) ? Dim(1) : min(from - 1, 1);
    add_term(b.read(read).index[at(d)].linear, a.dims[at(d)], coefficient);
  }
  b.body_read(read);
}

void form_op(FormBuilder& b, const ConcatAttributes& a, int operands) {
  std::vector<int> reads;
  Dim offset = 0;
  for (int k = 0; k < operands; ++k) {
    const int read = b.add_read(k);
    reads.push_back(read);
    for (int d = 0; d < b.rank(); ++d) add_term(b.read(read).index[at(d)].linear, d);
    b.read(read).index[at(a.axis)].linear.constant = Dim(0) - offset;
    if (operands > 1) b.guard(read, a.axis);
    offset = offset + b.operand(k).shape[at(a.axis)];
  }
  if (operands == 1) {
    b.body_read(0);
    return;
  }
  int value = b.body_constant(b.result().element);
  for (int k = operands - 1; k >= 0; --k) value = b.body_piece(reads[at(k)], value);
}

void form_op(FormBuilder& b, const ConvolutionAttributes& a) {
  const int x = b.add_read(0), w = b.add_read(1);
  const Shape& weights = b.operand(1).shape;
  const int spatial = b.rank() - 2;
  std::vector<int> taps;
  for (int d = 0; d < spatial; ++d) taps.push_back(b.add_reduction_axis(weights[at(d + 2)]));
  const int channel = b.add_reduction_axis(weights[1]);
  add_term(b.read(x).index[0].linear, 0);
  add_term(b.read(w).index[0].linear, 1);
  add_term(b.read(w).index[1].linear, channel);
  IndexExpr& x_channel = b.read(x).index[1];
  if (a.groups == 1 || !weights[1].is(1)) add_term(x_channel.linear, channel);
  if (a.groups > 1) {
    QuasiTerm group;
    add_term(group.inner, 1);
    group.divisor = floor_div(weights[0], a.groups);
    group.coefficient = weights[1];
    add_quasi(x_channel, std::move(group), b.form.axes);
  }
  for (int d = 0; d < spatial; ++d) {
    add_term(b.read(w).index[at(d + 2)].linear, taps[at(d)]);
    add_window_index(b, {x, d + 2, d + 2, taps[at(d)], a.strides[at(d)], a.dilations[at(d)], a.pad_low[at(d)],
                         a.pad_high[at(d)]});
  }
  b.contract(x, w);
}

void form_op(FormBuilder& b, const DotAttributes& a) {
  const int lhs = b.add_read(0), rhs = b.add_read(1);
  int axis = 0;
  std::vector<bool> lhs_used(b.operand(0).shape.size()), rhs_used(b.operand(1).shape.size());
  const auto place = [&](int read, std::vector<bool>& used, int dim, int on) {
    used[at(dim)] = true;
    add_term(b.read(read).index[at(dim)].linear, on);
  };
  for (size_t i = 0; i < a.lhs_batch.size(); ++i, ++axis) {
    place(lhs, lhs_used, a.lhs_batch[i], axis);
    place(rhs, rhs_used, a.rhs_batch[i], axis);
  }
  for (size_t i = 0; i < a.lhs_contract.size(); ++i) {
    // A constant extent helps whoever schedules; both are equal.
    const Dim& left = b.operand(0).shape[at(a.lhs_contract[i])];
    const Dim& right = b.operand(1).shape[at(a.rhs_contract[i])];
    const int contracted = b.add_reduction_axis(right.is_constant() ? right : left);
    place(lhs, lhs_used, a.lhs_contract[i], contracted);
    place(rhs, rhs_used, a.rhs_contract[i], contracted);
  }
  for (size_t d = 0; d < lhs_used.size(); ++d)
    if (!lhs_used[d]) add_term(b.read(lhs).index[d].linear, axis++);
  for (size_t d = 0; d < rhs_used.size(); ++d)
    if (!rhs_used[d]) add_term(b.read(rhs).index[d].linear, axis++);
  b.contract(lhs, rhs);
}

void form_op(FormBuilder& b, const GatherAttributes& a) {
  const int index = b.add_read(1);
  const int index_rank = b.operand(1).rank();
  for (int d = 0; d < index_rank; ++d) add_term(b.read(index).index[at(d)].linear, a.axis + d);
  const int data = b.add_read(0);
  for (int d = 0; d < b.operand(0).rank(); ++d) {
    IndexExpr& expr = b.read(data).index[at(d)];
    if (d == a.axis) {
      expr.gathered = index;
      expr.gathered_extent = b.operand(0).shape[at(d)];
    } else {
      add_term(expr.linear, d < a.axis ? d : d + index_rank - 1);
    }
  }
  b.body_read(data);
}

void form_op(FormBuilder& b, const IotaAttributes& a) {
  IndexExpr index;
  add_term(index.linear, a.axis);
  b.body_index(b.result().element, std::move(index));
}

void form_op(FormBuilder& b, const MapAttributes& a, int operands) {
  std::vector<int> arguments;
  for (int k = 0; k < operands; ++k) {
    const int read = b.add_read(k);
    for (int d = 0; d < b.rank(); ++d) add_term(b.read(read).index[at(d)].linear, d);
    arguments.push_back(b.body_read(read));
  }
  b.body_apply(a.op, b.result().element, std::move(arguments));
}

void form_op(FormBuilder& b, const PadAttributes& a) {
  const int read = b.add_read(0);
  const auto may_pad = [](const Dim& padding) {
    const std::optional<int64_t> most = padding.upper_bound();
    return !most || *most > 0;
  };
  for (int d = 0; d < b.rank(); ++d) {
    LinearIndex& index = b.read(read).index[at(d)].linear;
    index.constant = Dim(0) - a.low[at(d)];
    add_term(index, d);
    if (may_pad(a.low[at(d)]) || may_pad(a.high[at(d)])) b.guard(read, d);
  }
  if (b.read(read).guards.empty()) {
    b.body_read(read);
    return;
  }
  b.body_piece(read, b.body_read(b.add_read(1)));
}

void form_op(FormBuilder& b, const ReduceAttributes& a) {
  const int read = b.add_read(0);
  int axis = 0;
  for (int d = 0; d < b.operand(0).rank(); ++d) {
    const bool reduced = std::ranges::binary_search(a.axes, d);
    const int on = reduced ? b.add_reduction_axis(b.operand(0).shape[at(d)]) : axis++;
    add_term(b.read(read).index[at(d)].linear, on);
  }
  b.body_accumulated_read(read);
  b.form.accumulation = Accumulation{a.combine, accumulator_of(b.result().element), false, false};
}

void form_op(FormBuilder& b, const ReshapeAttributes&) {
  const int read = b.add_read(0);
  b.read(read).index = reshape_index(b.operand(0).shape, b.form.axes);
  b.body_read(read);
}

void form_op(FormBuilder& b, const SliceAttributes& a) {
  const int read = b.add_read(0);
  for (int d = 0; d < b.rank(); ++d) {
    LinearIndex& index = b.read(read).index[at(d)].linear;
    index.constant = a.starts[at(d)];
    add_term(index, d, a.steps[at(d)]);
  }
  b.body_read(read);
}

void form_op(FormBuilder& b, const TransposeAttributes& a) {
  const int read = b.add_read(0);
  for (int d = 0; d < b.rank(); ++d) add_term(b.read(read).index[at(a.permutation[at(d)])].linear, d);
  b.body_read(read);
}

void form_op(FormBuilder& b, const WindowReduceAttributes& a) {
  const int read = b.add_read(0);
  const int spatial = static_cast<int>(a.window.size()), first = b.rank() - spatial;
  for (int d = 0; d < first; ++d) add_term(b.read(read).index[at(d)].linear, d);
  for (int d = 0; d < spatial; ++d)
    add_window_index(b, {read, first + d, first + d, b.add_reduction_axis(a.window[at(d)]), a.strides[at(d)],
                         a.dilations[at(d)], a.pad_low[at(d)], a.pad_high[at(d)]});
  b.body_accumulated_read(read);
  b.form.accumulation = Accumulation{a.combine, accumulator_of(b.result().element), false, true};
}

}  // namespace

bool has_form(const Graph& graph, NodeId node) {
  const Op op = graph.node(node).op;
  return op == Op::iota || (kind_of(op) != Kind::source && !stands_alone(graph, node));
}

Form form_of(const Graph& graph, NodeId id) {
  check(has_form(graph, id), "a form is asked of a source, a loop or a branch");
  const Node& node = graph.node(id);
  FormBuilder builder(graph, id);
  const int operands = static_cast<int>(node.operands.size());
  std::visit(
      [&](const auto& a) {
        if constexpr (requires { form_op(builder, a); })
          form_op(builder, a);
        else if constexpr (requires { form_op(builder, a, operands); })
          form_op(builder, a, operands);
        else
          throw InternalError("an operation has no form");
      },
      node.attributes);
  return std::move(builder.form);
}

}  // namespace fusewise::graph
