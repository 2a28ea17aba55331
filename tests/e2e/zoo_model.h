// An embedded model, perhaps changed, with inputs to run it on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "export/onnx_builder.h"
#include "graph/interpreter/tensor.h"
#include "numerics/dim.h"
#include "session/session.h"

namespace fusewise::test {

class ZooModel {
 public:
  explicit ZooModel(const std::string& name, const std::function<void(OnnxBuilder&)>& change = {});

  const session::Model& model() const { return *model_; }
  const graph::Graph& graph() const { return model_->graph(); }
  // Seeded random ones; symbols that `dims` does not name are 1.
  std::vector<graph::Tensor> inputs(const std::vector<std::pair<std::string, int64_t>>& dims = {}) const;

 private:
  TemporaryFolder folder_;
  std::unique_ptr<session::Model> model_;
};

std::vector<std::string> tiny_models();
// Sizes for the symbols of a model that are neither 1 nor round.
std::vector<std::pair<std::string, int64_t>> odd_sizes(const graph::Graph& graph);

session::SessionOptions options_of(compiler::Numerics numerics, fusion::FusionMode fusion, int threads);

// The bits, not the numbers.
bool same_bits(const std::vector<graph::Tensor>& a, const std::vector<graph::Tensor>& b);
std::vector<graph::Tensor> copy_of(const std::vector<graph::Tensor>& tensors);

}  // namespace fusewise::test
