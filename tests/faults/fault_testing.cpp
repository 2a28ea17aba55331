#include "faults/fault_testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>

#include "graph/text.h"
#include "import/import.h"
#include "support/random_graphs/run_symbols.h"

namespace fusewise::test {

using compiler::Numerics;
using fusion::FusionMode;
using graph::Tensor;

Tensor tensor(DataType type, std::vector<int64_t> shape, const std::vector<double>& values) {
  Tensor result(type, std::move(shape));
  const auto size = static_cast<size_t>(bytes_of(type));
  for (size_t i = 0; i < values.size(); ++i) {
    const Scalar value = is_float(type) ? Scalar{DataType::float64, values[i], 0}
                                        : Scalar{DataType::int64, 0, static_cast<int64_t>(values[i])};
    store_scalar(result.mutable_bytes().data() + i * size, convert(value, type));
  }
  return result;
}

Tensor floats(std::vector<int64_t> shape, const std::vector<double>& values) {
  return tensor(DataType::float32, std::move(shape), values);
}

Tensor ramp(std::vector<int64_t> shape, double first, double step, DataType type) {
  std::vector<double> values(static_cast<size_t>(graph::element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + step * static_cast<double>(i);
  return tensor(type, std::move(shape), values);
}

std::vector<double> numbers(const Tensor& t) {
  std::vector<double> result;
  const auto size = static_cast<size_t>(bytes_of(t.element));
  for (int64_t i = 0; i < t.count(); ++i)
    result.push_back(
        convert(load_scalar(t.bytes().data() + static_cast<size_t>(i) * size, t.element), DataType::float64)
            .f);
  return result;
}

GraphCase imported(const OnnxBuilder& model, std::vector<Tensor> inputs) {
  auto owner = std::make_shared<const std::string>(model.serialize());
  GraphCase result;
  result.graph = import_onnx(std::as_bytes(std::span(*owner)), owner, "", {});
  result.inputs = std::move(inputs);
  result.symbols = run_symbols(result.graph, result.inputs);
  return result;
}

namespace {

std::vector<GraphSettings> all_ways(bool compiled) {
  std::vector<GraphSettings> ways;
  for (const Numerics numerics : {Numerics::strict, Numerics::default_}) {
    for (const FusionMode fusion : {FusionMode::on, FusionMode::operators, FusionMode::off})
      ways.push_back({numerics, fusion, "native", 2,
                      compiled && fusion == FusionMode::on ? Execution::compiled : Execution::passed, 0});
    for (uint64_t plan = 1; plan <= 2; ++plan)
      ways.push_back({numerics, FusionMode::on, "x86-64-v3", 1, Execution::lowered, plan});
  }
  return ways;
}

std::string difference(const Tensor& t, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> actual = numbers(t);
  if (actual.size() != expected.size())
    return fmt::format("{} elements, not {}", actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], e = expected[i];
    const bool same = (std::isnan(a) && std::isnan(e)) || (a == e && std::signbit(a) == std::signbit(e)) ||
                      (tolerance > 0 && std::abs(a - e) <= tolerance * std::max(1.0, std::abs(e)));
    if (!same) return fmt::format("element {} is {}, not {}", i, a, e);
  }
  return {};
}

}  // namespace

void expect_right(const GraphCase& what, const Expected& expected, double tolerance, bool compiled) {
  const GraphOracle oracle(what);
  for (const GraphSettings& way : all_ways(compiled)) {
    SCOPED_TRACE(to_text(way));
    try {
      const std::vector<Tensor> outputs = outputs_of(what, way);
      EXPECT_EQ(oracle.judge(outputs, way.numerics), "") << graph::print(what.graph);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(difference(outputs.at(i), expected[i], tolerance), "") << "output " << i << "\n"
                                                                         << graph::print(what.graph);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << graph::print(what.graph);
    }
  }
}

void expect_right(const OnnxBuilder& model, std::vector<Tensor> inputs, const Expected& expected,
                  double tolerance, bool compiled) {
  expect_right(imported(model, std::move(inputs)), expected, tolerance, compiled);
}

OnnxTensor initializer_of(const std::string& name, const Tensor& t) {
  return onnx_tensor(name, t.element, t.shape, std::vector<std::byte>(t.bytes().begin(), t.bytes().end()));
}

namespace {

// `fixed(i)`: whether operand i is an initializer.
OnnxBuilder node_model(int64_t opset, const std::string& op_type, const std::vector<Tensor>& inputs,
                       OnnxAttributes attributes, DataType result, const std::function<bool(size_t)>& fixed) {
  OnnxBuilder model(opset);
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    if (fixed(i)) {
      names.push_back(model.initializer(initializer_of(name, inputs[i])));
    } else {
      names.push_back(
          model.input(name, inputs[i].element, OnnxShape(inputs[i].shape.begin(), inputs[i].shape.end())));
    }
  }
  model.output_without_shape(model.node(op_type, names, std::move(attributes)), result);
  return model;
}

}  // namespace

OnnxAttributes cast_to(DataType type) {
  return {{"to", OnnxAttributeValue(int64_t{onnx_element_type(type)})}};
}

void expect_node(int64_t opset, const std::string& op_type, const std::vector<Tensor>& inputs,
                 OnnxAttributes attributes, DataType result, const std::vector<double>& expected,
                 double tolerance) {
  // None fixed, all fixed, then one at a time.
  for (size_t way = 0; way < inputs.size() + 2 - (inputs.size() == 1 ? 1 : 0); ++way) {
    SCOPED_TRACE(fmt::format("{}, way {}", op_type, way));
    const auto fixed = [&](size_t i) { return way == 1 || (way > 1 && way - 2 == i); };
    std::vector<Tensor> given;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!fixed(i)) given.push_back(inputs[i]);
    expect_right(node_model(opset, op_type, inputs, attributes, result, fixed), given, {expected}, tolerance,
                 way == 0);
  }
}

}  // namespace fusewise::test
