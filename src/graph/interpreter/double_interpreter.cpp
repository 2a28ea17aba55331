#include "graph/interpreter/double_interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/float_environment.h"
#include "graph/interpreter/bind.h"
#include "graph/interpreter/bounded.h"
#include "graph/interpreter/bounded_evaluate.h"
#include "graph/interpreter/liveness.h"
#include "graph/sweep.h"
#include "numerics/scalar_op.h"

namespace fusewise::graph {

namespace {

// Exact operands give an exact result: nothing is rounded, or it is in one way only.
bool keeps_exact(const Node& node) {
  const DataType element = node.results[0].element;
  switch (kind_of(node.op)) {
    case Kind::source:
    case Kind::view:
    case Kind::gather:
    case Kind::opaque:
      return true;
    case Kind::reduce: {
      const Combine combine = attributes<ReduceAttributes>(node).combine;
      return !is_float(element) || combine == Combine::max || combine == Combine::min;
    }
    case Kind::window: {
      const Combine combine = attributes<WindowReduceAttributes>(node).combine;
      return !is_float(element) || combine == Combine::max || combine == Combine::min;
    }
    case Kind::sweep: {
      const std::optional<Combine> combine = sweep_of(node).combine;
      return !is_float(element) || !combine || combine == Combine::max || combine == Combine::min;
    }
    case Kind::contract:
      return !is_float(element);
    case Kind::map:
      break;
  }
  if (!is_float(element)) return true;
  switch (attributes<MapAttributes>(node).op) {
    case ScalarOp::abs:
    case ScalarOp::cast:
    case ScalarOp::ceil:
    case ScalarOp::floor:
    case ScalarOp::max:
    case ScalarOp::min:
    case ScalarOp::neg:
    case ScalarOp::round:
    case ScalarOp::select:
    case ScalarOp::sign:
    case ScalarOp::trunc:
      return true;
    default:
      return false;
  }
}

class DoubleInterpreter {
 public:
  DoubleInterpreter(const Graph& graph, SymbolValues symbols, ThreadPool* pool, ErrorModel model)
      : graph_(graph),
        symbols_(std::move(symbols)),
        requirements_(graph),
        pool_(pool),
        model_(model),
        values_(graph.size()) {
    requirements_.check(symbols_);
  }

  void set(NodeId id, BoundedValue value) {
    values_[id].clear();
    values_[id].push_back(std::move(value));
  }
  void free(NodeId id) { values_[id].clear(); }
  const BoundedValue& get(Value value) const { return values_[value.node][value.result]; }

  void evaluate(NodeId id) {
    const Node& node = graph_.node(id);
    if (is_opaque(graph_, id)) return evaluate_opaque_node(id);
    if (all_exact(node) && keeps_exact(node))
      return set(id, exact_value(evaluate_node(graph_, id, exact_operands(node), symbols_, pool_)));
    std::vector<BoundedTensor> operands;
    for (const Value& v : node.operands) operands.push_back(planes_of(get(v)));
    const TensorType& type = node.results[0];
    const Evaluation e{node, evaluate_shape(type.shape, symbols_), type.element, {}, symbols_, pool_};
    BoundedTensor result = evaluate_planes(e, operands);
    set(id, {type.element, std::nullopt, std::move(result.value), std::move(result.bound)});
  }

 private:
  const Graph& graph_;
  SymbolValues symbols_;
  Requirements requirements_;
  ThreadPool* pool_;
  ErrorModel model_;
  std::vector<std::vector<BoundedValue>> values_;  // the results of each node

  bool all_exact(const Node& node) const {
    return std::ranges::all_of(node.operands, [&](const Value& v) { return get(v).exact.has_value(); });
  }
  std::vector<Tensor> exact_operands(const Node& node) const {
    std::vector<Tensor> operands;
    for (const Value& v : node.operands) operands.push_back(*get(v).exact);
    return operands;
  }

  // A host function decides by its operands' values. Where they are not exact it sees them rounded to their type,
  // and nothing is known of what it makes, unless all of them turn out to have no error.
  void evaluate_opaque_node(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<Tensor> operands;
    bool certain = true;
    for (const Value& v : node.operands) {
      const BoundedValue& value = get(v);
      operands.push_back(value.exact ? *value.exact : rounded(value));
      certain = certain && (value.exact || std::ranges::all_of(value.bound.as<double>(),
                                                               [](double bound) { return bound == 0; }));
    }
    std::vector<Tensor> results = evaluate_opaque(graph_, id, operands, symbols_);
    requirements_.check(symbols_);
    values_[id].clear();
    for (Tensor& result : results) {
      BoundedValue value = exact_value(std::move(result));
      if (!certain) {
        BoundedTensor planes = planes_of(value);
        std::ranges::fill(planes.bound.mutable_as<double>(), unknown);
        value = {value.element, std::nullopt, std::move(planes.value), std::move(planes.bound)};
      }
      values_[id].push_back(std::move(value));
    }
  }

  static Tensor rounded(const BoundedValue& value) {
    Tensor result(value.element, value.value.shape);
    std::byte* to = result.mutable_bytes().data();
    const int bytes = bytes_of(value.element);
    for (const double number : value.value.as<double>()) {
      store_scalar(to, convert(Scalar{DataType::float64, number, 0}, value.element));
      to += bytes;
    }
    return result;
  }

  BoundedTensor evaluate_planes(const Evaluation& e, std::span<const BoundedTensor> x) const {
    switch (e.node.op) {
      case Op::map:
        return map_bounded(e, x);
      case Op::reduce:
        return reduce_bounded(e, x[0], model_);
      case Op::window_reduce:
        return window_reduce_bounded(e, x[0], model_);
      case Op::dot:
        return dot_bounded(e, x[0], x[1], model_);
      case Op::convolution:
        return convolution_bounded(e, x[0], x[1], model_);
      case Op::gather:
        return gather(e, x);
      case Op::prefix:
      case Op::scatter:
        return sweep_bounded(e, x, model_);
      default:
        break;
    }
    // Views move the elements of both planes.
    return {e.element, view(e, x, &BoundedTensor::value), view(e, x, &BoundedTensor::bound)};
  }

  static Tensor view(Evaluation e, std::span<const BoundedTensor> x, Tensor BoundedTensor::* plane) {
    std::vector<Tensor> operands;
    for (const BoundedTensor& operand : x) operands.push_back(operand.*plane);
    e.operands = operands;
    return evaluate_view(e);
  }

  // Where an index is not certain, nothing is known of what it picks.
  BoundedTensor gather(Evaluation e, std::span<const BoundedTensor> x) const {
    const auto moved = [&](const Tensor& data, const Tensor& index) {
      const std::vector<Tensor> operands{data, index};
      e.operands = operands;
      return evaluate_gather(e);
    };
    const BoundedValue& index_value = get(e.node.operands[1]);
    if (index_value.exact) {
      return {e.element, moved(x[0].value, *index_value.exact), moved(x[0].bound, *index_value.exact)};
    }
    const int64_t count = x[1].value.count();
    Tensor index(DataType::int64, x[1].value.shape);
    for (int64_t i = 0; i < count; ++i) {
      index.mutable_as<int64_t>()[static_cast<size_t>(i)] =
          convert({DataType::float64, x[1].value.as<double>()[static_cast<size_t>(i)], 0}, DataType::int64).i;
    }
    BoundedTensor result{e.element, moved(x[0].value, index), moved(x[0].bound, index)};
    const std::span<double> bound = result.bound.mutable_as<double>();
    const auto axis = static_cast<size_t>(attributes<GatherAttributes>(e.node).axis);
    const int64_t inner = element_count(std::span<const int64_t>(x[0].value.shape).subspan(axis + 1));
    for (size_t i = 0; i < bound.size(); ++i) {
      const int64_t picked = static_cast<int64_t>(i) / inner % count;
      if (x[1].bound.as<double>()[static_cast<size_t>(picked)] != 0) bound[i] = unknown;
    }
    return result;
  }
};

double distance_ratio(double actual, const Bounded& expected) {
  if (expected.error == unknown) return 0;
  if (!std::isfinite(expected.value) || !std::isfinite(actual))
    return is_within(actual, expected) ? 0 : unknown;
  const double distance = std::abs(actual - expected.value);
  return distance == 0 ? 0 : distance / expected.error;  // infinite where the bound is 0
}

}  // namespace

std::vector<BoundedTensor> interpret_bounded(const Graph& graph, std::span<const Tensor> inputs,
                                             const BoundedOptions& options) {
  const DefaultFloatEnvironment environment;
  SymbolValues symbols = bind_symbols(graph, inputs);
  const std::vector<Value> wanted = wanted_values(graph, options.also);
  const std::vector<NodeId> last = last_uses(graph, wanted);
  std::optional<ThreadPool> pool;
  if (options.threads > 1) pool.emplace(options.threads);

  DoubleInterpreter interpreter(graph, std::move(symbols), pool ? &*pool : nullptr, options.model);
  for (size_t i = 0; i < inputs.size(); ++i)
    interpreter.set(graph.inputs[i].node, exact_value(inputs[i].aligned()));
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (last[id] == no_node || node.op == Op::input) continue;
    if (options.progress) options.progress(id, graph.size());
    interpreter.evaluate(id);
    for (const Value& operand : node.operands) {
      if (last[operand.node] == id) interpreter.free(operand.node);
    }
  }
  std::vector<BoundedTensor> results;
  for (const Value& value : wanted) results.push_back(planes_of(interpreter.get(value)));
  return results;
}

Deviation worst_deviation(const BoundedTensor& expected, const Tensor& actual) {
  if (actual.element != expected.element || actual.shape != expected.value.shape) {
    throw UserError(fmt::format("a result is {}{} and should be {}{}", name_of(actual.element),
                                to_string(actual.shape), name_of(expected.element),
                                to_string(expected.value.shape)));
  }
  const std::span<const double> value = expected.value.as<double>(), bound = expected.bound.as<double>();
  Deviation worst;
  const int bytes = bytes_of(actual.element);
  for (size_t i = 0; i < value.size(); ++i) {
    const Scalar element =
        load_scalar(actual.bytes().data() + static_cast<int64_t>(i) * bytes, actual.element);
    const double number = convert(element, DataType::float64).f;
    const double ratio = distance_ratio(number, {value[i], bound[i]});
    worst.unbounded += bound[i] == unknown ? 1 : 0;
    if (worst.index >= 0 && !(ratio > worst.ratio)) continue;
    worst.index = static_cast<int64_t>(i);
    worst.actual = number;
    worst.value = value[i];
    worst.bound = bound[i];
    worst.ratio = ratio;
  }
  return worst;
}

}  // namespace fusewise::graph
