#include "zoo/layers/layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

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
  const auto spatial = static_cast<size_t>(o.spatial);
  const auto each = [&](int64_t value) { return std::vector<int64_t>(spatial, value); };
  std::vector<int64_t> shape{out, in / o.groups};
  int64_t terms = in / o.groups;
  for (size_t d = 0; d < spatial; ++d, terms *= o.kernel) shape.push_back(o.kernel);
  const double half_width = std::sqrt(3 * o.gain / static_cast<double>(terms));
  std::vector<std::string> inputs{x, m.initializer(seeded(name + ".weight", std::move(shape), half_width))};
  if (o.bias) inputs.push_back(m.initializer(seeded(name + ".bias", {out}, 0.1)));
  return m.node("Conv", inputs,
                {{"dilations", each(1)},
                 {"group", OnnxAttributeValue(o.groups)},
                 {"kernel_shape", each(o.kernel)},
                 {"pads", std::vector<int64_t>(2 * spatial, o.same ? o.kernel / 2 : 0)},
                 {"strides", each(o.stride)}},
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

std::string Layers::linear(const std::string& name, const std::string& x, int64_t in, int64_t out,
                           LinearOptions o) {
  const double half_width = std::sqrt(3 * o.gain / static_cast<double>(in));
  const std::string weight = m.initializer(seeded(name + ".weight", {in, out}, half_width));
  const std::string path = "/" + name;
  const std::string product = m.node("MatMul", {x, weight}, {}, path + "/MatMul_output_0");
  if (!o.bias) return product;
  const std::string bias = m.initializer(seeded(name + ".bias", {out}, 0.05));
  return m.node("Add", {bias, product}, {}, path + "/Add_output_0");
}

std::string Layers::gemm(const std::string& name, const std::string& x, int64_t in, int64_t out, double gain,
                         const std::string& output) {
  const double half_width = std::sqrt(3 * gain / static_cast<double>(in));
  const std::string weight = m.initializer(seeded(name + ".weight", {out, in}, half_width));
  const std::string bias = m.initializer(seeded(name + ".bias", {out}, 0.1));
  return m.node("Gemm", {x, weight, bias}, {{"transB", 1}},
                output.empty() ? "/" + name + "/Gemm_output_0" : output);
}

void Layers::classifier(const std::string& x, int64_t channels, int64_t classes) {
  const std::string pooled = m.node("GlobalAveragePool", {x});
  gemm("classifier", m.node("Flatten", {pooled}, {{"axis", 1}}), channels, classes, 1, "logits");
  m.output("logits", DataType::float32, {int64_t{1}, classes});
}

std::string Layers::embedding(const std::string& name, const std::string& ids, int64_t count, int64_t width) {
  return gather(m.initializer(seeded(name + ".weight", {count, width}, 1)), ids, 0);
}

std::string Layers::layer_norm(const std::string& name, const std::string& x, int64_t width, float epsilon) {
  const std::string scale = m.initializer(seeded(name + ".weight", {width}, 0.2, 1));
  const std::string bias = m.initializer(seeded(name + ".bias", {width}, 0.1));
  return m.node("LayerNormalization", {x, scale, bias},
                {{"axis", -1}, {"epsilon", OnnxAttributeValue(epsilon)}},
                "/" + name + "/LayerNormalization_output_0");
}

std::string Layers::layer_norm_by_parts(const std::string& name, const std::string& x, int64_t width,
                                        float epsilon) {
  const std::string scale = m.initializer(seeded(name + ".weight", {width}, 0.2, 1));
  const std::string bias = m.initializer(seeded(name + ".bias", {width}, 0.1));
  const OnnxAttributes last{{"axes", std::vector<int64_t>{-1}}, {"keepdims", 1}};
  const std::string centred = m.node("Sub", {x, m.node("ReduceMean", {x}, last)});
  const std::string square = m.node("Pow", {centred, scalar("two", 2)});
  const std::string variance = m.node("ReduceMean", {square}, last);
  const std::string deviation = m.node("Sqrt", {add(variance, scalar("epsilon", epsilon))});
  return m.node("Add", {mul(m.node("Div", {centred, deviation}), scale), bias}, {},
                "/" + name + "/Add_1_output_0");
}

std::string Layers::rms_norm_by_parts(const std::string& name, const std::string& x, int64_t width,
                                      float epsilon) {
  const std::string scale = m.initializer(seeded(name + ".weight", {width}, 0.2, 1));
  const std::string square = m.node("Pow", {x, scalar("two", 2)});
  const std::string mean =
      m.node("ReduceMean", {square}, {{"axes", std::vector<int64_t>{-1}}, {"keepdims", 1}});
  const std::string deviation = m.node("Sqrt", {add(mean, scalar("epsilon", epsilon))});
  const std::string normal = mul(x, m.node("Div", {scalar("one", 1), deviation}));
  return m.node("Mul", {scale, normal}, {}, "/" + name + "/Mul_1_output_0");
}

std::string Layers::group_norm(const std::string& name, const std::string& x, int64_t channels,
                               int64_t groups, float epsilon) {
  const std::string scale = m.initializer(seeded(name + ".weight", {channels}, 0.2, 1));
  const std::string bias = m.initializer(seeded(name + ".bias", {channels}, 0.1));
  return m.node("GroupNormalization", {x, scale, bias},
                {{"epsilon", OnnxAttributeValue(epsilon)}, {"num_groups", OnnxAttributeValue(groups)}},
                "/" + name + "/GroupNormalization_output_0");
}

std::string Layers::gelu_by_erf(const std::string& x) {
  const std::string scaled = m.node("Div", {x, scalar("sqrt_two", std::sqrt(2.0f))});
  const std::string one_more = add(m.node("Erf", {scaled}), scalar("one", 1));
  return mul(mul(x, one_more), scalar("half", 0.5f));
}

std::string Layers::gelu_by_tanh(const std::string& x) {
  const std::string cube = m.node("Pow", {x, scalar("three", 3)});
  const std::string sum = add(x, mul(cube, scalar("gelu_cubic", 0.044715f)));
  const auto factor = static_cast<float>(std::sqrt(2.0 / std::numbers::pi));
  const std::string bent = m.node("Tanh", {mul(sum, scalar("gelu_factor", factor))});
  return mul(mul(x, scalar("half", 0.5f)), add(bent, scalar("one", 1)));
}

bool Layers::known(const std::string& initializer) const {
  return std::ranges::any_of(m.initializers, [&](const OnnxTensor& t) { return t.name == initializer; });
}

std::string Layers::scalar(const std::string& name, float value) {
  return known(name) ? name : m.floats(name, {}, {value});
}

std::string Layers::integer(int64_t value) {
  const std::string name = "integer_" + std::to_string(value);
  return known(name) ? name : m.ints(name, {}, {value});
}

std::string Layers::integers(const std::vector<int64_t>& values) {
  std::string name = "integers";
  for (int64_t value : values) name += "_" + std::to_string(value);
  return known(name) ? name : m.ints(name, {static_cast<int64_t>(values.size())}, values);
}

std::string Layers::reshape(const std::string& x, const std::vector<int64_t>& shape) {
  return m.node("Reshape", {x, integers(shape)});
}

std::string Layers::transpose(const std::string& x, std::vector<int64_t> permutation) {
  return m.node("Transpose", {x}, {{"perm", std::move(permutation)}});
}

std::string Layers::unsqueeze(const std::string& x, const std::vector<int64_t>& axes) {
  return m.node("Unsqueeze", {x, integers(axes)});
}

std::string Layers::slice(const std::string& x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  return m.node("Slice", {x, integers({start}), integers({end}), integers({axis}), integers({step})});
}

std::string Layers::concat(const std::vector<std::string>& parts, int64_t axis) {
  return m.node("Concat", parts, {{"axis", OnnxAttributeValue(axis)}});
}

std::string Layers::gather(const std::string& x, const std::string& indices, int64_t axis) {
  return m.node("Gather", {x, indices}, {{"axis", OnnxAttributeValue(axis)}});
}

std::string Layers::dimension(const std::string& x, int64_t axis) {
  return gather(m.node("Shape", {x}), integers({axis}), 0);
}

int64_t scaled_channels(int64_t channels, double factor) {
  const double wanted = static_cast<double>(channels) * factor;
  return std::max<int64_t>(8, static_cast<int64_t>(std::lround(wanted / 8)) * 8);
}

}  // namespace fusewise::zoo
