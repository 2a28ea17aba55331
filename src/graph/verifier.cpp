#include "graph/verifier.h"

#include <fmt/core.h>

#include <set>
#include <string_view>

#include "base/error.h"
#include "graph/shape_rules.h"

namespace fusewise::graph {

namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, int depth) : graph_(graph), depth_(depth), input_of_(graph.size(), 0) {}

  void run() {
    if (depth_ > deepest_body) fail(fmt::format("bodies are nested deeper than {} levels", deepest_body));
    check_inputs();
    for (NodeId id = 0; id < graph_.size(); ++id) check_node(id);
    check_symbols();
    for (const GraphOutput& output : graph_.outputs)
      if (!exists(output.value, static_cast<NodeId>(graph_.size())) ||
          kind_of(graph_.node(output.value.node).op) == Kind::control)
        fail(fmt::format("output '{}' is a value that does not exist", output.name));
  }

 private:
  // Words are put together only where a condition fails: there are some for every node and operand.
  [[noreturn]] static void fail(std::string_view words) {
    throw InternalError(fmt::format("invalid graph: {}", words));
  }
  [[noreturn]] void fail(NodeId id, std::string_view words) const {
    fail(fmt::format("{}: {}", described(id), words));
  }
  bool exists(Value value, NodeId before) const {
    return value.node < before && value.result < graph_.node(value.node).results.size();
  }
  std::string described(NodeId id) const {
    const Node& node = graph_.node(id);
    std::string text = fmt::format("node %{} ({})", id, name_of(node.op));
    if (!node.sources.empty() && node.sources[0] < graph_.model_nodes.size()) {
      const ModelNode& source = graph_.model_nodes[node.sources[0]];
      text +=
          fmt::format(" of {} '{}'", source.op_type, source.name.empty() ? source.first_output : source.name);
    }
    return text;
  }

  void check_inputs() {
    for (const GraphInput& input : graph_.inputs) {
      if (input.node >= graph_.size() || graph_.node(input.node).op != Op::input)
        fail(fmt::format("input '{}' is no input node", input.name));
      if (input_of_[input.node]++ != 0)
        fail(fmt::format("input '{}' names a node of another input", input.name));
    }
  }

  void check_node(NodeId id) const {
    const Node& node = graph_.node(id);
    const auto need = [&](bool condition, std::string_view words) {
      if (!condition) fail(id, words);
    };
    need(node.attributes.index() == static_cast<size_t>(node.op),
         "the attributes are those of another operation");
    for (const Value& operand : node.operands) {
      if (!exists(operand, id)) fail(id, fmt::format("operand %{} does not come before it", operand.node));
      need((kind_of(graph_.node(operand.node).op) == Kind::control) == (node.op == Op::result),
           "only result nodes read a loop or a branch, and nothing else");
    }
    for (uint32_t source : node.sources)
      if (source >= graph_.model_nodes.size()) fail(id, fmt::format("model node {} does not exist", source));
    need(!node.results.empty(), "it has no result");
    need(kind_of(node.op) == Kind::control || node.bodies.empty(), "it has a body");
    for (const Body& body : node.bodies) check_body(id, body);
    need(node.op != Op::input || input_of_[id] == 1, "it is not in the list of inputs");
    std::vector<TensorType> inferred;
    try {
      inferred = infer(graph_, node).results;
    } catch (const UserError& error) {
      need(false, error.what());
    }
    need(inferred.size() == node.results.size(), "it has another number of results than it should");
    for (size_t i = 0; i < inferred.size(); ++i)
      if (inferred[i] != node.results[i])
        fail(id, fmt::format("its type is {} and should be {}", to_string(node.results[i]),
                             to_string(inferred[i])));
    if (node.op == Op::constant) check_constant(id);
  }

  void check_body(NodeId id, const Body& body) const {
    if (!body) fail(id, "a body is missing");
    try {
      Verifier(*body, depth_ + 1).run();
    } catch (const InternalError& error) {
      throw InternalError(fmt::format("in the body of {}: {}", described(id), error.what()));
    }
  }

  // Each symbol is bound once, before the nodes that speak of it, and by a node or by inputs, not by both.
  void check_symbols() const {
    std::set<std::string> bound;
    for (NodeId id = 0; id < graph_.size(); ++id)
      for (const std::string& symbol : bound_symbols(graph_.node(id))) {
        if (depth_ > 0) fail(fmt::format("{} binds a symbol inside of a body", described(id)));
        if (!bound.insert(symbol).second)
          fail(fmt::format("{} binds the symbol '{}', which is bound already", described(id), symbol));
      }
    const auto binders = symbol_binders(graph_);
    for (NodeId id = 0; id < binders.size(); ++id) {
      if (binders[id].empty()) continue;
      if (graph_.node(id).op == Op::input)
        fail(fmt::format("{} speaks of a symbol that a node binds", described(id)));
      if (binders[id].back() >= id)
        fail(fmt::format("{} speaks of a symbol before it is bound", described(id)));
    }
  }

  void check_constant(NodeId id) const {
    const Node& node = graph_.node(id);
    const uint32_t index = attributes<ConstantAttributes>(node).constant;
    if (index >= graph_.constants.size()) fail(id, fmt::format("constant {} does not exist", index));
    const ConstantData& data = graph_.constants[index];
    if (data.type != node.results[0]) fail(id, fmt::format("its data has the type {}", to_string(data.type)));
    if (bits_of(data.type.element) != 0 && static_bytes(data.type) != static_cast<int64_t>(data.bytes.size()))
      fail(id, fmt::format("its data has {} bytes", data.bytes.size()));
  }

  const Graph& graph_;
  int depth_;
  std::vector<int> input_of_;
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph, 0).run(); }

}  // namespace fusewise::graph
