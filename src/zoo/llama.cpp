// A text decoder of the LLaMA family: RMS normalisation, rotary positions, fewer heads of keys and values than of
// queries, and a gated MLP; in the sizes of SmolLM-135M.
#include <cmath>
#include <limits>

#include "zoo/layers/attention.h"
#include "zoo/layers/layers.h"
#include "zoo/list.h"

namespace fusewise::zoo {

namespace {

struct Size {
  int64_t layers, width, heads, shared_heads, inner, vocabulary;
  int64_t head() const { return width / heads; }
};

constexpr float epsilon = 1e-5f;

Size size_of(bool tiny) { return tiny ? Size{2, 32, 4, 2, 48, 97} : Size{30, 576, 9, 3, 1536, 49152}; }

struct Rotation {
  std::string cosine, sine;  // [1, 1, seq, head]
};

// Angles are position * 10000^(-2 i / head), for both halves of a head.
Rotation rotation(Layers& l, const Size& s, const std::string& positions) {
  const int64_t half = s.head() / 2;
  std::vector<float> frequencies;
  for (int64_t i = 0; i < half; ++i)
    frequencies.push_back(
        static_cast<float>(std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(s.head()))));
  const std::string inverse = l.m.floats("rotary.inv_freq", {half, 1}, std::move(frequencies));
  const std::string numbers = l.m.node("Cast", {l.unsqueeze(positions, {0})}, {{"to", 1}});
  const std::string angles = l.transpose(l.matmul(inverse, numbers), {1, 0});
  const std::string both = l.concat({angles, angles}, -1);
  return {l.unsqueeze(l.m.node("Cos", {both}), {0, 1}), l.unsqueeze(l.m.node("Sin", {both}), {0, 1})};
}

// x cos + (-x2, x1) sin
std::string rotated(Layers& l, const Size& s, const std::string& x, const Rotation& r) {
  const int64_t half = s.head() / 2;
  const std::string first = l.slice(x, 3, 0, half), second = l.slice(x, 3, half, s.head());
  const std::string turned = l.concat({l.m.node("Neg", {second}), first}, -1);
  return l.add(l.mul(x, r.cosine), l.mul(turned, r.sine));
}

// Each head of keys or values for as many heads of queries as share it.
std::string repeated(Layers& l, const Size& s, const std::string& x) {
  const std::string wide =
      l.m.node("Expand", {l.unsqueeze(x, {2}), l.integers({1, 1, s.heads / s.shared_heads, 1, 1})});
  return l.reshape(wide, {0, s.heads, -1, s.head()});
}

std::string attention(Layers& l, const Size& s, int layer, const std::string& x, const Rotation& r,
                      const std::string& mask) {
  const bool decodes = mask.empty();
  const std::string number = std::to_string(layer), name = "layers." + number + ".self_attn.";
  const auto project = [&](const std::string& part, int64_t heads) {
    return by_head(l, l.linear(name + part, x, s.width, heads * s.head(), {.bias = false}), heads, s.head());
  };
  const std::string q = rotated(l, s, project("q_proj", s.heads), r);
  const OnnxDim batch = std::string("batch"), past = std::string("past");
  const auto present = [&](const std::string& what, const std::string& value) {
    const std::string past_name = "past_" + what + "_" + number,
                      present_name = "present_" + what + "_" + number;
    if (decodes)
      l.m.node("Concat", {past_name, value}, {{"axis", 2}}, present_name);
    else
      l.m.node("Identity", {value}, {}, present_name);
    if (decodes) l.m.input(past_name, DataType::float32, {batch, s.shared_heads, past, s.head()});
    const OnnxDim total = std::string(decodes ? "past + 1" : "seq");
    l.m.output(present_name, DataType::float32, {batch, s.shared_heads, total, s.head()});
    return present_name;
  };
  const std::string k = present("key", rotated(l, s, project("k_proj", s.shared_heads), r));
  const std::string v = present("value", project("v_proj", s.shared_heads));
  std::string scores = l.matmul(q, l.transpose(repeated(l, s, k), {0, 1, 3, 2}));
  scores = l.mul(scores, l.scalar("scale", 1 / std::sqrt(static_cast<float>(s.head()))));
  if (!decodes) scores = l.add(scores, mask);
  const std::string context = joined(l, l.matmul(l.softmax(scores), repeated(l, s, v)), s.width);
  return l.linear(name + "o_proj", context, s.width, s.width, {.bias = false});
}

std::string gated_mlp(Layers& l, const Size& s, const std::string& name, const std::string& x) {
  const std::string gate = l.silu(l.linear(name + "gate_proj", x, s.width, s.inner, {.bias = false}));
  const std::string up = l.linear(name + "up_proj", x, s.width, s.inner, {.bias = false});
  return l.linear(name + "down_proj", l.mul(gate, up), s.inner, s.width, {.bias = false, .gain = 2});
}

OnnxBuilder llama(bool tiny, bool decodes) {
  OnnxBuilder model;
  Layers l(model);
  const Size s = size_of(tiny);
  const OnnxDim batch = std::string("batch");
  const OnnxDim length = decodes ? OnnxDim(int64_t{1}) : OnnxDim(std::string("seq"));
  model.input("input_ids", DataType::int64, {batch, length});
  model.output("logits", DataType::float32, {batch, length, s.vocabulary});
  std::string x = l.embedding("embed_tokens", "input_ids", s.vocabulary, s.width);
  const std::string positions =
      decodes ? l.dimension("past_key_0", 2) : counted(l, l.dimension("input_ids", 1));
  const Rotation r = rotation(l, s, positions);
  std::string mask;
  if (!decodes)
    mask = model.node("Where", {causal_mask(l, positions), l.scalar("zero", 0),
                                l.scalar("least", std::numeric_limits<float>::lowest())});
  for (int layer = 0; layer < s.layers; ++layer) {
    const std::string name = "layers." + std::to_string(layer) + ".";
    const std::string y = l.rms_norm_by_parts(name + "input_layernorm", x, s.width, epsilon);
    x = l.add(x, attention(l, s, layer, y, r, mask));
    const std::string z = l.rms_norm_by_parts(name + "post_attention_layernorm", x, s.width, epsilon);
    x = l.add(x, gated_mlp(l, s, name + "mlp.", z));
  }
  x = l.rms_norm_by_parts("norm", x, s.width, epsilon);
  // The head shares the token embedding.
  model.node("MatMul", {x, l.transpose("embed_tokens.weight", {1, 0})}, {}, "logits");
  return model;
}

}  // namespace

OnnxBuilder llama_decode(bool tiny) { return llama(tiny, true); }
OnnxBuilder llama_prefill(bool tiny) { return llama(tiny, false); }

}  // namespace fusewise::zoo
