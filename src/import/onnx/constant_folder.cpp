#include "import/onnx/constant_folder.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "graph/interpreter/interpreter.h"
#include "graph/shape_rules.h"

namespace fusewise::onnx {

namespace {

// More elements than these are not computed while importing, in any step.
constexpr int64_t max_elements = int64_t{1} << 22;

bool is_small(const graph::TensorType& type) {
  int64_t count = 1;
  for (const Dim& d : type.shape) {
    if (!d.is_constant() || d.value() > max_elements) return false;
    count *= std::max<int64_t>(d.value(), 1);
    if (count > max_elements) return false;
  }
  return true;
}

// The nodes that the value needs, in a graph of their own.
std::optional<graph::Graph> cone_of(const graph::Graph& graph, graph::Value value) {
  std::vector<graph::NodeId> cone, pending{value.node};
  std::unordered_map<graph::NodeId, graph::NodeId> moved{{value.node, 0}};
  while (!pending.empty()) {
    const graph::NodeId id = pending.back();
    pending.pop_back();
    cone.push_back(id);
    const graph::Node& node = graph.node(id);
    for (const graph::TensorType& type : node.results)
      if (!is_small(type)) return std::nullopt;
    for (const graph::Value& operand : node.operands)
      if (moved.emplace(operand.node, 0).second) pending.push_back(operand.node);
  }
  std::ranges::sort(cone);
  graph::Graph result;
  for (graph::NodeId id : cone) {
    graph::Node node = graph.node(id);
    node.sources.clear();
    for (graph::Value& operand : node.operands) operand.node = moved[operand.node];
    if (auto* constant = std::get_if<graph::ConstantAttributes>(&node.attributes)) {
      result.constants.push_back(graph.constants[constant->constant]);
      constant->constant = static_cast<uint32_t>(result.constants.size() - 1);
    }
    moved[id] = result.append(std::move(node));
  }
  result.outputs.push_back({{moved[value.node], value.result}, "folded"});
  return result;
}

}  // namespace

bool ConstantFolder::depends_on_constants(graph::NodeId id) const {
  const graph::Node& node = graph_.node(id);
  if (node.op == graph::Op::input || graph::kind_of(node.op) == graph::Kind::control) return false;
  for (const graph::TensorType& type : node.results)
    if (!std::ranges::all_of(type.shape, [](const Dim& d) { return d.is_constant(); })) return false;
  if (const auto* dims = std::get_if<graph::DimsAttributes>(&node.attributes))
    return std::ranges::all_of(dims->dims, [](const Dim& d) { return d.is_constant(); });
  if (const auto* slice = std::get_if<graph::SliceAttributes>(&node.attributes))
    if (!std::ranges::all_of(slice->starts, [](const Dim& d) { return d.is_constant(); })) return false;
  if (const auto* pad = std::get_if<graph::PadAttributes>(&node.attributes))
    if (!std::ranges::all_of(pad->low, [](const Dim& d) { return d.is_constant(); })) return false;
  return std::ranges::all_of(node.operands, [&](const graph::Value& v) { return constant_[v.node]; });
}

bool ConstantFolder::is_constant(graph::Value value) {
  while (constant_.size() < graph_.size())  // operands have smaller ids
    constant_.push_back(depends_on_constants(static_cast<graph::NodeId>(constant_.size())));
  return constant_[value.node];
}

std::optional<graph::ConstantData> ConstantFolder::fold(graph::Value value) {
  if (const graph::ConstantData* data = graph::constant_of(graph_, value)) return *data;
  if (!is_constant(value)) return std::nullopt;
  const auto known = folded_.find(value);
  if (known != folded_.end()) return known->second;
  std::optional<graph::ConstantData>& result = folded_[value];
  const std::optional<graph::Graph> cone = cone_of(graph_, value);
  if (!cone) return std::nullopt;
  auto tensor = std::make_shared<const graph::Tensor>(graph::interpret(*cone, {})[0]);
  result = graph::ConstantData{graph_.type(value), tensor->bytes(), tensor, ""};
  return result;
}

}  // namespace fusewise::onnx
