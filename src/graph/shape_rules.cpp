#include "graph/shape_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.h"
#include "graph/host_rules.h"

namespace fusewise::graph {

namespace {

// What a rule sees, and where it leaves its requirements.
class Rule {
 public:
  Rule(Op op, std::span<const TensorType> operands, const std::optional<TensorType>& stated)
      : op_(op), operands_(operands), stated_(stated) {}

  const TensorType& operand(size_t i) const { return operands_[i]; }
  std::span<const TensorType> operands() const { return operands_; }

  [[noreturn]] void fail(const std::string& words) const {
    throw UserError(fmt::format("{}: {}", name_of(op_), words));
  }
  void expect(bool condition, const char* words) const {
    if (!condition) fail(words);
  }
  const TensorType& stated() const {
    if (!stated_) throw InternalError(fmt::format("the result type of {} is not stated", name_of(op_)));
    return *stated_;
  }
  // The dimension that a and b both are, a constant if one of them is.
  Dim same(const Dim& a, const Dim& b, const char* what) {
    if (a == b) return a;
    if (provably_different(a, b))
      fail(fmt::format("{} {} and {} differ", what, a.to_string(), b.to_string()));
    requirements.push_back({Requirement::Kind::equal, a, b});
    return b.is_constant() ? b : a;
  }
  void at_least(const Dim& a, const Dim& b, const char* what) {
    const Dim difference = a - b;
    const std::optional<int64_t> low = difference.lower_bound(), high = difference.upper_bound();
    if (low && *low >= 0) return;
    if (high && *high < 0) fail(fmt::format("{}: {} is less than {}", what, a.to_string(), b.to_string()));
    requirements.push_back({Requirement::Kind::at_least, a, b});
  }
  void axis(int axis, int rank, const char* what = "axis") const {
    if (axis < 0 || axis >= rank) fail(fmt::format("{} {} is outside a tensor of rank {}", what, axis, rank));
  }
  void computable(DataType type) const {
    if (!is_computable(type)) fail(fmt::format("nothing computes in the type {}", name_of(type)));
  }
  void sizes(size_t expected, std::initializer_list<size_t> lengths, const char* what) const {
    for (size_t length : lengths)
      if (length != expected)
        fail(fmt::format("{}: {} entries are needed, and there are {}", what, expected, length));
  }

  std::vector<Requirement> requirements;

 private:
  Op op_;
  std::span<const TensorType> operands_;
  const std::optional<TensorType>& stated_;
};

// Extent of a sliding window's positions along one dimension.
struct WindowDimension {
  Dim extent, window;
  int64_t stride, dilation, pad_low, pad_high;
};

Dim window_positions(Rule& rule, const WindowDimension& d) {
  rule.expect(d.stride >= 1, "a stride is less than 1");
  rule.expect(d.dilation >= 1, "a dilation is less than 1");
  const Dim reach = (d.window - 1) * Dim(d.dilation) + 1;
  const Dim padded = d.extent + Dim(d.pad_low) + Dim(d.pad_high);
  rule.at_least(padded, 0, "negative padding crops more than there is");
  const Dim positions = floor_div(padded - reach, d.stride) + 1;
  rule.at_least(positions, 0, "the window does not fit into the padded operand");
  return positions;
}

TensorType infer_op(Rule& rule, const BroadcastAttributes& a) {
  const TensorType& x = rule.operand(0);
  rule.sizes(x.shape.size(), {a.dims.size()}, "dims");
  const int rank = static_cast<int>(a.shape.size());
  for (size_t d = 0; d < a.dims.size(); ++d) {
    rule.axis(a.dims[d], rank, "dims entry");
    rule.expect(d == 0 || a.dims[d - 1] < a.dims[d], "dims do not increase");
    const Dim& from = x.shape[d];
    const Dim& to = a.shape[static_cast<size_t>(a.dims[d])];
    if (from.is(1) || from == to) continue;
    if (provably_different(from, to) && never_one(from))
      rule.fail(fmt::format("dimension {} of {} does not become {}", d, to_string(x), to.to_string()));
    rule.requirements.push_back({Requirement::Kind::equal_or_one, from, to});
  }
  return {x.element, a.shape};
}

TensorType infer_op(Rule& rule, const ConcatAttributes& a) {
  TensorType result = rule.operand(0);
  rule.axis(a.axis, result.rank());
  const size_t axis = static_cast<size_t>(a.axis);
  for (const TensorType& x : rule.operands().subspan(1)) {
    if (x.element != result.element || x.rank() != result.rank())
      rule.fail(fmt::format("{} and {} cannot be joined", to_string(rule.operand(0)), to_string(x)));
    for (size_t d = 0; d < x.shape.size(); ++d)
      result.shape[d] =
          d == axis ? result.shape[d] + x.shape[d] : rule.same(result.shape[d], x.shape[d], "dimensions");
  }
  return result;
}

TensorType infer_op(Rule& rule, const ConstantAttributes&) {
  const TensorType& type = rule.stated();
  for (const Dim& d : type.shape) rule.expect(d.is_constant(), "the shape is not constant");
  return type;
}

TensorType infer_op(Rule& rule, const ConvolutionAttributes& a) {
  const TensorType& x = rule.operand(0);
  const TensorType& w = rule.operand(1);
  rule.computable(x.element);
  rule.expect(x.element == w.element, "the operands have different types");
  rule.expect(x.element != DataType::boolean, "nothing is added up in the type boolean");
  rule.expect(x.rank() >= 2 && x.rank() == w.rank(), "the operands need the same rank, at least 2");
  const size_t spatial = x.shape.size() - 2;
  rule.sizes(spatial, {a.strides.size(), a.dilations.size(), a.pad_low.size(), a.pad_high.size()},
             "strides, dilations and padding");
  rule.expect(a.groups >= 1, "there is less than one group");
  rule.same(x.shape[1], w.shape[1] * Dim(a.groups), "the channels");
  if (w.shape[0].is_constant() && w.shape[0].value() % a.groups != 0)
    rule.fail(fmt::format("{} output channels do not make {} groups", w.shape[0].to_string(), a.groups));
  rule.same(modulo(w.shape[0], a.groups), 0, "what output channels exceed the groups by");
  TensorType result{x.element, {x.shape[0], w.shape[0]}};
  for (size_t d = 0; d < spatial; ++d)
    result.shape.push_back(window_positions(
        rule, {x.shape[d + 2], w.shape[d + 2], a.strides[d], a.dilations[d], a.pad_low[d], a.pad_high[d]}));
  return result;
}

TensorType infer_op(Rule& rule, const DimsAttributes& a) {
  if (!a.scalar) return {DataType::int64, {Dim(static_cast<int64_t>(a.dims.size()))}};
  rule.sizes(1, {a.dims.size()}, "dims of a scalar");
  return {DataType::int64, {}};
}

// Marks the dimensions and refuses one that is named twice.
void mark(const Rule& rule, std::vector<bool>& used, const std::vector<int>& dims) {
  for (int d : dims) {
    rule.axis(d, static_cast<int>(used.size()), "dimension");
    if (used[static_cast<size_t>(d)]) rule.fail(fmt::format("dimension {} is named twice", d));
    used[static_cast<size_t>(d)] = true;
  }
}

TensorType infer_op(Rule& rule, const DotAttributes& a) {
  const TensorType& x = rule.operand(0);
  const TensorType& y = rule.operand(1);
  rule.computable(x.element);
  rule.expect(x.element == y.element, "the operands have different types");
  rule.expect(x.element != DataType::boolean, "nothing is added up in the type boolean");
  rule.expect(a.lhs_batch.size() == a.rhs_batch.size(),
              "the operands have different numbers of batch dimensions");
  rule.expect(a.lhs_contract.size() == a.rhs_contract.size(),
              "the operands have different numbers of contracted dimensions");
  std::vector<bool> x_used(x.shape.size()), y_used(y.shape.size());
  mark(rule, x_used, a.lhs_batch);
  mark(rule, x_used, a.lhs_contract);
  mark(rule, y_used, a.rhs_batch);
  mark(rule, y_used, a.rhs_contract);
  const auto dim = [](const TensorType& type, int d) { return type.shape[static_cast<size_t>(d)]; };
  TensorType result{x.element, {}};
  for (size_t i = 0; i < a.lhs_batch.size(); ++i)
    result.shape.push_back(rule.same(dim(x, a.lhs_batch[i]), dim(y, a.rhs_batch[i]), "batch dimensions"));
  for (size_t i = 0; i < a.lhs_contract.size(); ++i)
    rule.same(dim(x, a.lhs_contract[i]), dim(y, a.rhs_contract[i]), "contracted dimensions");
  for (size_t d = 0; d < x_used.size(); ++d)
    if (!x_used[d]) result.shape.push_back(x.shape[d]);
  for (size_t d = 0; d < y_used.size(); ++d)
    if (!y_used[d]) result.shape.push_back(y.shape[d]);
  return result;
}

TensorType infer_op(Rule& rule, const GatherAttributes& a) {
  const TensorType& data = rule.operand(0);
  const TensorType& index = rule.operand(1);
  rule.axis(a.axis, data.rank());
  rule.expect(is_integer(index.element) && is_computable(index.element), "the index is not made of integers");
  const auto axis = data.shape.begin() + a.axis;
  rule.at_least(*axis, min(product(index.shape), 1), "the gathered dimension is empty");
  TensorType result{data.element, {data.shape.begin(), axis}};
  result.shape.insert(result.shape.end(), index.shape.begin(), index.shape.end());
  result.shape.insert(result.shape.end(), axis + 1, data.shape.end());
  return result;
}

TensorType infer_op(Rule& rule, const InputAttributes&) { return rule.stated(); }

TensorType infer_op(Rule& rule, const IotaAttributes& a) {
  const TensorType& type = rule.stated();
  rule.computable(type.element);
  rule.axis(a.axis, type.rank());
  return type;
}

TensorType infer_op(Rule& rule, const MapAttributes& a) {
  const std::span<const TensorType> operands = rule.operands();
  const std::string name(name_of(a.op));
  if (operands.size() != static_cast<size_t>(arity_of(a.op)))
    rule.fail(fmt::format("{} takes {} operands, not {}", name, arity_of(a.op), operands.size()));
  std::vector<DataType> types;
  for (const TensorType& x : operands) {
    rule.computable(x.element);
    types.push_back(x.element);
    if (x.shape != operands[0].shape)
      rule.fail(fmt::format("{} of different shapes {} and {}", name, to_string(operands[0].shape),
                            to_string(x.shape)));
  }
  if (a.op == ScalarOp::cast) {
    rule.computable(rule.stated().element);
    return {rule.stated().element, operands[0].shape};
  }
  const std::optional<DataType> element = result_type_of(a.op, types);
  if (!element) {
    std::string list;
    for (DataType type : types) list += fmt::format("{}{}", list.empty() ? "" : ", ", name_of(type));
    rule.fail(fmt::format("{} is not defined for operands of type {}", name, list));
  }
  return {*element, operands[0].shape};
}

TensorType infer_op(Rule& rule, const PadAttributes& a) {
  TensorType result = rule.operand(0);
  const TensorType& value = rule.operand(1);
  rule.expect(value.rank() == 0 && value.element == result.element,
              "the pad value is not a scalar of the operand's type");
  rule.sizes(result.shape.size(), {a.low.size(), a.high.size()}, "padding");
  for (size_t d = 0; d < result.shape.size(); ++d) {
    result.shape[d] = result.shape[d] + a.low[d] + a.high[d];
    rule.at_least(result.shape[d], 0, "negative padding crops more than there is");
  }
  return result;
}

void check_combine(const Rule& rule, Combine combine, DataType type) {
  rule.computable(type);
  rule.expect(combine == Combine::max || combine == Combine::min || type != DataType::boolean,
              "only max and min combine values of type boolean");
}

TensorType infer_op(Rule& rule, const PrefixAttributes& a) {
  const TensorType& x = rule.operand(0);
  check_combine(rule, a.combine, x.element);
  rule.expect(x.element != DataType::boolean, "booleans have no running values");
  rule.axis(a.axis, x.rank());
  return x;
}

TensorType infer_op(Rule& rule, const ScatterAttributes& a) {
  const TensorType &data = rule.operand(0), &index = rule.operand(1), &updates = rule.operand(2);
  rule.axis(a.axis, data.rank());
  rule.expect(is_integer(index.element) && is_computable(index.element), "the index is not made of integers");
  rule.expect(data.element == updates.element, "data and updates have different types");
  rule.expect(data.rank() == updates.rank() && data.rank() == index.rank(),
              "data, index and updates have different ranks");
  rule.computable(data.element);
  const bool keeps = a.update == Update::replace || a.update == Update::max || a.update == Update::min;
  rule.expect(keeps || data.element != DataType::boolean, "nothing is added up in the type boolean");
  for (size_t d = 0; d < data.shape.size(); ++d) {
    if (static_cast<int>(d) != a.axis)
      rule.at_least(data.shape[d], updates.shape[d], "the updates go beyond the data");
    if (!index.shape[d].is(1)) rule.same(index.shape[d], updates.shape[d], "dimensions of index and updates");
  }
  return data;
}

TensorType infer_op(Rule& rule, const ReduceAttributes& a) {
  const TensorType& x = rule.operand(0);
  check_combine(rule, a.combine, x.element);
  std::vector<bool> reduced(x.shape.size());
  mark(rule, reduced, a.axes);
  rule.expect(std::is_sorted(a.axes.begin(), a.axes.end()), "the axes are not sorted");
  TensorType result{x.element, {}};
  for (size_t d = 0; d < reduced.size(); ++d)
    if (!reduced[d]) result.shape.push_back(x.shape[d]);
  return result;
}

TensorType infer_op(Rule& rule, const ReshapeAttributes& a) {
  const TensorType& x = rule.operand(0);
  const Dim from = product(x.shape), to = product(a.shape);
  if (from != to && provably_different(from, to))
    rule.fail(fmt::format("{} has {} elements, and the shape {} has {}", to_string(x), from.to_string(),
                          to_string(a.shape), to.to_string()));
  rule.same(from, to, "numbers of elements");
  return {x.element, a.shape};
}

TensorType infer_op(Rule& rule, const ResultAttributes&) { return rule.operand(0); }

TensorType infer_op(Rule& rule, const SliceAttributes& a) {
  const TensorType& x = rule.operand(0);
  rule.sizes(x.shape.size(), {a.starts.size(), a.steps.size(), a.shape.size()}, "starts, steps and shape");
  for (size_t d = 0; d < x.shape.size(); ++d) {
    rule.expect(a.steps[d] != 0, "a step is 0");
    rule.at_least(a.shape[d], 0, "the size of the slice");
    if (a.shape[d].is(0)) continue;
    const Dim last = a.starts[d] + (a.shape[d] - 1) * Dim(a.steps[d]);
    const Dim least = a.steps[d] > 0 ? a.starts[d] : last, most = a.steps[d] > 0 ? last : a.starts[d];
    // An empty slice may start anywhere: a condition counts where there is an element.
    const auto inside = [&](const Dim& distance, const char* what) {
      const std::optional<int64_t> low = distance.lower_bound();
      if (!low || *low < 0)
        rule.at_least(a.shape[d].is_constant() ? distance : distance * min(a.shape[d], 1), 0, what);
    };
    inside(least, "the slice begins before its operand");
    inside(x.shape[d] - 1 - most, "the slice ends behind its operand");
  }
  return {x.element, a.shape};
}

TensorType infer_op(Rule& rule, const TransposeAttributes& a) {
  const TensorType& x = rule.operand(0);
  rule.sizes(x.shape.size(), {a.permutation.size()}, "permutation");
  std::vector<bool> used(x.shape.size());
  mark(rule, used, a.permutation);
  TensorType result{x.element, {}};
  for (int d : a.permutation) result.shape.push_back(x.shape[static_cast<size_t>(d)]);
  return result;
}

TensorType infer_op(Rule& rule, const WindowReduceAttributes& a) {
  TensorType result = rule.operand(0);
  check_combine(rule, a.combine, result.element);
  const size_t spatial = a.window.size();
  if (spatial > result.shape.size())
    rule.fail(fmt::format("a window of {} dimensions over {}", spatial, to_string(result)));
  rule.sizes(spatial, {a.strides.size(), a.dilations.size(), a.pad_low.size(), a.pad_high.size()},
             "strides, dilations and padding");
  const size_t first = result.shape.size() - spatial;
  for (size_t d = 0; d < spatial; ++d) {
    rule.expect(a.window[d] >= 1, "a window is less than 1");
    result.shape[first + d] = window_positions(rule, {result.shape[first + d], Dim(a.window[d]), a.strides[d],
                                                      a.dilations[d], a.pad_low[d], a.pad_high[d]});
  }
  return result;
}

void check_attributes(Op op, const Attributes& attributes) {
  if (attributes.index() != static_cast<size_t>(op))
    throw InternalError(fmt::format("{} has the attributes of another operation", name_of(op)));
}

}  // namespace

Inference infer(Op op, std::span<const TensorType> operands, const Attributes& attributes,
                const std::optional<TensorType>& stated) {
  Rule rule(op, operands, stated);
  check_attributes(op, attributes);
  const int arity = arity_of(op);
  if (arity < 0 ? operands.empty() : operands.size() != static_cast<size_t>(arity))
    rule.fail(fmt::format("takes {} operands, not {}", arity < 0 ? "one or more" : std::to_string(arity),
                          operands.size()));
  Inference inference;
  std::visit(
      [&](const auto& a) {
        if constexpr (requires { infer_op(rule, a); })
          inference.results.push_back(infer_op(rule, a));
        else if constexpr (std::is_same_v<std::decay_t<decltype(a)>, HostAttributes>)
          inference = infer_host(a, operands);
        else
          throw InternalError("a loop or a branch is asked for its type without its bodies");
      },
      attributes);
  for (const TensorType& type : inference.results)
    for (const Dim& d : type.shape)
      if (d.is_constant() && d.value() < 0)
        rule.fail(fmt::format("the result type {} has a negative dimension", to_string(type)));
  std::ranges::move(rule.requirements, std::back_inserter(inference.requirements));
  return inference;
}

std::vector<TensorType> infer_results(Op op, std::span<const TensorType> operands,
                                      const Attributes& attributes, const std::optional<TensorType>& stated) {
  return infer(op, operands, attributes, stated).results;
}

Inference infer(const Graph& graph, const Node& node) {
  std::vector<TensorType> operands;
  operands.reserve(node.operands.size());
  for (const Value& operand : node.operands) operands.push_back(graph.type(operand));
  if (kind_of(node.op) == Kind::control) {
    check_attributes(node.op, node.attributes);
    return infer_control(node.op, operands, node.attributes, node.bodies);
  }
  return infer(node.op, operands, node.attributes, node.results.at(0));
}

std::vector<Requirement> requirements_of(const Graph& graph, NodeId id) {
  return infer(graph, graph.node(id)).requirements;
}

std::vector<Requirement> requirements_of(const Graph& graph) {
  std::vector<Requirement> all;
  std::set<std::string> seen;
  for (NodeId id = 0; id < graph.size(); ++id)
    for (Requirement& requirement : requirements_of(graph, id))
      if (seen.insert(to_string(requirement)).second) all.push_back(std::move(requirement));
  return all;
}

}  // namespace fusewise::graph
