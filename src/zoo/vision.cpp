// Image models around attention, and the convolutional one shaped after them.
#include <cmath>

#include "zoo/layers/attention.h"
#include "zoo/layers/layers.h"
#include "zoo/list.h"

namespace fusewise::zoo {

namespace {

const OnnxDim batch = std::string("batch");

std::string images(OnnxBuilder& model, int64_t size) {
  return model.input("image", DataType::float32, {batch, int64_t{3}, size, size});
}

void logits(Layers& l, const std::string& name, const std::string& x, int64_t width, int64_t classes) {
  l.gemm(name, x, width, classes, 1, "logits");
  l.m.output("logits", DataType::float32, {batch, classes});
}

// Over the channels of [batch, channels, height, width].
std::string norm_of_channels(Layers& l, const std::string& name, const std::string& x, int64_t channels,
                             float epsilon) {
  return l.transpose(l.layer_norm(name, l.transpose(x, {0, 2, 3, 1}), channels, epsilon), {0, 3, 1, 2});
}

// A depthwise convolution, then an MLP of the channels whose result is scaled per channel.
std::string convnext_block(Layers& l, const std::string& name, const std::string& x, int64_t channels) {
  constexpr float epsilon = 1e-6f;
  std::string y = l.conv(name + ".dwconv", x, channels, channels,
                         {.kernel = 7, .groups = channels, .bias = true, .gain = 1});
  y = l.layer_norm(name + ".norm", l.transpose(y, {0, 2, 3, 1}), channels, epsilon);
  y = l.gelu(l.linear(name + ".pwconv1", y, channels, 4 * channels));
  y = l.linear(name + ".pwconv2", y, 4 * channels, channels, {.gain = 2});
  const std::string scale = l.m.initializer(seeded(name + ".layer_scale", {channels, 1, 1}, 0.1, 0.5));
  return l.add(l.mul(l.transpose(y, {0, 3, 1, 2}), scale), x);
}

// The attention of an encoder layer whose queries, keys and values come from one product.
std::string vit_attention(Layers& l, const std::string& name, const std::string& x, int64_t width,
                          int64_t heads) {
  const int64_t head = width / heads;
  const std::string all = l.linear(name + ".in_proj", x, width, 3 * width);
  const auto part = [&](int64_t i) {
    return by_head(l, l.slice(all, 2, i * width, (i + 1) * width), heads, head);
  };
  const std::string root = l.scalar("sqrt_head", std::sqrt(static_cast<float>(head)));
  const std::string q = l.m.node("Div", {part(0), root}), k = part(1), v = part(2);
  return l.linear(name + ".out_proj", joined(l, attend(l, q, k, v), width), width, width);
}

}  // namespace

OnnxBuilder convnext_t(bool tiny) {
  constexpr float epsilon = 1e-6f;
  OnnxBuilder model(20);
  Layers l(model);
  const int depths[] = {3, 3, 9, 3};
  const int stages = tiny ? 2 : 4;
  int64_t channels = tiny ? 8 : 96;
  std::string x = images(model, tiny ? 32 : 224);
  x = l.conv("stem.0", x, 3, channels, {.kernel = 4, .stride = 4, .bias = true, .gain = 1, .same = false});
  x = norm_of_channels(l, "stem.1", x, channels, epsilon);
  for (int stage = 0; stage < stages; ++stage) {
    const std::string name = "stages." + std::to_string(stage);
    if (stage > 0) {
      x = norm_of_channels(l, name + ".downsample.0", x, channels, epsilon);
      x = l.conv(name + ".downsample.1", x, channels, 2 * channels,
                 {.kernel = 2, .stride = 2, .bias = true, .gain = 1, .same = false});
      channels *= 2;
    }
    for (int block = 0; block < (tiny ? 2 : depths[stage]); ++block)
      x = convnext_block(l, name + "." + std::to_string(block), x, channels);
  }
  x = model.node("GlobalAveragePool", {x});
  x = model.node("Flatten", {norm_of_channels(l, "head.norm", x, channels, epsilon)}, {{"axis", 1}});
  logits(l, "head.fc", x, channels, tiny ? 10 : 1000);
  return model;
}

// As exporters write it that know neither LayerNormalization nor Gelu.
OnnxBuilder vit_b16(bool tiny) {
  constexpr float epsilon = 1e-6f;
  OnnxBuilder model(14);
  Layers l(model);
  const int64_t size = tiny ? 16 : 224, patch = tiny ? 4 : 16, width = tiny ? 32 : 768, heads = tiny ? 2 : 12;
  const int64_t tokens = (size / patch) * (size / patch), inner = 4 * width;
  std::string x = images(model, size);
  x = l.conv("conv_proj", x, 3, width,
             {.kernel = patch, .stride = patch, .bias = true, .gain = 1, .same = false});
  x = l.transpose(l.reshape(x, {0, width, tokens}), {0, 2, 1});
  const std::string token = model.initializer(seeded("class_token", {1, 1, width}, 1));
  const std::string shape = l.concat({l.dimension("image", 0), l.integers({1}), l.integers({width})}, 0);
  x = l.concat({model.node("Expand", {token, shape}), x}, 1);
  x = l.add(x, model.initializer(seeded("encoder.pos_embedding", {1, tokens + 1, width}, 1)));
  for (int layer = 0; layer < (tiny ? 2 : 12); ++layer) {
    const std::string name = "encoder.layers." + std::to_string(layer);
    const std::string y = l.layer_norm_by_parts(name + ".ln_1", x, width, epsilon);
    x = l.add(x, vit_attention(l, name + ".self_attention", y, width, heads));
    const std::string z = l.layer_norm_by_parts(name + ".ln_2", x, width, epsilon);
    const std::string wide = l.gelu_by_erf(l.linear(name + ".mlp.0", z, width, inner));
    x = l.add(x, l.linear(name + ".mlp.3", wide, inner, width, {.gain = 2}));
  }
  x = l.layer_norm_by_parts("encoder.ln", x, width, epsilon);
  logits(l, "heads.head", l.gather(x, l.integer(0), 1), width, tiny ? 10 : 1000);
  return model;
}

}  // namespace fusewise::zoo
