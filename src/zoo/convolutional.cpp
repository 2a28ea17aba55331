// The convolutional image models.
#include <algorithm>
#include <cmath>

#include "zoo/layers/layers.h"
#include "zoo/list.h"

namespace fusewise::zoo {

namespace {

std::string image_input(OnnxBuilder& model, int64_t size) {
  return model.input("image", DataType::float32, {int64_t{1}, int64_t{3}, size, size});
}

// 1x1, 3x3, 1x1 with four times the channels, added to what went in.
std::string bottleneck(Layers& l, const std::string& name, const std::string& x, int64_t in, int64_t width,
                       int64_t stride) {
  const int64_t out = 4 * width;
  std::string y = l.relu(l.conv_bn(name + ".1", x, in, width, {}));
  y = l.relu(l.conv_bn(name + ".2", y, width, width, {.kernel = 3, .stride = stride}));
  y = l.conv_bn(name + ".3", y, width, out, {}, 0.25);
  const bool same = in == out && stride == 1;
  const std::string skip =
      same ? x : l.conv_bn(name + ".downsample", x, in, out, {.stride = stride, .gain = 1});
  return l.relu(l.add(y, skip));
}

struct InvertedResidual {
  int64_t expansion, channels, repeats, stride, kernel = 3;
};

}  // namespace

OnnxBuilder resnet50(bool tiny) {
  OnnxBuilder model;
  Layers l(model);
  int64_t channels = tiny ? 8 : 64;
  std::string x = image_input(model, tiny ? 32 : 224);
  x = l.relu(l.conv_bn("stem", x, 3, channels, {.kernel = 7, .stride = 2}));
  x = model.node("MaxPool", {x},
                 {{"kernel_shape", std::vector<int64_t>{3, 3}},
                  {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                  {"strides", std::vector<int64_t>{2, 2}}});
  const int blocks[] = {3, 4, 6, 3};
  int64_t width = channels;
  for (int stage = 0; stage < 4; ++stage, width *= 2) {
    for (int block = 0; block < (tiny ? 1 : blocks[stage]); ++block) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      x = bottleneck(l, name, x, channels, width, stage > 0 && block == 0 ? 2 : 1);
      channels = 4 * width;
    }
  }
  l.classifier(x, channels, tiny ? 10 : 1000);
  return model;
}

OnnxBuilder mobilenet_v2(bool tiny) {
  OnnxBuilder model;
  Layers l(model);
  const std::string zero = l.scalar("zero", 0), six = l.scalar("six", 6);
  const auto relu6 = [&](const std::string& x) { return model.node("Clip", {x, zero, six}); };
  const double factor = tiny ? 0.25 : 1;
  int64_t channels = scaled_channels(32, factor);
  std::string x = image_input(model, tiny ? 32 : 224);
  x = relu6(l.conv_bn("features.0", x, 3, channels, {.kernel = 3, .stride = 2}));
  const InvertedResidual stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                     {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  int number = 1;
  for (const InvertedResidual& stage : stages) {
    const int64_t out = scaled_channels(stage.channels, factor);
    for (int64_t i = 0; i < (tiny ? std::min<int64_t>(stage.repeats, 2) : stage.repeats); ++i, ++number) {
      const std::string name = "features." + std::to_string(number);
      const int64_t stride = i == 0 ? stage.stride : 1, wide = channels * stage.expansion;
      std::string y = x;
      if (stage.expansion != 1) y = relu6(l.conv_bn(name + ".expand", y, channels, wide, {}));
      y = relu6(
          l.conv_bn(name + ".depthwise", y, wide, wide, {.kernel = 3, .stride = stride, .groups = wide}));
      const bool residual = stride == 1 && channels == out;
      y = l.conv_bn(name + ".project", y, wide, out, {}, residual ? 0.5 : 1);
      x = residual ? l.add(x, y) : y;
      channels = out;
    }
  }
  const int64_t last = tiny ? 64 : 1280;
  x = relu6(l.conv_bn("features.last", x, channels, last, {}));
  l.classifier(x, last, tiny ? 10 : 1000);
  return model;
}

OnnxBuilder efficientnet_b0(bool tiny) {
  OnnxBuilder model;
  Layers l(model);
  const double factor = tiny ? 0.25 : 1;
  int64_t channels = scaled_channels(32, factor);
  std::string x = image_input(model, tiny ? 32 : 224);
  x = l.silu(l.conv_bn("stem", x, 3, channels, {.kernel = 3, .stride = 2}));
  const InvertedResidual stages[] = {{1, 16, 1, 1, 3},  {6, 24, 2, 2, 3},  {6, 40, 2, 2, 5}, {6, 80, 3, 2, 3},
                                     {6, 112, 3, 1, 5}, {6, 192, 4, 2, 5}, {6, 320, 1, 1, 3}};
  int number = 0;
  for (const InvertedResidual& stage : stages) {
    const int64_t out = scaled_channels(stage.channels, factor);
    for (int64_t i = 0; i < (tiny ? 1 : stage.repeats); ++i, ++number) {
      const std::string name = "blocks." + std::to_string(number);
      const int64_t stride = i == 0 ? stage.stride : 1, wide = channels * stage.expansion;
      const int64_t squeezed = std::max<int64_t>(channels / 4, 1);
      std::string y = x;
      if (stage.expansion != 1) y = l.silu(l.conv_bn(name + ".expand", y, channels, wide, {}));
      y = l.silu(l.conv_bn(name + ".depthwise", y, wide, wide,
                           {.kernel = stage.kernel, .stride = stride, .groups = wide}));
      std::string s = model.node("ReduceMean", {y}, {{"axes", std::vector<int64_t>{2, 3}}, {"keepdims", 1}});
      s = l.silu(l.conv(name + ".se.reduce", s, wide, squeezed, {.bias = true}));
      s = model.node("Sigmoid", {l.conv(name + ".se.expand", s, squeezed, wide, {.bias = true, .gain = 1})});
      y = model.node("Mul", {s, y});
      const bool residual = stride == 1 && channels == out;
      y = l.conv_bn(name + ".project", y, wide, out, {.gain = 6}, residual ? 0.5 : 1);
      x = residual ? l.add(y, x) : y;
      channels = out;
    }
  }
  const int64_t last = tiny ? 64 : 1280;
  x = l.silu(l.conv_bn("head", x, channels, last, {}));
  l.classifier(x, last, tiny ? 10 : 1000);
  return model;
}

OnnxBuilder mobilenet_v3_large(bool tiny) {
  OnnxBuilder model;
  Layers l(model);
  const double factor = tiny ? 0.25 : 1;
  struct Block {
    int64_t kernel, expanded, out;
    bool squeezes, hard;
    int64_t stride;
  };
  const Block blocks[] = {
      {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
      {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
      {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
      {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
      {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1}};
  const auto activate = [&](const std::string& x, bool hard) {
    return hard ? model.node("HardSwish", {x}) : l.relu(x);
  };
  int64_t channels = scaled_channels(16, factor);
  std::string x = image_input(model, tiny ? 32 : 224);
  x = activate(l.conv_bn("stem", x, 3, channels, {.kernel = 3, .stride = 2}), true);
  int number = 1;
  for (const Block& b : blocks) {
    const std::string name = "features." + std::to_string(number++);
    const int64_t wide = scaled_channels(b.expanded, factor), out = scaled_channels(b.out, factor);
    std::string y = x;
    if (wide != channels) y = activate(l.conv_bn(name + ".expand", y, channels, wide, {}), b.hard);
    y = activate(l.conv_bn(name + ".depthwise", y, wide, wide,
                           {.kernel = b.kernel, .stride = b.stride, .groups = wide}),
                 b.hard);
    if (b.squeezes) {
      const int64_t squeezed = scaled_channels(wide / 4, 1);
      std::string s = model.node("GlobalAveragePool", {y});
      s = l.relu(l.conv(name + ".se.1", s, wide, squeezed, {.bias = true}));
      s = l.conv(name + ".se.2", s, squeezed, wide, {.bias = true, .gain = 1});
      s = model.node("HardSigmoid", {s},
                     {{"alpha", OnnxAttributeValue(1.0f / 6.0f)}, {"beta", OnnxAttributeValue(0.5f)}});
      y = model.node("Mul", {s, y});
    }
    const bool residual = b.stride == 1 && channels == out;
    y = l.conv_bn(name + ".project", y, wide, out, {.gain = b.squeezes ? 6.0 : 2.0}, residual ? 0.5 : 1);
    x = residual ? l.add(y, x) : y;
    channels = out;
  }
  const int64_t last = scaled_channels(960, factor);
  x = activate(l.conv_bn("features.last", x, channels, last, {}), true);
  l.classifier(x, last, tiny ? 10 : 1000);
  return model;
}

OnnxBuilder unet(bool tiny) {
  OnnxBuilder model;
  Layers l(model);
  const int64_t base = tiny ? 8 : 32, size = tiny ? 16 : 128;
  constexpr int levels = 3;
  const auto twice = [&](const std::string& name, std::string x, int64_t in, int64_t out) {
    x = l.relu(l.conv_bn(name + ".0", x, in, out, {.kernel = 3}));
    return l.relu(l.conv_bn(name + ".1", x, out, out, {.kernel = 3}));
  };
  std::string x = image_input(model, size);
  std::vector<std::string> skips;
  int64_t in = 3, width = base;
  for (int level = 0; level < levels; ++level, width *= 2) {
    x = twice("down." + std::to_string(level), x, in, width);
    skips.push_back(x);
    x = model.node("MaxPool", {x},
                   {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
    in = width;
  }
  x = twice("bottom", x, in, width);
  for (int level = levels; level-- > 0;) {
    const std::string name = "up." + std::to_string(level);
    const int64_t half = width / 2;
    const double half_width = std::sqrt(3.0 / static_cast<double>(width));
    const std::string weight = model.initializer(seeded(name + ".weight", {width, half, 2, 2}, half_width));
    const std::string bias = model.initializer(seeded(name + ".bias", {half}, 0.1));
    x = model.node("ConvTranspose", {x, weight, bias},
                   {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
    x = model.node("Concat", {skips[static_cast<size_t>(level)], x}, {{"axis", 1}});
    x = twice(name, x, width, half);
    width = half;
  }
  const std::string mask = l.conv("head", x, width, 2, {.bias = true, .gain = 1});
  model.node("Identity", {mask}, {}, "mask");
  model.output("mask", DataType::float32, {int64_t{1}, int64_t{2}, size, size});
  return model;
}

}  // namespace fusewise::zoo
