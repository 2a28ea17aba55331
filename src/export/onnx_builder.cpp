#include "export/onnx_builder.h"

#include <cstring>

#include "numerics/data_type.h"

namespace fusewise {

namespace {

template <class T>
std::function<void(std::span<std::byte>)> copy_of(std::vector<T> values) {
  return [values = std::move(values)](std::span<std::byte> out) {
    const size_t size = std::min(out.size(), values.size() * sizeof(T));
    if (size > 0) std::memcpy(out.data(), values.data(), size);
  };
}

}  // namespace

int32_t onnx_element_type(DataType type) {
  switch (type) {
    case DataType::float32:
      return 1;
    case DataType::uint8:
      return 2;
    case DataType::int8:
      return 3;
    case DataType::uint16:
      return 4;
    case DataType::int16:
      return 5;
    case DataType::int32:
      return 6;
    case DataType::int64:
      return 7;
    case DataType::string:
      return 8;
    case DataType::boolean:
      return 9;
    case DataType::float16:
      return 10;
    case DataType::float64:
      return 11;
    case DataType::uint32:
      return 12;
    case DataType::uint64:
      return 13;
    case DataType::complex64:
      return 14;
    case DataType::complex128:
      return 15;
    case DataType::bfloat16:
      return 16;
    case DataType::float8e4m3fn:
      return 17;
    case DataType::float8e4m3fnuz:
      return 18;
    case DataType::float8e5m2:
      return 19;
    case DataType::float8e5m2fnuz:
      return 20;
    case DataType::uint4:
      return 21;
    case DataType::int4:
      return 22;
    case DataType::float4e2m1:
      return 23;
    case DataType::float8e8m0:
      return 24;
    case DataType::undefined:
      break;
  }
  return 0;
}

OnnxTensor onnx_tensor(std::string name, std::vector<int64_t> dims, std::vector<float> values) {
  return {std::move(name), DataType::float32, std::move(dims), copy_of(std::move(values))};
}
OnnxTensor onnx_tensor(std::string name, std::vector<int64_t> dims, std::vector<int64_t> values) {
  return {std::move(name), DataType::int64, std::move(dims), copy_of(std::move(values))};
}
OnnxTensor onnx_tensor(std::string name, DataType type, std::vector<int64_t> dims,
                       std::vector<std::byte> bytes) {
  return {std::move(name), type, std::move(dims), copy_of(std::move(bytes))};
}

OnnxAttribute OnnxAttribute::reference(std::string attribute_name, std::string to,
                                       OnnxAttributeValue example) {
  OnnxAttribute result(std::move(attribute_name), std::move(example));
  result.refers_to = std::move(to);
  return result;
}

std::string OnnxGraphBuilder::input(std::string input_name, DataType type, OnnxShape shape) {
  inputs_.push_back({input_name, type, std::move(shape)});
  return input_name;
}

void OnnxGraphBuilder::output(std::string output_name, DataType type, OnnxShape shape) {
  outputs_.push_back({std::move(output_name), type, std::move(shape)});
}

void OnnxGraphBuilder::output_without_shape(std::string output_name, DataType type) {
  outputs_.push_back({std::move(output_name), type, {}, false});
}

std::string OnnxGraphBuilder::initializer(OnnxTensor tensor) {
  initializers.push_back(std::move(tensor));
  return initializers.back().name;
}

std::string OnnxGraphBuilder::floats(std::string initializer_name, std::vector<int64_t> dims,
                                     std::vector<float> values) {
  return initializer(onnx_tensor(std::move(initializer_name), std::move(dims), std::move(values)));
}

std::string OnnxGraphBuilder::ints(std::string initializer_name, std::vector<int64_t> dims,
                                   std::vector<int64_t> values) {
  return initializer(onnx_tensor(std::move(initializer_name), std::move(dims), std::move(values)));
}

std::string OnnxGraphBuilder::node(std::string op_type, std::vector<std::string> inputs,
                                   OnnxAttributes attributes, std::string output_name, std::string domain) {
  if (output_name.empty()) output_name = op_type + "_" + std::to_string(nodes.size());
  const std::string node_name = "node_" + output_name;
  nodes.push_back({node_name,
                   std::move(op_type),
                   std::move(domain),
                   std::move(inputs),
                   {output_name},
                   std::move(attributes)});
  return output_name;
}

std::vector<std::string> OnnxGraphBuilder::node_with_outputs(int outputs, std::string op_type,
                                                             std::vector<std::string> inputs,
                                                             OnnxAttributes attributes, std::string domain) {
  const std::string stem = op_type + "_" + std::to_string(nodes.size());
  std::vector<std::string> names;
  for (int i = 0; i < outputs; ++i) names.push_back(stem + "_" + std::to_string(i));
  nodes.push_back({"node_" + stem, std::move(op_type), std::move(domain), std::move(inputs), names,
                   std::move(attributes)});
  return names;
}

}  // namespace fusewise
