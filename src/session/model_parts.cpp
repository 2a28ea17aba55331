#include "session/model_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "import/onnx/reader.h"
#include "session/onnx_copy.h"

namespace fusewise::session {
namespace {

using Names = std::vector<std::string>;

void add_new(Names& names, std::set<std::string>& known, const std::string& name) {
  if (!name.empty() && known.insert(name).second) names.push_back(name);
}

// What a node reads: its operands, and what its nested graphs take from around them.
void add_used(const onnx::Node& node, std::set<std::string, std::less<>> inner, Names& used,
              std::set<std::string>& known) {
  for (const std::string_view name : node.inputs)
    if (!inner.contains(name)) add_new(used, known, std::string(name));
  for (const onnx::Attribute& attribute : node.attributes)
    for (const auto& body : attribute.graphs) {
      std::set<std::string, std::less<>> within = inner;
      for (const onnx::ValueInfo& input : body->inputs) within.emplace(input.name);
      for (const onnx::Tensor& tensor : body->initializers) within.emplace(tensor.name);
      for (const onnx::Node& n : body->nodes)
        for (const std::string_view output : n.outputs) within.emplace(output);
      for (const onnx::Node& n : body->nodes) add_used(n, within, used, known);
      for (const onnx::ValueInfo& output : body->outputs)
        if (!within.contains(output.name)) add_new(used, known, std::string(output.name));
    }
}

OnnxShape declared_shape(const RecordedTensor& tensor) {
  OnnxShape shape;
  for (const Dim& extent : tensor.declared)
    shape.push_back(extent.is_constant() ? OnnxDim(extent.value()) : OnnxDim(extent.to_string()));
  return shape;
}

}  // namespace

struct ModelParts::State {
  onnx::Model model;
  mutable onnx::TensorLoader loader;
  std::map<std::string, const onnx::Tensor*> weights;
  std::map<std::string, uint32_t> maker;
  std::vector<Names> used, made;  // by node

  explicit State(onnx::Model given) : model(std::move(given)), loader(model.path, model.owner, false) {
    for (const onnx::Tensor& tensor : model.graph.initializers) weights[std::string(tensor.name)] = &tensor;
    for (const onnx::Node& node : model.graph.nodes) {
      const auto number = static_cast<uint32_t>(made.size());
      std::set<std::string> known;
      add_used(node, {}, used.emplace_back(), known);
      made.emplace_back();
      for (const std::string_view output : node.outputs) {
        if (output.empty()) continue;
        made.back().emplace_back(output);
        maker[std::string(output)] = number;
      }
    }
  }

  // The functions that the nodes call, with those that these call.
  std::vector<OnnxFunction> functions_for(const std::vector<OnnxNode>& nodes) const {
    std::vector<OnnxFunction> functions;
    if (model.functions.empty() || nodes.empty()) return functions;
    for (const onnx::Function& function : model.functions) functions.push_back(copy_of(function, loader));
    return functions;
  }
};

ModelParts::ModelParts(const std::string& path) : state_(std::make_unique<State>(onnx::read_model(path))) {}
ModelParts::~ModelParts() = default;

uint32_t ModelParts::size() const { return static_cast<uint32_t>(state_->made.size()); }

Names ModelParts::outputs() const {
  Names names;
  for (const onnx::ValueInfo& output : state_->model.graph.outputs) names.emplace_back(output.name);
  return names;
}

Names ModelParts::made_by(uint32_t node) const { return state_->made[node]; }

Names ModelParts::made() const {
  Names names;
  for (const Names& of_node : state_->made) names.insert(names.end(), of_node.begin(), of_node.end());
  return names;
}

std::vector<uint32_t> ModelParts::needed(const std::vector<uint32_t>& nodes, const Names& outputs) const {
  const std::set<uint32_t> allowed(nodes.begin(), nodes.end());
  std::set<uint32_t> found;
  std::vector<uint32_t> open;
  const auto visit = [&](const Names& names) {
    for (const std::string& name : names)
      if (const auto maker = state_->maker.find(name); maker != state_->maker.end() &&
                                                       allowed.contains(maker->second) &&
                                                       found.insert(maker->second).second)
        open.push_back(maker->second);
  };
  for (visit(outputs); !open.empty();) {
    const uint32_t node = open.back();
    open.pop_back();
    visit(state_->used[node]);
  }
  return {found.begin(), found.end()};
}

Names ModelParts::ends_of(const std::vector<uint32_t>& nodes) const {
  std::set<std::string> used;
  for (const uint32_t node : nodes) used.insert(state_->used[node].begin(), state_->used[node].end());
  for (const onnx::ValueInfo& output : state_->model.graph.outputs) used.erase(std::string(output.name));
  Names ends;
  for (const uint32_t node : nodes)
    for (const std::string& name : state_->made[node])
      if (!used.contains(name)) ends.push_back(name);
  return ends;
}

Names ModelParts::inputs_of(const ModelPart& part) const {
  std::set<std::string> known = part.constants;
  for (const uint32_t node : part.nodes) known.insert(state_->made[node].begin(), state_->made[node].end());
  Names names;
  for (const uint32_t node : part.nodes)
    for (const std::string& name : state_->used[node])
      if (!state_->weights.contains(name)) add_new(names, known, name);
  return names;
}

OnnxBuilder ModelParts::build(const ModelPart& part, const RecordedTensors& recorded) const {
  OnnxBuilder builder;
  builder.name = state_->model.graph.name;
  builder.ir_version = state_->model.ir_version;
  builder.producer = state_->model.producer;
  builder.opsets.clear();
  for (const onnx::OpsetImport& opset : state_->model.opsets)
    builder.opsets.emplace_back(opset.domain, opset.version);
  const auto find = [&](const std::string& name) -> const RecordedTensor& {
    const auto tensor = recorded.find(name);
    if (tensor == recorded.end())
      throw UnsupportedError(fmt::format("not supported yet: '{}' as an input, which is no tensor", name));
    return tensor->second;
  };
  for (const std::string& name : inputs_of(part))
    builder.input(name, find(name).value.element, declared_shape(find(name)));
  for (const std::string& name : part.outputs) builder.output_without_shape(name, find(name).value.element);
  std::set<std::string> weights;
  for (const uint32_t node : part.nodes)
    for (const std::string& name : state_->used[node])
      if (state_->weights.contains(name)) weights.insert(name);
  for (const std::string& name : weights)
    builder.initializer(copy_of(*state_->weights.at(name), state_->loader));
  for (const std::string& name : part.constants) {
    const graph::Tensor& value = find(name).value;
    builder.initializer({name,
                         value.element,
                         value.shape,
                         [value](std::span<std::byte> out) {
                           if (!out.empty()) std::memcpy(out.data(), value.bytes().data(), out.size());
                         },
                         {}});
  }
  for (const uint32_t node : part.nodes)
    builder.nodes.push_back(copy_of(state_->model.graph.nodes[node], state_->loader));
  builder.functions = state_->functions_for(builder.nodes);
  return builder;
}

}  // namespace fusewise::session
