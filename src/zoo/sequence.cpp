// Models of sequences that are not text decoders: a recurrent tagger and an encoder of speech.
#include <cmath>

#include "zoo/layers/attention.h"
#include "zoo/layers/layers.h"
#include "zoo/list.h"

namespace fusewise::zoo {

namespace {

// Both directions: [seq, batch, in] -> [seq, 2, batch, hidden].
std::string bidirectional_lstm(Layers& l, const std::string& name, const std::string& x, int64_t in,
                               int64_t hidden) {
  const double half_width = 1 / std::sqrt(static_cast<double>(hidden));
  const auto weight = [&](const std::string& part, std::vector<int64_t> dims) {
    return l.m.initializer(seeded(name + part, std::move(dims), half_width));
  };
  const std::string w = weight(".W.weight", {2, 4 * hidden, in}),
                    r = weight(".R.weight", {2, 4 * hidden, hidden});
  const std::string b = weight(".B.bias", {2, 8 * hidden});
  return l.m.node("LSTM", {x, w, r, b},
                  {{"direction", "bidirectional"}, {"hidden_size", OnnxAttributeValue(hidden)}});
}

// sin, then cos, of position * 10000^(-i / (width / 2 - 1)).
std::vector<float> sinusoids(int64_t positions, int64_t width) {
  std::vector<float> table;
  const int64_t half = width / 2;
  for (int64_t position = 0; position < positions; ++position)
    for (int64_t i = 0; i < width; ++i) {
      const double step = std::log(10000.0) / static_cast<double>(half - 1);
      const double angle = static_cast<double>(position) * std::exp(-step * static_cast<double>(i % half));
      table.push_back(static_cast<float>(i < half ? std::sin(angle) : std::cos(angle)));
    }
  return table;
}

struct WhisperSize {
  int64_t layers, width, heads, bands, frames;
};

std::string whisper_layer(Layers& l, const WhisperSize& s, const std::string& name, std::string x) {
  const int64_t head = s.width / s.heads;
  std::string y = l.layer_norm(name + ".self_attn_layer_norm", x, s.width);
  const auto project = [&](const std::string& part, bool bias) {
    return l.linear(name + ".self_attn." + part, y, s.width, s.width, {.bias = bias});
  };
  const std::string scale = l.scalar("scale", 1 / std::sqrt(static_cast<float>(head)));
  const std::string q = by_head(l, l.mul(project("q_proj", true), scale), s.heads, head);
  const std::string k = by_head(l, project("k_proj", false), s.heads, head);
  const std::string v = by_head(l, project("v_proj", true), s.heads, head);
  x = l.add(x,
            l.linear(name + ".self_attn.out_proj", joined(l, attend(l, q, k, v), s.width), s.width, s.width));
  y = l.layer_norm(name + ".final_layer_norm", x, s.width);
  const std::string inner = l.gelu(l.linear(name + ".fc1", y, s.width, 4 * s.width));
  return l.add(x, l.linear(name + ".fc2", inner, 4 * s.width, s.width, {.gain = 2}));
}

}  // namespace

OnnxBuilder lstm_tagger(bool tiny) {
  OnnxBuilder model;
  Layers l(model);
  const int64_t words = tiny ? 97 : 20000, width = tiny ? 12 : 100, hidden = tiny ? 8 : 200;
  const int64_t tags = tiny ? 7 : 45, steps = tiny ? 5 : 50;
  const OnnxDim batch = std::string("batch");
  model.input("words", DataType::int64, {batch, steps});
  const std::string x = l.transpose(l.embedding("embedding", "words", words, width), {1, 0, 2});
  const std::string y = bidirectional_lstm(l, "lstm", x, width, hidden);
  const std::string states = l.reshape(l.transpose(y, {2, 0, 1, 3}), {0, 0, -1});
  const std::string scores = l.linear("projection", states, 2 * hidden, tags);
  model.node("LogSoftmax", {scores}, {{"axis", -1}}, "log_probabilities");
  model.output("log_probabilities", DataType::float32, {batch, steps, tags});
  return model;
}

OnnxBuilder whisper_encoder(bool tiny) {
  OnnxBuilder model(20);
  Layers l(model);
  const WhisperSize s = tiny ? WhisperSize{2, 32, 2, 8, 22} : WhisperSize{6, 512, 8, 80, 3000};
  const OnnxDim batch = std::string("batch");
  model.input("mel", DataType::float32, {batch, s.bands, s.frames});
  const ConvOptions first{.kernel = 3, .bias = true, .gain = 1, .spatial = 1};
  std::string x = l.gelu(l.conv("conv1", "mel", s.bands, s.width, first));
  const ConvOptions second{.kernel = 3, .stride = 2, .bias = true, .spatial = 1};
  x = l.transpose(l.gelu(l.conv("conv2", x, s.width, s.width, second)), {0, 2, 1});
  const int64_t positions = s.frames / 2;
  x = l.add(x, model.floats("embed_positions.weight", {positions, s.width}, sinusoids(positions, s.width)));
  for (int layer = 0; layer < s.layers; ++layer)
    x = whisper_layer(l, s, "layers." + std::to_string(layer), x);
  model.node("Identity", {l.layer_norm("layer_norm", x, s.width)}, {}, "last_hidden_state");
  model.output("last_hidden_state", DataType::float32, {batch, positions, s.width});
  return model;
}

}  // namespace fusewise::zoo
