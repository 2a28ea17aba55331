// The end of an upward block of a latent-diffusion U-Net (the last layer of the second last one of Stable Diffusion
// 1.5): a residual block that knows the time, attention to itself and to a text, and the doubling of the image.
#include <cmath>

#include "zoo/layers/attention.h"
#include "zoo/layers/layers.h"
#include "zoo/list.h"

namespace fusewise::zoo {

namespace {

struct Size {
  int64_t channels, skip, waves, time, text, heads, groups;
  int64_t head() const { return channels / heads; }
};

Size size_of(bool tiny) {
  return tiny ? Size{16, 8, 8, 16, 12, 2, 4} : Size{640, 320, 320, 1280, 768, 8, 32};
}

// Cosines and sines of the time at `waves` / 2 frequencies, and an MLP: [batch, time].
std::string time_embedding(Layers& l, const Size& s, const std::string& timestep) {
  const int64_t half = s.waves / 2;
  std::vector<float> frequencies;
  for (int64_t i = 0; i < half; ++i)
    frequencies.push_back(static_cast<float>(
        std::exp(-std::log(10000.0) * static_cast<double>(i) / static_cast<double>(half))));
  const std::string waves = l.m.floats("time_frequencies", {1, half}, std::move(frequencies));
  const std::string angles = l.mul(l.unsqueeze(timestep, {1}), waves);
  const std::string both = l.concat({l.m.node("Cos", {angles}), l.m.node("Sin", {angles})}, -1);
  const std::string inner = l.silu(l.gemm("time_embedding.linear_1", both, s.waves, s.time));
  return l.gemm("time_embedding.linear_2", inner, s.time, s.time, 2);
}

std::string residual_block(Layers& l, const Size& s, const std::string& name, const std::string& x,
                           int64_t in, const std::string& time) {
  std::string y = l.silu(l.group_norm(name + ".norm1", x, in, s.groups, 1e-5f));
  y = l.conv(name + ".conv1", y, in, s.channels, {.kernel = 3, .bias = true});
  const std::string shift = l.gemm(name + ".time_emb_proj", l.silu(time), s.time, s.channels);
  y = l.add(y, l.unsqueeze(shift, {2, 3}));
  y = l.silu(l.group_norm(name + ".norm2", y, s.channels, s.groups, 1e-5f));
  y = l.conv(name + ".conv2", y, s.channels, s.channels, {.kernel = 3, .bias = true, .gain = 1});
  const std::string skip = l.conv(name + ".conv_shortcut", x, in, s.channels, {.bias = true, .gain = 1});
  return l.add(skip, y);
}

// Attention of x to `context`, which has `width` features.
std::string attention(Layers& l, const Size& s, const std::string& name, const std::string& x,
                      const std::string& context, int64_t width) {
  const auto project = [&](const std::string& part, const std::string& from, int64_t in) {
    return by_head(l, l.linear(name + part, from, in, s.channels, {.bias = false}), s.heads, s.head());
  };
  const std::string scale = l.scalar("scale", 1 / std::sqrt(static_cast<float>(s.head())));
  const std::string q = l.mul(project(".to_q", x, s.channels), scale);
  const std::string k = project(".to_k", context, width), v = project(".to_v", context, width);
  return l.linear(name + ".to_out.0", joined(l, attend(l, q, k, v), s.channels), s.channels, s.channels);
}

// u gelu(g), where u and g are the halves of a product.
std::string gated_mlp(Layers& l, const Size& s, const std::string& name, const std::string& x) {
  const int64_t inner = 4 * s.channels;
  const std::string both = l.linear(name + ".net.0.proj", x, s.channels, 2 * inner);
  const std::vector<std::string> parts =
      l.m.node_with_outputs(2, "Split", {both, l.integers({inner, inner})}, {{"axis", -1}});
  return l.linear(name + ".net.2", l.mul(parts[0], l.gelu(parts[1])), inner, s.channels, {.gain = 2});
}

std::string transformer(Layers& l, const Size& s, const std::string& name, const std::string& x,
                        const std::string& text) {
  std::string y = l.group_norm(name + ".norm", x, s.channels, s.groups, 1e-6f);
  y = l.transpose(l.conv(name + ".proj_in", y, s.channels, s.channels, {.bias = true, .gain = 1}),
                  {0, 2, 3, 1});
  const std::string shape = l.m.node("Shape", {y});
  y = l.reshape(y, {0, -1, s.channels});
  const std::string part = name + ".transformer_blocks.0";
  const std::string alone = l.layer_norm(part + ".norm1", y, s.channels);
  y = l.add(attention(l, s, part + ".attn1", alone, alone, s.channels), y);
  y = l.add(attention(l, s, part + ".attn2", l.layer_norm(part + ".norm2", y, s.channels), text, s.text), y);
  y = l.add(gated_mlp(l, s, part + ".ff", l.layer_norm(part + ".norm3", y, s.channels)), y);
  y = l.transpose(l.m.node("Reshape", {y, shape}), {0, 3, 1, 2});
  return l.add(l.conv(name + ".proj_out", y, s.channels, s.channels, {.bias = true, .gain = 1}), x);
}

}  // namespace

OnnxBuilder diffusion_block(bool tiny) {
  OnnxBuilder model(21);
  Layers l(model);
  const Size s = size_of(tiny);
  const OnnxDim batch = std::string("batch"), height = std::string("height"), width = std::string("width");
  const std::string sample = model.input("sample", DataType::float32, {batch, s.channels, height, width});
  const std::string skip = model.input("skip", DataType::float32, {batch, s.skip, height, width});
  const std::string timestep = model.input("timestep", DataType::float32, {batch});
  const std::string text =
      model.input("encoder_hidden_states", DataType::float32, {batch, std::string("tokens"), s.text});
  const std::string time = time_embedding(l, s, timestep);
  std::string x = residual_block(l, s, "resnet", l.concat({sample, skip}, 1), s.channels + s.skip, time);
  x = transformer(l, s, "attention", x, text);
  const std::string scales = model.floats("scales", {4}, {1, 1, 2, 2});
  x = model.node(
      "Resize", {x, "", scales},
      {{"coordinate_transformation_mode", "asymmetric"}, {"mode", "nearest"}, {"nearest_mode", "floor"}});
  x = l.conv("upsampler.conv", x, s.channels, s.channels, {.kernel = 3, .bias = true, .gain = 1});
  model.node("Identity", {x}, {}, "upsampled");
  model.output("upsampled", DataType::float32,
               {batch, s.channels, std::string("2*height"), std::string("2*width")});
  return model;
}

}  // namespace fusewise::zoo
