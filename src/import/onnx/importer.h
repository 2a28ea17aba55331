// Drives the import: names, order, functions, nested graphs, and the collection of all that is unsupported.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/builder.h"
#include "import/import.h"
#include "import/onnx/call.h"
#include "import/onnx/constant_folder.h"
#include "import/onnx/model.h"
#include "import/onnx/runtime_sizes.h"
#include "import/onnx/tensor_data.h"

namespace fusewise::onnx {

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options);

  graph::Graph run();

  graph::GraphBuilder& builder() { return builder_; }
  // Makes the item a value of the graph.
  graph::Value materialize(Item& item);
  graph::TensorType type_of(Item& item);
  const KnownTensor* known_of(Item& item);
  graph::Value known_value(const KnownTensor& known);
  graph::Value constant(const Tensor& tensor);
  TensorLoader& loader() { return loader_; }
  ConstantFolder& folder() { return folder_; }
  RuntimeSizes& sizes() { return sizes_; }

  // Imports the nodes of a body whose inputs are bound in `scope`, for those of its results that are named.
  void import_nodes(const std::vector<Node>& nodes, Scope& scope,
                    const std::vector<std::string_view>& results);
  // Imports a nested graph without inputs in place; gives its outputs.
  std::vector<ItemPtr> import_body(const Graph& body, Scope& outer, const std::vector<ItemPtr>& arguments);

 private:
  void add_input(const ValueInfo& info, Scope& scope);
  void import_node(const Node& node, Scope& scope);
  void call_function(const Function& function, const Node& node, Scope& scope);
  const Function* find_function(const Node& node) const;
  void dispatch(const Node& node, Scope& scope);
  void note_unsupported(const Node& node, const std::string& what);
  void set_unsupported(const Node& node, Scope& scope);
  void throw_if_unsupported() const;
  UserError in_context(const UserError& error, const Node& node) const;

  const Model& model_;
  ImportOptions options_;
  graph::Graph graph_;
  graph::GraphBuilder builder_;
  TensorLoader loader_;
  ConstantFolder folder_;
  RuntimeSizes sizes_;
  std::map<std::string, UnsupportedItem> unsupported_;
  std::vector<std::string> unsupported_order_;
  int depth_ = 0;  // of functions and nested graphs
};

// How a message calls a node: its name, or its operator and first output.
std::string display_name(const Node& node);
// The operator with its domain, if that is not the default one.
std::string full_op_type(const Node& node);
std::string_view normalized_domain(std::string_view domain);

}  // namespace fusewise::onnx
