#include <fmt/core.h>

#include <set>

#include "import/import.h"
#include "import/onnx/importer.h"
#include "import/onnx/reader.h"
#include "import/onnx/tensor_data.h"

namespace fusewise {

namespace {

void count_tensor(const onnx::Tensor& tensor, ModelSummary& summary) {
  const std::optional<DataType> type = onnx::data_type_of_number(tensor.element_type);
  if (!type) return;
  const int64_t count = onnx::element_count(tensor.dims, tensor.name);
  if (is_float(*type)) summary.parameters += count;
  summary.parameter_bytes += (count * bits_of(*type) + 7) / 8;
}

void count_nodes(const std::vector<onnx::Node>& nodes, ModelSummary& summary);

void count_graph(const onnx::Graph& graph, ModelSummary& summary) {
  summary.initializers += static_cast<int64_t>(graph.initializers.size());
  for (const onnx::Tensor& tensor : graph.initializers) count_tensor(tensor, summary);
  count_nodes(graph.nodes, summary);
}

// Nested graphs are nested no deeper than the reader allows.
void count_nodes(const std::vector<onnx::Node>& nodes, ModelSummary& summary) {
  for (const onnx::Node& node : nodes) {
    ++summary.nodes;
    ++summary.op_counts[onnx::full_op_type(node)];
    for (const onnx::Attribute& a : node.attributes) {
      if (node.op_type == "Constant")
        for (const onnx::Tensor& tensor : a.tensors) count_tensor(tensor, summary);
      for (const auto& graph : a.graphs) count_graph(*graph, summary);
    }
  }
}

std::string type_text(const onnx::ValueInfo& info, std::set<std::string>& symbols) {
  using Kind = onnx::ValueInfo::Kind;
  if (info.kind != Kind::tensor) {
    static constexpr const char* names[] = {"no type", "tensor",   "sparse tensor", "sequence",
                                            "map",     "optional", "other"};
    return names[static_cast<size_t>(info.kind)];
  }
  const std::optional<DataType> type = onnx::data_type_of_number(info.element_type);
  std::string text(type ? name_of(*type) : "unknown");
  if (!info.shape) return text + "[...]";
  text += "[";
  for (size_t d = 0; d < info.shape->size(); ++d) {
    const onnx::DimInfo& dim = (*info.shape)[d];
    if (d > 0) text += ", ";
    if (dim.value) {
      text += std::to_string(*dim.value);
    } else {
      const std::string name = dim.symbol.empty() || dim.symbol == "?" ? fmt::format("{}_dim{}", info.name, d)
                                                                       : std::string(dim.symbol);
      symbols.insert(name);
      text += name;
    }
  }
  return text + "]";
}

}  // namespace

ModelSummary summarize_onnx(const std::string& path) {
  const onnx::Model model = onnx::read_model(path);
  ModelSummary summary;
  summary.ir_version = model.ir_version;
  summary.producer = std::string(model.producer);
  for (const onnx::OpsetImport& opset : model.opsets)
    summary.opsets.emplace_back(onnx::normalized_domain(opset.domain), opset.version);
  for (const auto& [key, value] : model.metadata) summary.metadata.emplace_back(key, value);
  count_graph(model.graph, summary);
  summary.functions = static_cast<int64_t>(model.functions.size());
  for (const onnx::Function& function : model.functions) count_nodes(function.nodes, summary);
  std::set<std::string> symbols, ignored;
  std::set<std::string_view> initializers;
  for (const onnx::Tensor& tensor : model.graph.initializers) initializers.insert(tensor.name);
  for (const onnx::ValueInfo& info : model.graph.inputs) {
    if (initializers.contains(info.name)) continue;
    summary.inputs.push_back({std::string(info.name), type_text(info, symbols)});
  }
  for (const onnx::ValueInfo& info : model.graph.outputs)
    summary.outputs.push_back({std::string(info.name), type_text(info, ignored)});
  summary.symbols.assign(symbols.begin(), symbols.end());
  return summary;
}

}  // namespace fusewise
