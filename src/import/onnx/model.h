// An ONNX model file as plain structs. Names, strings and raw data are views into the file's bytes, which
// `Model::owner` keeps alive; nothing of the weights is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fusewise::onnx {

struct Graph;

// TensorProto.DataType as the format numbers it.
enum class ElementType : int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
};

using KeyValues = std::vector<std::pair<std::string_view, std::string_view>>;

struct Tensor {
  std::string_view name;
  int32_t element_type = 0;
  std::vector<int64_t> dims;
  std::optional<std::span<const std::byte>> raw;  // little-endian, row-major
  std::vector<float> floats;
  std::vector<int32_t> int32s;
  std::vector<int64_t> int64s;
  std::vector<double> doubles;
  std::vector<uint64_t> uint64s;
  std::vector<std::string_view> strings;
  KeyValues external;  // location, offset, length
  bool is_external = false;
};

struct DimInfo {
  std::optional<int64_t> value;
  std::string_view symbol;  // empty when there is none
};

struct ValueInfo {
  enum class Kind : uint8_t { none, tensor, sparse_tensor, sequence, map, optional, other };
  std::string_view name;
  Kind kind = Kind::none;
  int32_t element_type = 0;
  std::optional<std::vector<DimInfo>> shape;
};

struct Attribute {
  enum class Type : int32_t {
    undefined = 0,
    float_ = 1,
    int_ = 2,
    string = 3,
    tensor = 4,
    graph = 5,
    floats = 6,
    ints = 7,
    strings = 8,
    tensors = 9,
    graphs = 10,
    sparse_tensor = 11,
    sparse_tensors = 12,
    type_proto = 13,
    type_protos = 14,
  };
  std::string_view name;
  std::string_view reference;  // name of the enclosing function's attribute
  Type type = Type::undefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::vector<Tensor> tensors;                       // one for `tensor`
  std::vector<std::shared_ptr<const Graph>> graphs;  // one for `graph`
};

struct Node {
  std::vector<std::string_view> inputs, outputs;  // an empty name: not given
  std::string_view name, op_type, domain, overload;
  std::vector<Attribute> attributes;
};

struct Graph {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  int sparse_initializers = 0;
  std::vector<ValueInfo> inputs, outputs, value_info;
};

struct OpsetImport {
  std::string_view domain;
  int64_t version = 0;
};

struct Function {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<Attribute> attribute_defaults;
  std::vector<Node> nodes;
  std::vector<OpsetImport> opsets;
};

struct Model {
  std::string path;  // for messages and external data; "" when from memory
  std::shared_ptr<const void> owner;
  size_t file_bytes = 0;
  int64_t ir_version = 0;
  std::string_view producer, producer_version;
  std::vector<OpsetImport> opsets;
  std::vector<Function> functions;
  KeyValues metadata;
  Graph graph;
};

}  // namespace fusewise::onnx
