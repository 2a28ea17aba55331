// Building a model, importing it and interpreting the graph, in one step each.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "export/onnx_builder.h"
#include "graph/interpreter/interpreter.h"
#include "graph/interpreter/tensor.h"
#include "graph/verifier.h"
#include "import/import.h"

namespace fusewise::import_test {

using graph::Tensor;

inline graph::Graph imported(const std::string& bytes, const ImportOptions& options = {}) {
  auto owner = std::make_shared<const std::string>(bytes);
  graph::Graph result = import_onnx(std::as_bytes(std::span(*owner)), owner, "", options);
  graph::verify(result);
  return result;
}
inline graph::Graph imported(const OnnxBuilder& model) { return imported(model.serialize()); }

inline Tensor floats(std::vector<int64_t> shape, std::vector<float> values) {
  return Tensor::from(DataType::float32, std::move(shape), values);
}
inline Tensor ints(std::vector<int64_t> shape, std::vector<int64_t> values) {
  return Tensor::from(DataType::int64, std::move(shape), values);
}
// 0, 1, 2, ... less `offset`, times `scale`.
inline Tensor ramp(std::vector<int64_t> shape, float offset = 0, float scale = 1) {
  std::vector<float> values(static_cast<size_t>(graph::element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<float>(i) - offset) * scale;
  return floats(std::move(shape), std::move(values));
}

inline std::vector<Tensor> run(const OnnxBuilder& model, const std::vector<Tensor>& inputs) {
  return graph::interpret(imported(model), inputs);
}

template <class T = float>
std::vector<T> values(const Tensor& tensor) {
  const auto elements = tensor.as<T>();
  return {elements.begin(), elements.end()};
}

// A model of one node whose operands are inputs of these tensors' shapes, run on them.
inline std::vector<Tensor> run_node(int64_t opset, const std::string& op_type,
                                    const std::vector<Tensor>& inputs, OnnxAttributes attributes = {},
                                    DataType result = DataType::float32,
                                    const std::map<size_t, std::vector<int64_t>>& constants = {}) {
  OnnxBuilder model(opset);
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    OnnxShape shape(inputs[i].shape.begin(), inputs[i].shape.end());
    names.push_back(model.input("x" + std::to_string(i), inputs[i].element, shape));
  }
  for (const auto& [position, numbers] : constants) {
    while (names.size() < position) names.push_back("");
    const std::string name = "c" + std::to_string(position);
    names.push_back(model.ints(name, {static_cast<int64_t>(numbers.size())}, numbers));
  }
  model.node(op_type, names, std::move(attributes), "y");
  model.output_without_shape("y", result);
  return run(model, inputs);
}

}  // namespace fusewise::import_test
