#include "session/specialize.h"

#include <fmt/core.h>

#include <set>

#include "base/error.h"
#include "import/onnx/reader.h"
#include "import/onnx/tensor_data.h"

namespace fusewise::session {
namespace {

constexpr int64_t few = 16, many = 4096;

InputInfo info_of(const onnx::ValueInfo& input) {
  InputInfo info;
  info.name = input.name;
  const auto type = onnx::data_type_of_number(input.element_type);
  if (input.kind != onnx::ValueInfo::Kind::tensor || !type || !input.shape)
    throw UnsupportedError(fmt::format("input '{}' is no plain tensor of known rank", input.name));
  info.type = *type;
  for (size_t d = 0; d < input.shape->size(); ++d) {
    const onnx::DimInfo& dim = (*input.shape)[d];
    // As the importer names them.
    const bool is_named = !dim.symbol.empty() && dim.symbol != "?";
    if (dim.value && *dim.value >= 0)
      info.shape.emplace_back(*dim.value);
    else
      info.shape.push_back(
          Dim::symbol(is_named ? std::string(dim.symbol) : fmt::format("{}_dim{}", input.name, d)));
  }
  return info;
}

bool is_bound(const graph::Tensor& tensor, Specialization how) {
  const bool is_whole = is_integer(tensor.element) || tensor.element == DataType::boolean;
  switch (how) {
    case Specialization::none:
    case Specialization::sizes:
      return false;
    case Specialization::small_integers:
      return is_whole && tensor.count() <= few;
    case Specialization::values:
      return tensor.count() <= (is_whole ? many : few);
  }
  return false;
}

graph::ConstantData constant_of(const std::string& name, const graph::Tensor& tensor) {
  graph::ConstantData constant;
  constant.name = name;
  constant.type.element = tensor.element;
  for (const int64_t extent : tensor.shape) constant.type.shape.emplace_back(extent);
  const auto owner = std::make_shared<const graph::Tensor>(tensor);
  constant.bytes = owner->bytes();
  constant.owner = owner;
  return constant;
}

}  // namespace

std::vector<InputInfo> declared_inputs(const std::string& path) {
  const onnx::Model model = onnx::read_model(path);
  std::set<std::string_view> initializers;
  for (const onnx::Tensor& tensor : model.graph.initializers) initializers.insert(tensor.name);
  std::vector<InputInfo> inputs;
  for (const onnx::ValueInfo& input : model.graph.inputs)
    if (!initializers.contains(input.name)) inputs.push_back(info_of(input));
  return inputs;
}

SpecializedModel specialize(const ModelOptions& options, std::span<const InputInfo> inputs,
                            const PreparedInputs& prepared, Specialization how) {
  SpecializedModel result;
  result.options = options;
  if (how == Specialization::none) return result;
  for (const auto& [name, value] : prepared.symbols) result.options.import.symbol_values[name] = value;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_bound(prepared.tensors[i], how)) continue;
    result.options.import.bound_inputs[inputs[i].name] = constant_of(inputs[i].name, prepared.tensors[i]);
    result.bound.push_back(inputs[i].name);
  }
  return result;
}

}  // namespace fusewise::session
