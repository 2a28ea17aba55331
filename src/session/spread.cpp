#include "session/spread.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "graph/interpreter/double_interpreter.h"
#include "numerics/error_bound.h"
#include "numerics/scalar_op.h"

namespace fusewise::session {
namespace {

using graph::Tensor;

bool decides(ScalarOp op) {
  switch (op) {
    case ScalarOp::ceil:
    case ScalarOp::floor:
    case ScalarOp::mod:
    case ScalarOp::remainder:
    case ScalarOp::round:
    case ScalarOp::sign:
    case ScalarOp::trunc:
      return true;
    case ScalarOp::is_inf:
    case ScalarOp::is_nan:
      return false;
    default:
      return class_of(op) == ScalarClass::compare;
  }
}

// Whether the node's own arithmetic rounds.
bool rounds(const graph::Node& node) {
  if (!node.bodies.empty() || !is_float(node.results[0].element)) return false;
  const bool is_cast = graph::kind_of(node.op) == graph::Kind::map &&
                       graph::attributes<graph::MapAttributes>(node).op == ScalarOp::cast;
  return is_cast || !graph::keeps_exact(node);
}

// What rounding leaves at least, in unit roundoffs: one at the most, of the last operation.
constexpr double least_error = 0.75;
// Among many elements. Other orders of adding and fewer roundings do not come near it.
constexpr double usual_leeway = 2;
// Of the largest errors: which element has them is chance.
constexpr double leeway_of_largest = 2;
// What may come of decisions that fall differently, as a share of the output.
constexpr double share_of_decisions = 2e-2;

struct Errors {
  double squares = 0, largest = 0;
  void add(double error) {
    squares += error * error;
    largest = std::max(largest, std::abs(error));
  }
  double mean(int64_t count) const { return std::sqrt(squares / static_cast<double>(count)); }
};

double value_at(const Tensor& tensor, int64_t index) {
  const auto bytes = static_cast<size_t>(bytes_of(tensor.element));
  return load_scalar(tensor.bytes().data() + static_cast<size_t>(index) * bytes, tensor.element).f;
}

}  // namespace

namespace {

// `is_body`: floating-point inputs were rounded before.
bool decides_on_rounded(const graph::Graph& graph, bool is_body) {
  // What follows from constants alone is decided once, in the interpreter's way.
  std::vector<bool> varies(graph.size()), rounded(graph.size());
  for (graph::NodeId id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    varies[id] = node.op == graph::Op::input;
    bool operands = varies[id] && is_body && is_float(node.results[0].element);
    for (const graph::Value& operand : node.operands) {
      varies[id] = varies[id] || varies[operand.node];
      operands = operands || rounded[operand.node];
    }
    if (operands && node.op == graph::Op::map) {
      const ScalarOp op = graph::attributes<graph::MapAttributes>(node).op;
      const bool whole = op == ScalarOp::cast && !is_float(node.results[0].element);
      if (decides(op) || whole) return true;
    }
    if (operands && graph::is_opaque(graph, id)) return true;
    for (const graph::Body& body : node.bodies)
      if (decides_on_rounded(*body, true)) return true;
    rounded[id] = varies[id] && (operands || !node.bodies.empty() || rounds(node));
  }
  return false;
}

}  // namespace

bool decides_on_rounded_numbers(const graph::Graph& graph) { return decides_on_rounded(graph, false); }

void hold_to_spread(OutputVerdict& verdict, const graph::BoundedTensor& exact, const Tensor& reference,
                    const Tensor& actual, bool decides) {
  if (!is_float(actual.element) || actual.element != reference.element || actual.shape != reference.shape ||
      actual.shape != exact.value.shape)
    return;
  const std::span<const double> values = exact.value.as<double>();
  Errors given, usual, magnitude;
  int64_t count = 0;
  for (int64_t i = 0, n = actual.count(); i < n; ++i) {
    const double value = values[static_cast<size_t>(i)], a = value_at(actual, i), r = value_at(reference, i);
    if (!std::isfinite(value) || !std::isfinite(a) || !std::isfinite(r)) continue;
    ++count;
    given.add(a - value);
    usual.add(r - value);
    magnitude.add(value);
  }
  if (count == 0) return;
  // Were errors independent, their mean squares would exceed each other by that much once in a million times.
  const double leeway = usual_leeway * std::pow(10.0, 6.0 / static_cast<double>(count));
  const double unit = least_error * unit_roundoff(actual.element), least = least_positive(actual.element);
  const auto share = [&](double error, double reference_error, double scale, double allowance) {
    const double own = std::max({reference_error, unit * scale, least});
    double allowed = allowance * own;
    if (decides) allowed = std::max(allowed, share_of_decisions * scale);
    verdict.spread = std::max(verdict.spread, error / own);
    return error / allowed;
  };
  const double mean = share(given.mean(count), usual.mean(count), magnitude.mean(count), leeway);
  // The largest error has no say where decisions fall differently in single elements.
  const double largest =
      decides ? 0 : share(given.largest, usual.largest, magnitude.largest, leeway * leeway_of_largest);
  verdict.spread_share = std::max(mean, largest);
  if (verdict.spread_share <= 1) return;
  verdict.passed = false;
  if (!verdict.note.empty()) verdict.note += "; ";
  verdict.note += fmt::format(
      "its errors are {:.3g} times those that the interpreter makes in the model's types, more than rounding "
      "explains",
      verdict.spread);
}

}  // namespace fusewise::session
