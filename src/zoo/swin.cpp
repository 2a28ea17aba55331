// Swin-T: attention inside of windows, which move by half of their size in every other block.
#include <cmath>

#include "zoo/layers/attention.h"
#include "zoo/layers/layers.h"
#include "zoo/list.h"

namespace fusewise::zoo {

namespace {

// One block's place: the image's side, its channels and the windows.
struct Place {
  int64_t side, channels, heads, window, shift;
  int64_t tokens() const { return window * window; }
  int64_t windows() const { return (side / window) * (side / window); }
};

// For every pair of a window's tokens, the row of the bias table: their distance in both directions.
std::string relative_index(Layers& l, int64_t window) {
  const std::string name = "relative_position_index_" + std::to_string(window);
  for (const OnnxTensor& tensor : l.m.initializers)
    if (tensor.name == name) return name;
  const int64_t tokens = window * window, span = 2 * window - 1;
  std::vector<int64_t> index;
  for (int64_t i = 0; i < tokens; ++i)
    for (int64_t j = 0; j < tokens; ++j)
      index.push_back((i / window - j / window + window - 1) * span + i % window - j % window + window - 1);
  return l.m.ints(name, {tokens * tokens}, std::move(index));
}

// -100 between the tokens of a window that were not neighbours before the shift: [windows, 1, tokens, tokens].
std::string shift_mask(Layers& l, const std::string& name, const Place& p) {
  const auto part = [&](int64_t at) { return at < p.side - p.window ? 0 : at < p.side - p.shift ? 1 : 2; };
  const int64_t row = p.side / p.window;
  const auto region = [&](int64_t window, int64_t token) {
    const int64_t y = window / row * p.window + token / p.window;
    const int64_t x = window % row * p.window + token % p.window;
    return 3 * part(y) + part(x);
  };
  std::vector<float> mask;
  for (int64_t w = 0; w < p.windows(); ++w)
    for (int64_t i = 0; i < p.tokens(); ++i)
      for (int64_t j = 0; j < p.tokens(); ++j) mask.push_back(region(w, i) == region(w, j) ? 0.0f : -100.0f);
  return l.m.floats(name, {p.windows(), 1, p.tokens(), p.tokens()}, std::move(mask));
}

// [batch, side, side, channels]: what was at `by` comes first, in both directions.
std::string rolled(Layers& l, const std::string& x, int64_t side, int64_t by) {
  std::string y = x;
  for (int64_t axis : {1, 2}) y = l.concat({l.slice(y, axis, by, side), l.slice(y, axis, 0, by)}, axis);
  return y;
}

// [batch, side, side, channels] -> [batch * windows, tokens, channels], and back.
std::string into_windows(Layers& l, const std::string& x, const Place& p) {
  const int64_t row = p.side / p.window;
  const std::string parts = l.reshape(x, {-1, row, p.window, row, p.window, p.channels});
  return l.reshape(l.transpose(parts, {0, 1, 3, 2, 4, 5}), {-1, p.tokens(), p.channels});
}
std::string from_windows(Layers& l, const std::string& x, const Place& p) {
  const int64_t row = p.side / p.window;
  const std::string parts = l.reshape(x, {-1, row, row, p.window, p.window, p.channels});
  return l.reshape(l.transpose(parts, {0, 1, 3, 2, 4, 5}), {-1, p.side, p.side, p.channels});
}

std::string position_bias(Layers& l, const std::string& name, const Place& p) {
  const int64_t span = 2 * p.window - 1;
  const std::string table =
      l.m.initializer(seeded(name + ".relative_position_bias_table", {span * span, p.heads}, 0.5));
  const std::string pairs = l.gather(table, relative_index(l, p.window), 0);
  const std::string square = l.reshape(pairs, {p.tokens(), p.tokens(), p.heads});
  return l.unsqueeze(l.transpose(square, {2, 0, 1}), {0});
}

std::string window_attention(Layers& l, const std::string& name, const std::string& x, const Place& p) {
  const int64_t head = p.channels / p.heads;
  const std::string all = l.linear(name + ".qkv", x, p.channels, 3 * p.channels);
  const std::string parts = l.transpose(l.reshape(all, {-1, p.tokens(), 3, p.heads, head}), {2, 0, 3, 1, 4});
  const std::string scale = l.scalar("scale", 1 / std::sqrt(static_cast<float>(head)));
  const std::string q = l.mul(l.gather(parts, l.integer(0), 0), scale);
  const std::string k = l.gather(parts, l.integer(1), 0), v = l.gather(parts, l.integer(2), 0);
  std::string scores = l.add(l.matmul(q, l.transpose(k, {0, 1, 3, 2})), position_bias(l, name, p));
  if (p.shift > 0) {
    const std::string apart = l.reshape(scores, {-1, p.windows(), p.heads, p.tokens(), p.tokens()});
    scores =
        l.reshape(l.add(apart, shift_mask(l, name + ".attn_mask", p)), {-1, p.heads, p.tokens(), p.tokens()});
  }
  const std::string context =
      l.reshape(l.transpose(l.matmul(l.softmax(scores), v), {0, 2, 1, 3}), {-1, p.tokens(), p.channels});
  return l.linear(name + ".proj", context, p.channels, p.channels);
}

std::string block(Layers& l, const std::string& name, std::string x, const Place& p) {
  std::string y = l.layer_norm(name + ".norm1", x, p.channels);
  if (p.shift > 0) y = rolled(l, y, p.side, p.shift);
  y = from_windows(l, window_attention(l, name + ".attn", into_windows(l, y, p), p), p);
  if (p.shift > 0) y = rolled(l, y, p.side, p.side - p.shift);
  x = l.add(x, y);
  const std::string z = l.layer_norm(name + ".norm2", x, p.channels);
  const std::string inner = l.gelu(l.linear(name + ".mlp.0", z, p.channels, 4 * p.channels));
  return l.add(x, l.linear(name + ".mlp.3", inner, 4 * p.channels, p.channels, {.gain = 2}));
}

// The four tokens of every 2 x 2 square become one of twice the channels.
std::string merged(Layers& l, const std::string& name, const std::string& x, int64_t side, int64_t channels) {
  std::vector<std::string> corners;
  for (int64_t column : {0, 1})
    for (int64_t row : {0, 1}) corners.push_back(l.slice(l.slice(x, 1, row, side, 2), 2, column, side, 2));
  const std::string wide = l.layer_norm(name + ".norm", l.concat(corners, -1), 4 * channels);
  return l.linear(name + ".reduction", wide, 4 * channels, 2 * channels, {.bias = false});
}

}  // namespace

OnnxBuilder swin_t(bool tiny) {
  OnnxBuilder model(20);
  Layers l(model);
  const int depths[] = {2, 2, 6, 2};
  const int64_t window = tiny ? 4 : 7, classes = tiny ? 10 : 1000, size = tiny ? 32 : 224;
  int64_t channels = tiny ? 16 : 96, heads = tiny ? 2 : 3, side = size / 4;
  const OnnxDim batch = std::string("batch");
  std::string x = model.input("image", DataType::float32, {batch, int64_t{3}, size, size});
  x = l.conv("features.0.0", x, 3, channels,
             {.kernel = 4, .stride = 4, .bias = true, .gain = 1, .same = false});
  x = l.layer_norm("features.0.2", l.transpose(x, {0, 2, 3, 1}), channels);
  for (int stage = 0; stage < (tiny ? 2 : 4); ++stage) {
    const std::string name = "features." + std::to_string(2 * stage + 1);
    if (stage > 0) {
      x = merged(l, "features." + std::to_string(2 * stage), x, side, channels);
      side /= 2, channels *= 2, heads *= 2;
    }
    for (int i = 0; i < depths[stage]; ++i) {
      const bool moves = i % 2 == 1 && side > window;
      x = block(l, name + "." + std::to_string(i), x,
                {side, channels, heads, window, moves ? window / 2 : 0});
    }
  }
  x = l.transpose(l.layer_norm("norm", x, channels), {0, 3, 1, 2});
  x = model.node("Flatten", {model.node("GlobalAveragePool", {x})}, {{"axis", 1}});
  l.gemm("head", x, channels, classes, 1, "logits");
  model.output("logits", DataType::float32, {batch, classes});
  return model;
}

}  // namespace fusewise::zoo
