#include "graph/interpreter/double_interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/float_environment.h"
#include "graph/interpreter/bind.h"
#include "graph/interpreter/bounded.h"
#include "graph/interpreter/bounded_evaluate.h"
#include "graph/interpreter/control.h"
#include "graph/interpreter/liveness.h"
#include "graph/interpreter/slices.h"
#include "graph/sweep.h"
#include "numerics/scalar_op.h"

namespace fusewise::graph {

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
    case Kind::control:
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

namespace {

// Every element may be anything.
BoundedValue without_bound(BoundedValue value) {
  BoundedTensor planes = planes_of(value);
  std::ranges::fill(planes.bound.mutable_as<double>(), unknown);
  return {value.element, std::nullopt, std::move(planes.value), std::move(planes.bound)};
}

class DoubleInterpreter {
 public:
  // What bodies require is checked with the node that has them.
  DoubleInterpreter(const Graph& graph, SymbolValues symbols, ThreadPool* pool, ErrorModel model,
                    bool is_body = false)
      : graph_(graph), symbols_(std::move(symbols)), pool_(pool), model_(model), values_(graph.size()) {
    if (!is_body) requirements_.emplace(graph);
    check_requirements();
  }

  std::vector<BoundedValue> run(std::span<const BoundedValue> inputs, const InterpretOptions& options) {
    const std::vector<Value> wanted = wanted_values(graph_, options.also);
    const std::vector<NodeId> last = last_uses(graph_, wanted);
    for (size_t i = 0; i < inputs.size(); ++i) values_[graph_.inputs[i].node] = {inputs[i]};
    evaluate_in_order(graph_, last, options.progress, values_, [this](NodeId id) { return evaluate(id); });
    std::vector<BoundedValue> results;
    for (const Value& value : wanted) results.push_back(get(value));
    return results;
  }

 private:
  void check_requirements() {
    if (requirements_) requirements_->check(symbols_);
  }
  const BoundedValue& get(const Value& value) const { return values_[value.node].at(value.result); }

  std::vector<BoundedValue> evaluate(NodeId id) {
    const Node& node = graph_.node(id);
    if (kind_of(node.op) == Kind::control) return evaluate_control(node);
    if (is_opaque(graph_, id)) return evaluate_opaque_node(id);
    if (node.op == Op::result) return {get(node.operands[0])};
    if (all_exact(node) && keeps_exact(node))
      return {exact_value(evaluate_node(graph_, id, exact_operands(node), symbols_, pool_))};
    std::vector<BoundedTensor> operands;
    for (const Value& v : node.operands) operands.push_back(planes_of(get(v)));
    const TensorType& type = node.results[0];
    const Evaluation e{node, evaluate_shape(type.shape, symbols_), type.element, {}, symbols_, pool_};
    BoundedTensor result = evaluate_planes(e, operands);
    return {{type.element, std::nullopt, std::move(result.value), std::move(result.bound)}};
  }

  // Where it is not certain which way control goes, nothing is known of the results.
  std::vector<BoundedValue> evaluate_control(const Node& node) {
    std::vector<BoundedValue> operands;
    for (const Value& v : node.operands) operands.push_back(get(v));
    Bodies bodies{symbols_, pool_, model_};
    std::vector<BoundedValue> results = run_control(node, operands, symbols_, bodies);
    if (!bodies.is_certain)
      for (BoundedValue& result : results) result = without_bound(std::move(result));
    return results;
  }

  // What control.h asks for. Bodies are nested no deeper than deepest_body.
  struct Bodies {
    using Value = BoundedValue;
    const SymbolValues& symbols;
    ThreadPool* pool;
    ErrorModel model;
    bool is_certain = true;

    std::vector<BoundedValue> run(const Graph& body, const std::vector<BoundedValue>& inputs) const {
      return DoubleInterpreter(body, symbols, pool, model, true).run(inputs, {});
    }
    double scalar(const BoundedValue& value) {
      const BoundedTensor planes = planes_of(value);
      is_certain = is_certain && planes.bound.as<double>()[0] == 0;
      return planes.value.as<double>()[0];
    }
    bool truth(const BoundedValue& value) { return scalar(value) > 0.5; }
    int64_t count(const BoundedValue& value) {
      if (value.exact) return value.exact->as<int64_t>()[0];
      return convert({DataType::float64, scalar(value), 0}, DataType::int64).i;
    }
    static BoundedValue number(int64_t value) {
      return exact_value(Tensor::from<int64_t>(DataType::int64, {}, {value}));
    }
    static BoundedValue slice(const BoundedValue& value, int64_t index) {
      if (value.exact) return exact_value(slice_of(*value.exact, index));
      return {value.element, std::nullopt, slice_of(value.value, index), slice_of(value.bound, index)};
    }
    BoundedValue stack(std::span<const BoundedValue> slices, const TensorType& type) const {
      const std::vector<int64_t> shape = evaluate_shape(type.shape, symbols);
      std::vector<Tensor> exact, values, bounds;
      for (const BoundedValue& slice : slices) {
        if (slice.exact) exact.push_back(*slice.exact);
        const BoundedTensor planes = planes_of(slice);
        values.push_back(planes.value);
        bounds.push_back(planes.bound);
      }
      if (exact.size() == slices.size()) return exact_value(stack_of(exact, type.element, shape));
      return {type.element, std::nullopt, stack_of(values, DataType::float64, shape),
              stack_of(bounds, DataType::float64, shape)};
    }
  };

  const Graph& graph_;
  SymbolValues symbols_;
  std::optional<Requirements> requirements_;
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
  std::vector<BoundedValue> evaluate_opaque_node(NodeId id) {
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
    check_requirements();
    std::vector<BoundedValue> values;
    for (Tensor& result : results) {
      BoundedValue value = exact_value(std::move(result));
      values.push_back(certain ? std::move(value) : without_bound(std::move(value)));
    }
    return values;
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
  const SymbolValues symbols = bind_symbols(graph, inputs);
  std::optional<ThreadPool> pool;
  if (options.threads > 1) pool.emplace(options.threads);
  DoubleInterpreter interpreter(graph, symbols, pool ? &*pool : nullptr, options.model);
  std::vector<BoundedValue> exact;
  for (const Tensor& input : inputs) exact.push_back(exact_value(input.aligned()));
  std::vector<BoundedTensor> results;
  for (const BoundedValue& value : interpreter.run(exact, options)) results.push_back(planes_of(value));
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
