#include "zoo/layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fusewise::zoo {

namespace {

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3ULL;
  return hash;
}

// A counter-based generator: number i of a seed, well mixed.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

OnnxTensor seeded(const std::string& name, std::vector<int64_t> dims, double half_width, double mean) {
  const uint64_t seed = hash_of(name);
  const auto fill = [seed, half_width, mean](std::span<std::byte> out) {
    for (size_t i = 0; i * sizeof(float) < out.size(); ++i) {
      const uint64_t bits = mixed(seed + (i + 1) * 0x9e3779b97f4a7c15ULL) >> 40;
      const double unit = static_cast<double>(bits) * 0x1p-23 - 1;  // [-1, 1)
      const float value = static_cast<float>(mean + half_width * unit);
      std::memcpy(out.data() + i * sizeof(float), &value, sizeof(float));
    }
  };
  return {name, DataType::float32, std::move(dims), fill};
}

std::string Layers::conv(const std::string& name, const std::string& x, int64_t in, int64_t out,
                         ConvOptions o) {
  const int64_t k = o.kernel, pad = k / 2, per_group = in / o.groups;
  const double half_width = std::sqrt(3 * o.gain / static_cast<double>(per_group * k * k));
  std::vector<std::string> inputs{
      x, m.initializer(seeded(name + ".weight", {out, per_group, k, k}, half_width))};
  if (o.bias) inputs.push_back(m.initializer(seeded(name + ".bias", {out}, 0.1)));
  return m.node("Conv", inputs,
                {{"dilations", std::vector<int64_t>{1, 1}},
                 {"group", OnnxAttributeValue(o.groups)},
                 {"kernel_shape", std::vector<int64_t>{k, k}},
                 {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                 {"strides", std::vector<int64_t>{o.stride, o.stride}}},
                "/" + name + "/Conv_output_0");
}

std::string Layers::batch_norm(const std::string& name, const std::string& x, int64_t channels,
                               double scale) {
  const std::string factor = m.initializer(seeded(name + ".weight", {channels}, 0.2 * scale, scale));
  const std::string bias = m.initializer(seeded(name + ".bias", {channels}, 0.1));
  const std::string mean = m.initializer(seeded(name + ".running_mean", {channels}, 0.1));
  const std::string variance = m.initializer(seeded(name + ".running_var", {channels}, 0.2, 1));
  return m.node("BatchNormalization", {x, factor, bias, mean, variance},
                {{"epsilon", OnnxAttributeValue(1e-5f)}}, "/" + name + "/BatchNormalization_output_0");
}

std::string Layers::conv_bn(const std::string& name, const std::string& x, int64_t in, int64_t out,
                            ConvOptions o, double scale) {
  return batch_norm(name + ".bn", conv(name + ".conv", x, in, out, o), out, scale);
}

void Layers::classifier(const std::string& x, int64_t channels, int64_t classes) {
  const std::string pooled = m.node("GlobalAveragePool", {x});
  const std::string flat = m.node("Flatten", {pooled}, {{"axis", 1}});
  const double half_width = std::sqrt(3.0 / static_cast<double>(channels));
  const std::string weight = m.initializer(seeded("classifier.weight", {classes, channels}, half_width));
  const std::string bias = m.initializer(seeded("classifier.bias", {classes}, 0.1));
  m.node("Gemm", {flat, weight, bias}, {{"transB", 1}}, "logits");
  m.output("logits", DataType::float32, {int64_t{1}, classes});
}

std::string Layers::linear(const std::string& name, const std::string& x, int64_t in, int64_t out,
                           double gain) {
  const double half_width = std::sqrt(3 * gain / static_cast<double>(in));
  const std::string weight = m.initializer(seeded(name + ".weight", {in, out}, half_width));
  const std::string bias = m.initializer(seeded(name + ".bias", {out}, 0.05));
  const std::string path = "/" + name;
  const std::string product = m.node("MatMul", {x, weight}, {}, path + "/MatMul_output_0");
  return m.node("Add", {bias, product}, {}, path + "/Add_output_0");
}

std::string Layers::layer_norm(const std::string& name, const std::string& x, int64_t width) {
  const std::string scale = m.initializer(seeded(name + ".weight", {width}, 0.2, 1));
  const std::string bias = m.initializer(seeded(name + ".bias", {width}, 0.1));
  return m.node("LayerNormalization", {x, scale, bias},
                {{"axis", -1}, {"epsilon", OnnxAttributeValue(1e-5f)}},
                "/" + name + "/LayerNormalization_output_0");
}

std::string Layers::reshape(const std::string& x, const std::vector<int64_t>& shape) {
  std::string name = "shape";
  for (int64_t d : shape) name += "_" + std::to_string(d);
  const bool known = std::ranges::any_of(m.initializers, [&](const OnnxTensor& t) { return t.name == name; });
  if (!known) m.ints(name, {static_cast<int64_t>(shape.size())}, shape);
  return m.node("Reshape", {x, name});
}

std::string Layers::transpose(const std::string& x, std::vector<int64_t> permutation) {
  return m.node("Transpose", {x}, {{"perm", std::move(permutation)}});
}

int64_t scaled_channels(int64_t channels, double factor) {
  const double wanted = static_cast<double>(channels) * factor;
  return std::max<int64_t>(8, static_cast<int64_t>(std::lround(wanted / 8)) * 8);
}

}  // namespace fusewise::zoo
