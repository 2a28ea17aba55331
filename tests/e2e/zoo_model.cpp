#include "e2e/zoo_model.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "zoo/zoo.h"

namespace fusewise::test {

ZooModel::ZooModel(const std::string& name, const std::function<void(OnnxBuilder&)>& change) {
  OnnxBuilder builder = build_zoo(name);
  if (change) change(builder);
  const std::filesystem::path path = folder_.path() / (name + ".onnx");
  builder.write(path);
  model_ = std::make_unique<session::Model>(session::Model::load(path.string()));
}

std::vector<graph::Tensor> ZooModel::inputs(const std::vector<std::pair<std::string, int64_t>>& dims) const {
  session::InputRequest request;
  for (const auto& [name, size] : dims) request.dims[name] = size;
  return session::prepare_inputs(session::inputs_of(graph()), request, [](const std::string&) {}).tensors;
}

std::vector<std::string> tiny_models() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo_models())
    if (entry.name.ends_with("_tiny")) names.push_back(entry.name);
  return names;
}

std::vector<std::pair<std::string, int64_t>> odd_sizes(const graph::Graph& graph) {
  std::set<std::string> names;
  for (const graph::GraphInput& input : graph.inputs)
    for (const Dim& dim : graph.type({input.node, 0}).shape)
      for (const std::string& name : dim.symbols()) names.insert(name);
  std::vector<std::pair<std::string, int64_t>> sizes;
  for (const std::string& name : names)
    sizes.emplace_back(name, name == "batch" ? 3 : name == "height" ? 5 : name == "width" ? 7 : 37);
  return sizes;
}

session::SessionOptions options_of(compiler::Numerics numerics, fusion::FusionMode fusion, int threads) {
  session::SessionOptions options;
  options.numerics = numerics;
  options.fusion = fusion;
  options.threads = threads;
  options.use_cache = false;
  options.poison = true;
  return options;
}

bool same_bits(const std::vector<graph::Tensor>& a, const std::vector<graph::Tensor>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const graph::Tensor& x, const graph::Tensor& y) {
        return x.element == y.element && x.shape == y.shape && std::ranges::equal(x.bytes(), y.bytes());
      });
}

std::vector<graph::Tensor> copy_of(const std::vector<graph::Tensor>& tensors) {
  std::vector<graph::Tensor> copies;
  for (const graph::Tensor& tensor : tensors)
    copies.push_back(graph::Tensor::copy_of(tensor.element, tensor.shape, tensor.bytes()));
  return copies;
}

}  // namespace fusewise::test
