#include "import/onnx/runtime_sizes.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "graph/shape_rules.h"
#include "import/onnx/compose.h"
#include "import/onnx/known_tensor.h"

namespace fusewise::onnx {

namespace {

using graph::Op;
using graph::Value;

constexpr int deepest = 64;
constexpr double farthest = 0x1p62;

}  // namespace

std::string RuntimeSizes::fresh_symbol(const std::string& hint) {
  if (used_.empty())
    for (const graph::GraphInput& input : builder_.graph().inputs)
      used_.merge(graph::symbols_of(builder_.graph().node(input.node)));
  std::string name = hint;
  for (int i = 2; !used_.insert(name).second; ++i) name = fmt::format("{}_{}", hint, i);
  return name;
}

std::vector<RuntimeSizes::Element> RuntimeSizes::trace(Value value, int depth) const {
  const graph::Graph& graph = builder_.graph();
  const graph::Node& node = graph.node(value.node);
  const auto count = static_cast<size_t>(graph::static_count(graph.type(value)));
  std::vector<Element> elements(count);
  for (size_t i = 0; i < count; ++i) elements[i] = {std::nullopt, value, static_cast<int64_t>(i)};
  if (depth == 0) return elements;
  if (const graph::ConstantData* data = graph::constant_of(graph, value)) {
    const auto size = static_cast<size_t>(bytes_of(data->type.element));
    for (size_t i = 0; i < count; ++i)
      elements[i].dim = Dim(load_scalar(data->bytes.data() + i * size, data->type.element).i);
  } else if (const auto* dims = std::get_if<graph::DimsAttributes>(&node.attributes)) {
    for (size_t i = 0; i < count; ++i) elements[i].dim = dims->dims[i];
  } else if (node.op == Op::reshape) {
    return trace(node.operands[0], depth - 1);
  } else if (node.op == Op::map && graph::attributes<graph::MapAttributes>(node).op == ScalarOp::cast) {
    const DataType from = graph.type(node.operands[0]).element, to = graph.type(value).element;
    const bool keeps = is_integer(from) && is_signed(from) && is_signed(to) && bits_of(from) <= bits_of(to);
    if (keeps) return trace(node.operands[0], depth - 1);
  } else if (node.op == Op::concat && graph.type(value).rank() == 1) {
    elements.clear();
    for (const Value& operand : node.operands) {
      const std::vector<Element> part = trace(operand, depth - 1);
      elements.insert(elements.end(), part.begin(), part.end());
    }
  } else if (node.op == Op::slice && graph.type(value).rank() == 1) {
    const auto& a = graph::attributes<graph::SliceAttributes>(node);
    if (!a.starts[0].is_constant() || !graph.type(node.operands[0]).shape[0].is_constant()) return elements;
    if (graph.type(node.operands[0]).shape[0].value() > KnownTensor::max_elements) return elements;
    const std::vector<Element> whole = trace(node.operands[0], depth - 1);
    for (size_t i = 0; i < count; ++i)
      elements[i] = whole.at(static_cast<size_t>(a.starts[0].value() + static_cast<int64_t>(i) * a.steps[0]));
  }
  return elements;
}

std::vector<std::optional<Dim>> RuntimeSizes::followed(Value value) {
  std::vector<std::optional<Dim>> result;
  for (const Element& element : trace(value, deepest)) result.push_back(element.dim);
  return result;
}

// A vector of these elements in int64.
Value RuntimeSizes::pick(Value leaf, const std::vector<int64_t>& indices) {
  const int64_t count = graph::static_count(builder_.type(leaf));
  const Value flat = builder_.cast(builder_.reshape(leaf, {Dim(count)}), DataType::int64);
  if (static_cast<int64_t>(indices.size()) == count) return flat;
  std::vector<Value> parts;
  for (const int64_t i : indices) parts.push_back(builder_.slice(flat, {Dim(i)}, {1}, {Dim(1)}));
  return builder_.concat(std::move(parts), 0);
}

std::vector<Dim> RuntimeSizes::read(Value picked, int64_t count, Sign sign, const std::string& hint) {
  if (sign == Sign::position) {
    // The number is the difference of two that are at least 0, one of them 0.
    Compose m(builder_);
    const Value near = m.min(m.max(picked, -farthest), farthest);
    picked = builder_.concat({m.max(near, 0.0), m.max(m.neg(near), 0.0)}, 0);
  }
  graph::HostAttributes attributes;
  attributes.function = hostops::Function::read_sizes;
  const int64_t symbols = sign == Sign::position ? 2 * count : count;
  for (int64_t i = 0; i < symbols; ++i)
    attributes.symbols.push_back(fresh_symbol(i < count ? hint : hint + "_below"));
  builder_.host({picked}, attributes);
  std::vector<Dim> result;
  for (int64_t i = 0; i < count; ++i) {
    Dim dim = Dim::symbol(attributes.symbols[static_cast<size_t>(i)]);
    if (sign == Sign::position) dim = dim - Dim::symbol(attributes.symbols[static_cast<size_t>(count + i)]);
    result.push_back(std::move(dim));
  }
  return result;
}

std::vector<Dim> RuntimeSizes::elements(Value value, Sign sign, const std::string& hint) {
  if (is_float(builder_.type(value).element)) value = builder_.cast(value, DataType::int64);
  const graph::TensorType type = builder_.type(value);
  const Dim size = product(type.shape);
  if (!is_integer(type.element) || !is_computable(type.element))
    throw UserError(fmt::format("'{}' is to give sizes, and it is {}", hint, name_of(type.element)));
  if (!size.is_constant() || size.value() > KnownTensor::max_elements)
    throw UnsupportedError(fmt::format("'{}' gives sizes, and how many depends on the shapes", hint));
  const std::vector<Element> elements = trace(value, deepest);
  std::map<Value, std::vector<int64_t>> missing;
  for (const Element& e : elements) {
    if (e.dim || known_.contains({e.leaf, e.index, sign})) continue;
    std::vector<int64_t>& indices = missing[e.leaf];
    if (std::ranges::find(indices, e.index) == indices.end()) indices.push_back(e.index);
  }
  for (auto& [leaf, indices] : missing) {
    std::ranges::sort(indices);
    const std::vector<Dim> read_dims =
        read(pick(leaf, indices), static_cast<int64_t>(indices.size()), sign, hint);
    for (size_t i = 0; i < indices.size(); ++i)
      known_.emplace(std::tuple(leaf, indices[i], sign), read_dims[i]);
  }
  std::vector<Dim> result;
  for (const Element& e : elements) result.push_back(e.dim ? *e.dim : known_.at({e.leaf, e.index, sign}));
  return result;
}

}  // namespace fusewise::onnx
