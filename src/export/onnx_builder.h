// Builds ONNX model files: nodes, attributes, initializers, inputs and outputs with symbolic dimensions,
// functions and nested graphs. It checks nothing: tests use it to write wrong models, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "numerics/data_type.h"

namespace fusewise {

// The number that the ONNX format gives to an element type; 0 for undefined.
int32_t onnx_element_type(DataType type);

// A dimension of a declared shape: a constant, a symbol, or left open (an empty name).
using OnnxDim = std::variant<int64_t, std::string>;
using OnnxShape = std::vector<OnnxDim>;

// A tensor whose bytes are made when the file is written, so that large weights exist once only.
struct OnnxTensor {
  std::string name;
  DataType type = DataType::float32;
  std::vector<int64_t> dims;
  std::function<void(std::span<std::byte>)> fill = {};
  // Entries (location, offset, length) for data in a file that the caller writes; `fill` is not used then.
  std::vector<std::pair<std::string, std::string>> external = {};
};
OnnxTensor onnx_tensor(std::string name, std::vector<int64_t> dims, std::vector<float> values);
OnnxTensor onnx_tensor(std::string name, std::vector<int64_t> dims, std::vector<int64_t> values);
OnnxTensor onnx_tensor(std::string name, DataType type, std::vector<int64_t> dims,
                       std::vector<std::byte> bytes);

// Nodes with what surrounds them; also the body of a nested graph.
class OnnxGraphBuilder;

using OnnxAttributeValue =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                 std::vector<std::string>, OnnxTensor, std::shared_ptr<OnnxGraphBuilder>>;
struct OnnxAttribute {
  OnnxAttribute(std::string attribute_name, OnnxAttributeValue attribute_value)
      : name(std::move(attribute_name)), value(std::move(attribute_value)) {}
  OnnxAttribute(std::string attribute_name, int attribute_value)
      : name(std::move(attribute_name)), value(int64_t{attribute_value}) {}
  OnnxAttribute(std::string attribute_name, const char* attribute_value)
      : name(std::move(attribute_name)), value(std::string(attribute_value)) {}
  // Inside a function: the value of the caller's attribute of that name, of the type of `example`.
  static OnnxAttribute reference(std::string attribute_name, std::string to, OnnxAttributeValue example);

  std::string name;
  OnnxAttributeValue value;
  std::string refers_to;
};
using OnnxAttributes = std::vector<OnnxAttribute>;

struct OnnxNode {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;
  OnnxAttributes attributes;
};

class OnnxGraphBuilder {
 public:
  std::string name = "graph";
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;

  std::string input(std::string input_name, DataType type, OnnxShape shape);
  void output(std::string output_name, DataType type, OnnxShape shape);
  void output_without_shape(std::string output_name, DataType type);

  std::string initializer(OnnxTensor tensor);
  std::string floats(std::string initializer_name, std::vector<int64_t> dims, std::vector<float> values);
  std::string ints(std::string initializer_name, std::vector<int64_t> dims, std::vector<int64_t> values);

  // Appends a node with one output and gives the output's name: `output_name`, or one made from the operator.
  std::string node(std::string op_type, std::vector<std::string> inputs, OnnxAttributes attributes = {},
                   std::string output_name = "", std::string domain = "");
  std::vector<std::string> node_with_outputs(int outputs, std::string op_type,
                                             std::vector<std::string> inputs, OnnxAttributes attributes = {},
                                             std::string domain = "");

 private:
  friend class OnnxWriter;
  struct Info {
    std::string name;
    DataType type;
    OnnxShape shape;
    bool has_shape = true;
  };
  std::vector<Info> inputs_, outputs_;
};

struct OnnxFunction {
  std::string name, domain;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<OnnxNode> nodes;
  int64_t opset = 17;
};

class OnnxBuilder : public OnnxGraphBuilder {
 public:
  explicit OnnxBuilder(int64_t opset = 17) : opsets{{"", opset}} {}
  std::vector<std::pair<std::string, int64_t>> opsets;
  std::vector<OnnxFunction> functions;
  int64_t ir_version = 8;
  std::string producer = "fusewise";

  std::string serialize() const;
  // Writes the file; when the weights exceed what protobuf holds well, they go to a file beside it (its name
  // with ".data" added).
  void write(const std::filesystem::path& path) const;
};

}  // namespace fusewise
