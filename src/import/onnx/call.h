// One node of the model while it is imported: its operands, attributes and results, as the functions of the
// operator tables see them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/builder.h"
#include "import/onnx/known_tensor.h"
#include "import/onnx/model.h"
#include "numerics/scalar_op.h"

namespace fusewise::onnx {

class Importer;
class TensorLoader;

// What a name of the model stands for. An initializer becomes a node of a graph when something in it reads it, and what
// is computed outside of a body is captured when something inside reads it.
struct Item {
  std::map<uint32_t, graph::Value> values;  // by the number of the graph (Importer::current)
  std::optional<KnownTensor> known;
  const Tensor* tensor = nullptr;
  bool is_unsupported = false;  // it depends on something that could not be imported
};
using ItemPtr = std::shared_ptr<Item>;

// The names of a graph or function body; names of the graphs around it are visible.
struct Scope {
  const Scope* parent = nullptr;
  std::unordered_map<std::string_view, ItemPtr> items;
  std::unordered_map<std::string_view, int64_t> opsets;
  const std::unordered_map<std::string_view, const Attribute*>* function_attributes = nullptr;

  ItemPtr find(std::string_view name) const;
};

class Call {
 public:
  Call(Importer& importer, Scope& scope, const Node& node, int64_t version);

  const Node& node() const { return node_; }
  int64_t version() const { return version_; }
  graph::GraphBuilder& builder() { return builder_; }
  Importer& importer() { return importer_; }
  Scope& scope() { return scope_; }
  TensorLoader& loader();

  // Operands. Reading one that is not given is a UserError.
  size_t inputs() const { return node_.inputs.size(); }
  bool has(size_t input) const { return input < node_.inputs.size() && !node_.inputs[input].empty(); }
  graph::Value value(size_t input);
  graph::TensorType type(size_t input);
  DataType element(size_t input) { return type(input).element; }
  int rank(size_t input) { return type(input).rank(); }
  // Null when the elements are not known now.
  const KnownTensor* known(size_t input);
  // The elements as sizes, read in the run where nothing else gives them.
  std::vector<Dim> dims(size_t input);
  // The same for numbers that may be negative.
  std::vector<Dim> positions(size_t input);
  // The elements, when all are known while importing; UnsupportedError otherwise.
  std::vector<int64_t> integers(size_t input);
  // The data of an operand that depends on constants alone.
  std::optional<graph::ConstantData> constant(size_t input);
  // The elements of such an operand.
  std::optional<std::vector<Scalar>> elements(size_t input);

  // Attributes. Of another type than asked for: UserError.
  const Attribute* attribute(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  int64_t required_integer(std::string_view name) const;
  float number(std::string_view name, float otherwise) const;
  std::string_view string(std::string_view name, std::string_view otherwise) const;
  std::optional<std::vector<int64_t>> integer_list(std::string_view name) const;

  // Axes given as an attribute or, in later versions, as an operand; each in [0, rank).
  std::optional<std::vector<int>> axes(int rank, size_t input, std::string_view name = "axes");
  int axis(int64_t axis, int rank) const;

  // Results.
  size_t outputs() const { return node_.outputs.size(); }
  bool wants(size_t output) const { return output < node_.outputs.size() && !node_.outputs[output].empty(); }
  void set(graph::Value value) { set_output(0, value); }
  void set_output(size_t output, graph::Value value);
  void set_known(size_t output, KnownTensor known);
  // The result is the operand itself.
  void alias(size_t output, size_t input);
  void set_item(size_t output, ItemPtr item);

  [[noreturn]] void fail(const std::string& message) const;         // UserError
  [[noreturn]] void unsupported(const std::string& message) const;  // UnsupportedError

 private:
  ItemPtr item(size_t input) const;

  Importer& importer_;
  Scope& scope_;
  const Node& node_;
  int64_t version_;
  graph::GraphBuilder& builder_;
};

}  // namespace fusewise::onnx
