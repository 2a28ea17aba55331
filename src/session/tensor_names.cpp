#include "session/tensor_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/near_names.h"
#include "fusion/model_nodes.h"
#include "import/onnx/importer.h"
#include "import/onnx/reader.h"

namespace fusewise::session {
namespace {

using Names = std::vector<std::string>;

// The file's nodes in the form in which nodes are looked up by name.
graph::Graph nodes_of(const onnx::Model& model) {
  graph::Graph graph;
  for (const onnx::Node& node : model.graph.nodes)
    graph.model_nodes.push_back({std::string(node.name), onnx::full_op_type(node),
                                 node.outputs.empty() ? std::string() : std::string(node.outputs[0])});
  return graph;
}

struct Tensors {
  Names made;       // by nodes
  Names all;        // inputs and weights, too
  Names delivered;  // outputs of the model
};

Tensors tensors_of(const onnx::Model& model) {
  Tensors tensors;
  std::set<std::string_view> known;
  for (const onnx::Node& node : model.graph.nodes)
    for (const std::string_view output : node.outputs)
      if (!output.empty() && known.insert(output).second) tensors.made.emplace_back(output);
  tensors.all = tensors.made;
  for (const onnx::ValueInfo& input : model.graph.inputs)
    if (known.insert(input.name).second) tensors.all.emplace_back(input.name);
  for (const onnx::Tensor& weight : model.graph.initializers)
    if (known.insert(weight.name).second) tensors.all.emplace_back(weight.name);
  for (const onnx::ValueInfo& output : model.graph.outputs) tensors.delivered.emplace_back(output.name);
  return tensors;
}

bool holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Names outputs_of(const onnx::Model& model, const std::vector<uint32_t>& nodes) {
  Names names;
  for (const uint32_t node : nodes)
    for (const std::string_view output : model.graph.nodes[node].outputs)
      if (!output.empty()) names.emplace_back(output);
  return names;
}

Names resolve(const onnx::Model& model, const graph::Graph& nodes, const Tensors& tensors,
              const std::string& wanted) {
  if (holds(tensors.all, wanted)) return {wanted};
  if (wanted.find_first_of("*?") != std::string::npos) {
    Names matching;
    for (const std::string& name : tensors.made)
      if (fusion::matches_pattern(name, wanted)) matching.push_back(name);
    if (!matching.empty()) return matching;
  }
  std::vector<uint32_t> found;
  try {
    found = fusion::resolve_model_nodes(nodes, wanted);
  } catch (const UserError& error) {
    Names names = tensors.all;
    for (const graph::ModelNode& node : nodes.model_nodes) names.push_back(node.name);
    throw UserError(fmt::format("the model has no tensor '{}', and {}", wanted, error.what()),
                    {.file = model.path, .hint = did_you_mean(wanted, names)});
  }
  return outputs_of(model, found);
}

}  // namespace

Names resolve_tensors(const std::string& model_path, std::span<const std::string> wanted) {
  if (wanted.empty()) return {};
  const onnx::Model model = onnx::read_model(model_path);
  const graph::Graph nodes = nodes_of(model);
  const Tensors tensors = tensors_of(model);
  Names names;
  for (const std::string& text : wanted)
    for (std::string& name : resolve(model, nodes, tensors, text))
      if (!holds(names, name) && !holds(tensors.delivered, name)) names.push_back(std::move(name));
  return names;
}

}  // namespace fusewise::session
