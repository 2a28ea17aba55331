// Drives the import: names, order, functions, nested graphs, and the collection of all that is unsupported.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/body_builder.h"
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

  // Of the graph or body that is being built now.
  graph::GraphBuilder& builder() { return current().builder; }
  // A value of it as an item.
  ItemPtr item_of(graph::Value value);
  // Makes the item a value of the graph.
  graph::Value materialize(Item& item);
  graph::TensorType type_of(Item& item);
  const KnownTensor* known_of(Item& item);
  graph::Value known_value(const KnownTensor& known);
  graph::Value constant(const Tensor& tensor);
  TensorLoader& loader() { return loader_; }
  ConstantFolder& folder() { return current().folder; }
  // UnsupportedError inside of a body.
  RuntimeSizes& sizes();

  // Imports the nodes of a body whose inputs are bound in `scope`, for those of its results that are named.
  void import_nodes(const std::vector<Node>& nodes, Scope& scope,
                    const std::vector<std::string_view>& results);
  // Imports a nested graph in place; gives its outputs.
  std::vector<ItemPtr> import_body(const Graph& body, Scope& outer, const std::vector<ItemPtr>& arguments);

  // While it lives, what is imported goes into a body of the graph that was current before.
  class InBody {
   public:
    // The body's nodes come from those of `source`, or from one node of the model where there is none.
    InBody(Importer& importer, const Graph& source);
    InBody(Importer& importer, const Node& source);
    ~InBody() { importer_.frames_.pop_back(); }
    InBody(const InBody&) = delete;
    InBody& operator=(const InBody&) = delete;

   private:
    Importer& importer_;
  };
  // The body that is current now.
  graph::BodyBuilder& body() { return *current().body; }
  std::unique_ptr<graph::BodyBuilder> take_body() { return std::move(current().body); }

 private:
  // A graph that is being built: the model's, or a body inside the one before.
  struct Frame {
    Frame(uint32_t number_given, graph::GraphBuilder& builder_given,
          std::unique_ptr<graph::BodyBuilder> body_given)
        : number(number_given),
          body(std::move(body_given)),
          builder(builder_given),
          folder(builder.graph()) {}
    uint32_t number;
    std::unique_ptr<graph::BodyBuilder> body;  // null for the model's graph
    graph::GraphBuilder& builder;
    ConstantFolder folder;
    const std::vector<Node>* nodes = nullptr;  // whose positions are the graph's model nodes
  };
  Frame& current() { return *frames_.back(); }
  Frame& push_body(const std::string& name);
  // The innermost graph that has the item as a value.
  Frame* home_of(const Item& item);

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
  graph::GraphBuilder main_;
  TensorLoader loader_;
  RuntimeSizes sizes_;
  std::vector<std::unique_ptr<Frame>> frames_;
  uint32_t graphs_made_ = 0;
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
