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
  double gain = 2;   // what keeps the variance: 2 before a ReLU, 1 otherwise
  bool same = true;  // padded by half a kernel; otherwise not at all
  int spatial = 2;   // dimensions
};

struct LinearOptions {
  bool bias = true;
  double gain = 1;
};

class Layers {
 public:
  explicit Layers(OnnxBuilder& model) : m(model) {}

  std::string conv(const std::string& name, const std::string& x, int64_t in, int64_t out, ConvOptions o);
  // `scale`: around which value the factors lie; a residual's last one is small.
  std::string batch_norm(const std::string& name, const std::string& x, int64_t channels, double scale = 1);
  std::string conv_bn(const std::string& name, const std::string& x, int64_t in, int64_t out, ConvOptions o,
                      double scale = 1);
  // x W + b on the last dimension.
  std::string linear(const std::string& name, const std::string& x, int64_t in, int64_t out,
                     LinearOptions o = {});
  // x W' + b of a matrix.
  std::string gemm(const std::string& name, const std::string& x, int64_t in, int64_t out, double gain = 1,
                   const std::string& output = "");
  // Global average, flattened, and a fully connected layer; makes the output "logits".
  void classifier(const std::string& x, int64_t channels, int64_t classes);
  // Rows of a table.
  std::string embedding(const std::string& name, const std::string& ids, int64_t count, int64_t width);

  std::string layer_norm(const std::string& name, const std::string& x, int64_t width, float epsilon = 1e-5f);
  // The same as exporters wrote it before the operator existed.
  std::string layer_norm_by_parts(const std::string& name, const std::string& x, int64_t width,
                                  float epsilon);
  std::string rms_norm_by_parts(const std::string& name, const std::string& x, int64_t width, float epsilon);
  std::string group_norm(const std::string& name, const std::string& x, int64_t channels, int64_t groups,
                         float epsilon);

  std::string relu(const std::string& x) { return m.node("Relu", {x}); }
  std::string silu(const std::string& x) { return mul(x, m.node("Sigmoid", {x})); }
  std::string gelu(const std::string& x) { return m.node("Gelu", {x}); }  // from operator set 20 on
  std::string gelu_by_erf(const std::string& x);                          // 0.5 x (1 + erf(x / sqrt 2))
  std::string gelu_by_tanh(const std::string& x);  // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  std::string add(const std::string& x, const std::string& y) { return m.node("Add", {x, y}); }
  std::string mul(const std::string& x, const std::string& y) { return m.node("Mul", {x, y}); }
  std::string matmul(const std::string& x, const std::string& y) { return m.node("MatMul", {x, y}); }
  std::string softmax(const std::string& x) { return m.node("Softmax", {x}, {{"axis", -1}}); }

  // Constants that several layers share: made once.
  std::string scalar(const std::string& name, float value);
  std::string integer(int64_t value);
  std::string integers(const std::vector<int64_t>& values);

  std::string reshape(const std::string& x, const std::vector<int64_t>& shape);
  std::string transpose(const std::string& x, std::vector<int64_t> permutation);
  std::string unsqueeze(const std::string& x, const std::vector<int64_t>& axes);
  std::string slice(const std::string& x, int64_t axis, int64_t start, int64_t end, int64_t step = 1);
  std::string concat(const std::vector<std::string>& parts, int64_t axis);
  std::string gather(const std::string& x, const std::string& indices, int64_t axis);
  // Dimension `axis` of x, as a vector of one element.
  std::string dimension(const std::string& x, int64_t axis);

  OnnxBuilder& m;

 private:
  bool known(const std::string& initializer) const;
};

// A multiple of 8 near channels * factor, at least 8.
int64_t scaled_channels(int64_t channels, double factor);

}  // namespace fusewise::zoo
