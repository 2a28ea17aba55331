// Layers of the zoo's models, with weights that keep activations near one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "export/onnx_builder.h"

namespace fusewise::zoo {

// Uniform values in [mean - half_width, mean + half_width], which depend on the tensor's name alone.
OnnxTensor seeded(const std::string& name, std::vector<int64_t> dims, double half_width, double mean = 0);

struct ConvOptions {
  int64_t kernel = 1, stride = 1, groups = 1;
  bool bias = false;
  double gain = 2;  // what keeps the variance: 2 before a ReLU, 1 otherwise
};

class Layers {
 public:
  explicit Layers(OnnxBuilder& model) : m(model) {}

  // "Same" padding for odd kernels.
  std::string conv(const std::string& name, const std::string& x, int64_t in, int64_t out, ConvOptions o);
  // `scale`: around which value the factors lie; a residual's last one is small.
  std::string batch_norm(const std::string& name, const std::string& x, int64_t channels, double scale = 1);
  std::string conv_bn(const std::string& name, const std::string& x, int64_t in, int64_t out, ConvOptions o,
                      double scale = 1);
  std::string relu(const std::string& x) { return m.node("Relu", {x}); }
  std::string silu(const std::string& x) { return m.node("Mul", {x, m.node("Sigmoid", {x})}); }
  std::string add(const std::string& x, const std::string& y) { return m.node("Add", {x, y}); }
  // Global average, flattened, and a fully connected layer; makes the output "logits".
  void classifier(const std::string& x, int64_t channels, int64_t classes);
  // x W + b on the last dimension.
  std::string linear(const std::string& name, const std::string& x, int64_t in, int64_t out, double gain = 1);
  std::string layer_norm(const std::string& name, const std::string& x, int64_t width);
  std::string scalar(const std::string& name, float value) { return m.floats(name, {}, {value}); }
  std::string reshape(const std::string& x, const std::vector<int64_t>& shape);
  std::string transpose(const std::string& x, std::vector<int64_t> permutation);

  OnnxBuilder& m;
};

// A multiple of 8 near channels * factor, at least 8.
int64_t scaled_channels(int64_t channels, double factor);

}  // namespace fusewise::zoo
