// The text models with learned positions.
#include <cmath>
#include <limits>
#include <numeric>

#include "zoo/layers/attention.h"
#include "zoo/layers/layers.h"
#include "zoo/list.h"

namespace fusewise::zoo {

namespace {

struct Size {
  int64_t layers, width, heads, inner, vocabulary, positions;
  int64_t head() const { return width / heads; }
};

Size bert_size(bool tiny) { return tiny ? Size{2, 32, 2, 64, 97, 64} : Size{12, 768, 12, 3072, 30522, 512}; }
Size gpt2_size(bool tiny) {
  return tiny ? Size{2, 32, 2, 128, 97, 64} : Size{12, 768, 12, 3072, 50257, 1024};
}

std::string root_of_head(Layers& l, const Size& s) {
  return l.scalar("sqrt_head", std::sqrt(static_cast<float>(s.head())));
}
std::string least(Layers& l) { return l.scalar("least", std::numeric_limits<float>::lowest()); }

std::string bert_layer(Layers& l, const Size& s, const std::string& name, const std::string& x,
                       const std::string& mask) {
  const auto project = [&](const std::string& part) {
    return by_head(l, l.linear(name + ".attention." + part, x, s.width, s.width), s.heads, s.head());
  };
  const std::string q = project("query"), k = project("key"), v = project("value");
  const std::string products = l.matmul(q, l.transpose(k, {0, 1, 3, 2}));
  const std::string scores = l.add(l.m.node("Div", {products, root_of_head(l, s)}), mask);
  const std::string context = joined(l, l.matmul(l.softmax(scores), v), s.width);
  const std::string attended = l.linear(name + ".attention.output", context, s.width, s.width);
  const std::string y = l.layer_norm(name + ".attention.norm", l.add(attended, x), s.width);
  const std::string inner = l.gelu_by_erf(l.linear(name + ".intermediate", y, s.width, s.inner));
  const std::string out = l.linear(name + ".output", inner, s.inner, s.width, {.gain = 2});
  return l.layer_norm(name + ".norm", l.add(out, y), s.width);
}

// Attention of one GPT-2 layer; with caches the past is put before the new keys and values. Without a mask it decodes.
std::string gpt2_attention(Layers& l, const Size& s, int layer, const std::string& x,
                           const std::string& mask) {
  const bool decodes = mask.empty();
  const std::string number = std::to_string(layer), name = "h." + number + ".attn";
  const std::string qkv = l.linear(name + ".c_attn", x, s.width, 3 * s.width);
  const std::string sizes = l.integers({s.width, s.width, s.width});
  const std::vector<std::string> parts = l.m.node_with_outputs(3, "Split", {qkv, sizes}, {{"axis", 2}});
  const auto split = [&](size_t part) { return by_head(l, parts[part], s.heads, s.head()); };
  const std::string q = split(0);
  std::string k = split(1), v = split(2);
  const OnnxDim batch = std::string("batch"), past = std::string("past");
  const std::string total_name = decodes ? "past + 1" : "seq";
  if (decodes) {
    const OnnxShape shape{batch, s.heads, past, s.head()};
    l.m.input("past_key_" + number, DataType::float32, shape);
    l.m.input("past_value_" + number, DataType::float32, shape);
  }
  const auto present = [&](const std::string& what, const std::string& value) {
    const std::string present_name = "present_" + what + "_" + number;
    if (decodes)
      l.m.node("Concat", {"past_" + what + "_" + number, value}, {{"axis", 2}}, present_name);
    else
      l.m.node("Identity", {value}, {}, present_name);
    l.m.output(present_name, DataType::float32, {batch, s.heads, total_name, s.head()});
    return present_name;
  };
  k = present("key", k);
  v = present("value", v);
  std::string scores = l.matmul(q, l.transpose(k, {0, 1, 3, 2}));
  scores = l.m.node("Div", {scores, root_of_head(l, s)});
  if (!decodes) scores = l.m.node("Where", {mask, scores, least(l)});
  const std::string context = joined(l, l.matmul(l.softmax(scores), v), s.width);
  return l.linear(name + ".c_proj", context, s.width, s.width);
}

OnnxBuilder gpt2(bool tiny, bool decodes) {
  OnnxBuilder model;
  Layers l(model);
  const Size s = gpt2_size(tiny);
  const OnnxDim length = decodes ? OnnxDim(int64_t{1}) : OnnxDim(std::string("seq"));
  model.input("input_ids", DataType::int64, {std::string("batch"), length});
  model.output("logits", DataType::float32, {std::string("batch"), length, s.vocabulary});
  const std::string tokens = l.embedding("wte", "input_ids", s.vocabulary, s.width);
  // When decoding, the position is the number of tokens in the cache.
  const std::string position =
      decodes ? l.dimension("past_key_0", 2) : counted(l, l.dimension("input_ids", 1));
  const std::string mask = decodes ? "" : causal_mask(l, position);
  std::string x = l.add(tokens, l.embedding("wpe", position, s.positions, s.width));
  for (int layer = 0; layer < s.layers; ++layer) {
    const std::string name = "h." + std::to_string(layer);
    x = l.add(x, gpt2_attention(l, s, layer, l.layer_norm(name + ".ln_1", x, s.width), mask));
    const std::string y = l.layer_norm(name + ".ln_2", x, s.width);
    const std::string inner = l.gelu_by_tanh(l.linear(name + ".mlp.c_fc", y, s.width, s.inner));
    x = l.add(x, l.linear(name + ".mlp.c_proj", inner, s.inner, s.width, {.gain = 2}));
  }
  x = l.layer_norm("ln_f", x, s.width);
  // The head shares the token embedding.
  model.node("MatMul", {x, l.transpose("wte.weight", {1, 0})}, {}, "logits");
  return model;
}

}  // namespace

OnnxBuilder bert(bool tiny) {
  OnnxBuilder model;
  Layers l(model);
  const Size s = bert_size(tiny);
  const OnnxShape ids{std::string("batch"), std::string("seq")};
  model.input("input_ids", DataType::int64, ids);
  model.input("attention_mask", DataType::int64, ids);
  model.input("token_type_ids", DataType::int64, ids);
  const std::string words = l.embedding("embeddings.word", "input_ids", s.vocabulary, s.width);
  const std::string types = l.embedding("embeddings.token_type", "token_type_ids", 2, s.width);
  std::vector<int64_t> positions(static_cast<size_t>(s.positions));
  std::iota(positions.begin(), positions.end(), 0);
  const std::string all = model.ints("positions", {1, s.positions}, std::move(positions));
  const std::string length = l.dimension("input_ids", 1);
  const std::string position = model.node("Slice", {all, l.integers({0}), length, l.integers({1})});
  const std::string places = l.embedding("embeddings.position", position, s.positions, s.width);
  std::string x = l.layer_norm("embeddings.norm", l.add(l.add(words, types), places), s.width);
  // (1 - mask) * the least float, added to the scores.
  const std::string numbers = model.node("Cast", {l.unsqueeze("attention_mask", {1, 2})}, {{"to", 1}});
  const std::string mask = l.mul(model.node("Sub", {l.scalar("one", 1), numbers}), least(l));
  for (int layer = 0; layer < s.layers; ++layer)
    x = bert_layer(l, s, "encoder.layer." + std::to_string(layer), x, mask);
  model.node("Identity", {x}, {}, "last_hidden_state");
  model.output("last_hidden_state", DataType::float32, {std::string("batch"), std::string("seq"), s.width});
  return model;
}

OnnxBuilder gpt2_decode(bool tiny) { return gpt2(tiny, true); }
OnnxBuilder gpt2_prefill(bool tiny) { return gpt2(tiny, false); }

}  // namespace fusewise::zoo
