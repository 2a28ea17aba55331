#include "session/onnx_copy.h"

#include <fmt/core.h>

#include <cstring>

#include "base/error.h"

namespace fusewise::session {
namespace {

std::vector<std::string> strings_of(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

DataType type_of(const onnx::ValueInfo& info) {
  return onnx::data_type_of_number(info.element_type).value_or(DataType::undefined);
}

OnnxShape shape_of(const onnx::ValueInfo& info) {
  OnnxShape shape;
  for (const onnx::DimInfo& dim : *info.shape)
    shape.push_back(dim.value ? OnnxDim(*dim.value) : OnnxDim(std::string(dim.symbol)));
  return shape;
}

std::shared_ptr<OnnxGraphBuilder> copy_of_graph(const onnx::Graph& graph, onnx::TensorLoader& loader) {
  auto copy = std::make_shared<OnnxGraphBuilder>();
  copy->name = graph.name;
  for (const onnx::ValueInfo& info : graph.inputs)
    copy->input(std::string(info.name), type_of(info), info.shape ? shape_of(info) : OnnxShape());
  for (const onnx::ValueInfo& info : graph.outputs) {
    if (info.shape)
      copy->output(std::string(info.name), type_of(info), shape_of(info));
    else
      copy->output_without_shape(std::string(info.name), type_of(info));
  }
  for (const onnx::Tensor& tensor : graph.initializers) copy->initializer(copy_of(tensor, loader));
  for (const onnx::Node& node : graph.nodes) copy->nodes.push_back(copy_of(node, loader));
  return copy;
}

OnnxAttributeValue value_of(const onnx::Attribute& attribute, onnx::TensorLoader& loader) {
  using Type = onnx::Attribute::Type;
  switch (attribute.type) {
    case Type::float_:
      return attribute.f;
    case Type::int_:
      return attribute.i;
    case Type::string:
      return std::string(attribute.s);
    case Type::tensor:
      return copy_of(attribute.tensors.at(0), loader);
    case Type::graph:
      return copy_of_graph(*attribute.graphs.at(0), loader);
    case Type::floats:
      return attribute.floats;
    case Type::ints:
      return attribute.ints;
    case Type::strings:
      return strings_of(attribute.strings);
    default:
      throw UnsupportedError(fmt::format(
          "not supported yet: writing attribute '{}', which is neither a number, a text, a tensor "
          "nor a graph",
          attribute.name));
  }
}

}  // namespace

OnnxTensor copy_of(const onnx::Tensor& tensor, onnx::TensorLoader& loader) {
  const graph::ConstantData data = loader.load(tensor);
  if (data.type.element == DataType::string)
    throw UnsupportedError(fmt::format("not supported yet: writing the texts of tensor '{}'", tensor.name));
  const auto fill = [bytes = data.bytes, owner = data.owner](std::span<std::byte> out) {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), std::min(out.size(), bytes.size()));
  };
  return {std::string(tensor.name), data.type.element, tensor.dims, fill, {}};
}

OnnxNode copy_of(const onnx::Node& node, onnx::TensorLoader& loader) {
  OnnxNode copy;
  copy.name = node.name;
  copy.op_type = node.op_type;
  copy.domain = node.domain;
  copy.inputs = strings_of(node.inputs);
  copy.outputs = strings_of(node.outputs);
  for (const onnx::Attribute& attribute : node.attributes) {
    const std::string name(attribute.name);
    if (attribute.reference.empty())
      copy.attributes.emplace_back(name, value_of(attribute, loader));
    else
      copy.attributes.push_back(
          OnnxAttribute::reference(name, std::string(attribute.reference), value_of(attribute, loader)));
  }
  return copy;
}

OnnxFunction copy_of(const onnx::Function& function, onnx::TensorLoader& loader) {
  if (!function.attribute_defaults.empty())
    throw UnsupportedError(
        fmt::format("not supported yet: writing function '{}' with defaults of attributes", function.name));
  OnnxFunction copy;
  copy.name = function.name;
  copy.domain = function.domain;
  copy.inputs = strings_of(function.inputs);
  copy.outputs = strings_of(function.outputs);
  copy.attributes = strings_of(function.attributes);
  for (const onnx::Node& node : function.nodes) copy.nodes.push_back(copy_of(node, loader));
  for (const onnx::OpsetImport& opset : function.opsets)
    if (opset.domain.empty() || opset.domain == "ai.onnx") copy.opset = opset.version;
  return copy;
}

}  // namespace fusewise::session
