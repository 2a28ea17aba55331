// The text models.
#include <cmath>
#include <limits>

#include "zoo/layers.h"
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

// 0.5 x (1 + erf(x / sqrt 2)), as exporters open it.
std::string gelu_by_erf(Layers& l, const std::string& x) {
  const std::string scaled = l.m.node("Div", {x, "sqrt_two"});
  const std::string one_more = l.add(l.m.node("Erf", {scaled}), "one");
  return l.m.node("Mul", {l.m.node("Mul", {x, one_more}), "half"});
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
std::string gelu_by_tanh(Layers& l, const std::string& x) {
  const std::string cube = l.m.node("Pow", {x, "three"});
  const std::string sum = l.add(x, l.m.node("Mul", {cube, "gelu_cubic"}));
  const std::string one_more = l.add(l.m.node("Tanh", {l.m.node("Mul", {sum, "gelu_factor"})}), "one");
  return l.m.node("Mul", {l.m.node("Mul", {x, "half"}), one_more});
}

void gelu_constants(Layers& l, bool by_tanh) {
  l.scalar("half", 0.5f);
  l.scalar("one", 1);
  if (!by_tanh) {
    l.scalar("sqrt_two", std::sqrt(2.0f));
    return;
  }
  l.scalar("three", 3);
  l.scalar("gelu_cubic", 0.044715f);
  l.scalar("gelu_factor", static_cast<float>(std::sqrt(2.0 / 3.14159265358979323846)));
}

// [batch, seq, width] -> [batch, heads, seq, head]
std::string by_head(Layers& l, const Size& s, const std::string& x) {
  return l.transpose(l.reshape(x, {0, 0, s.heads, s.head()}), {0, 2, 1, 3});
}
std::string joined(Layers& l, const Size& s, const std::string& x) {
  return l.reshape(l.transpose(x, {0, 2, 1, 3}), {0, 0, s.width});
}

std::string embedding(Layers& l, const std::string& name, const std::string& ids, int64_t count,
                      int64_t width) {
  const std::string table = l.m.initializer(seeded(name + ".weight", {count, width}, 1));
  return l.m.node("Gather", {table, ids}, {{"axis", 0}});
}

// The number of tokens of input_ids, as a vector of one element.
std::string sequence_length(Layers& l) {
  const std::string shape = l.m.node("Shape", {"input_ids"});
  return l.m.node("Gather", {shape, l.m.ints("index_one", {1}, {1})}, {{"axis", 0}});
}

std::string bert_layer(Layers& l, const Size& s, const std::string& name, const std::string& x,
                       const std::string& mask) {
  const auto project = [&](const std::string& part) {
    return by_head(l, s, l.linear(name + ".attention." + part, x, s.width, s.width));
  };
  const std::string q = project("query"), k = project("key"), v = project("value");
  const std::string keys = l.transpose(k, {0, 1, 3, 2});
  std::string scores = l.m.node("Div", {l.m.node("MatMul", {q, keys}), "sqrt_head"});
  scores = l.add(scores, mask);
  const std::string weights = l.m.node("Softmax", {scores}, {{"axis", -1}});
  const std::string context = joined(l, s, l.m.node("MatMul", {weights, v}));
  const std::string attended = l.linear(name + ".attention.output", context, s.width, s.width);
  const std::string y = l.layer_norm(name + ".attention.norm", l.add(attended, x), s.width);
  const std::string inner = gelu_by_erf(l, l.linear(name + ".intermediate", y, s.width, s.inner));
  const std::string out = l.linear(name + ".output", inner, s.inner, s.width, 2);
  return l.layer_norm(name + ".norm", l.add(out, y), s.width);
}

// Attention of one GPT-2 layer; with caches the past is put before the new keys and values.
std::string gpt2_attention(Layers& l, const Size& s, int layer, const std::string& x, bool decodes) {
  const std::string number = std::to_string(layer), name = "h." + number + ".attn";
  const std::string qkv = l.linear(name + ".c_attn", x, s.width, 3 * s.width);
  const std::string sizes = "split_sizes";
  if (layer == 0) l.m.ints(sizes, {3}, {s.width, s.width, s.width});
  const std::vector<std::string> parts = l.m.node_with_outputs(3, "Split", {qkv, sizes}, {{"axis", 2}});
  const std::string q = by_head(l, s, parts[0]);
  std::string k = by_head(l, s, parts[1]), v = by_head(l, s, parts[2]);
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
  std::string scores = l.m.node("MatMul", {q, l.transpose(k, {0, 1, 3, 2})});
  scores = l.m.node("Div", {scores, "sqrt_head"});
  if (!decodes) scores = l.m.node("Where", {"causal_mask", scores, "least"});
  const std::string weights = l.m.node("Softmax", {scores}, {{"axis", -1}});
  return l.linear(name + ".c_proj", joined(l, s, l.m.node("MatMul", {weights, v})), s.width, s.width);
}

// Whether column j <= row i.
void causal_mask(Layers& l) {
  const std::string length = l.m.node("Squeeze", {"length", l.m.ints("axis_zero", {1}, {0})});
  const std::string range =
      l.m.node("Range", {l.m.ints("zero", {}, {0}), length, l.m.ints("one_step", {}, {1})});
  const std::string column = l.m.node("Unsqueeze", {range, "axis_zero"});
  const std::string row = l.m.node("Unsqueeze", {range, l.m.ints("axis_one", {1}, {1})});
  l.m.node("LessOrEqual", {column, row}, {}, "causal_mask");
  l.scalar("least", std::numeric_limits<float>::lowest());
}

OnnxBuilder gpt2(bool tiny, bool decodes) {
  OnnxBuilder model;
  Layers l(model);
  const Size s = gpt2_size(tiny);
  gelu_constants(l, true);
  l.scalar("sqrt_head", std::sqrt(static_cast<float>(s.head())));
  const OnnxDim length = decodes ? OnnxDim(int64_t{1}) : OnnxDim(std::string("seq"));
  model.input("input_ids", DataType::int64, {std::string("batch"), length});
  model.output("logits", DataType::float32, {std::string("batch"), length, s.vocabulary});
  const std::string tokens = embedding(l, "wte", "input_ids", s.vocabulary, s.width);
  std::string position;
  if (decodes) {
    // The position is the number of tokens in the cache.
    const std::string shape = model.node("Shape", {"past_key_0"});
    position = model.node("Gather", {shape, model.ints("index_two", {1}, {2})}, {{"axis", 0}});
  } else {
    model.node("Identity", {sequence_length(l)}, {}, "length");
    causal_mask(l);
    const std::string end = model.node("Squeeze", {"length", "axis_zero"});
    position = model.node("Range", {"zero", end, "one_step"});
  }
  const std::string places = embedding(l, "wpe", position, s.positions, s.width);
  std::string x = l.add(tokens, places);
  for (int layer = 0; layer < s.layers; ++layer) {
    const std::string name = "h." + std::to_string(layer);
    x = l.add(x, gpt2_attention(l, s, layer, l.layer_norm(name + ".ln_1", x, s.width), decodes));
    const std::string y = l.layer_norm(name + ".ln_2", x, s.width);
    const std::string inner = gelu_by_tanh(l, l.linear(name + ".mlp.c_fc", y, s.width, s.inner));
    x = l.add(x, l.linear(name + ".mlp.c_proj", inner, s.inner, s.width, 2));
  }
  x = l.layer_norm("ln_f", x, s.width);
  // The head shares the token embedding.
  const std::string head = l.transpose("wte.weight", {1, 0});
  model.node("MatMul", {x, head}, {}, "logits");
  return model;
}

}  // namespace

OnnxBuilder bert(bool tiny) {
  OnnxBuilder model;
  Layers l(model);
  const Size s = bert_size(tiny);
  gelu_constants(l, false);
  l.scalar("sqrt_head", std::sqrt(static_cast<float>(s.head())));
  const OnnxShape ids{std::string("batch"), std::string("seq")};
  model.input("input_ids", DataType::int64, ids);
  model.input("attention_mask", DataType::int64, ids);
  model.input("token_type_ids", DataType::int64, ids);
  const std::string words = embedding(l, "embeddings.word", "input_ids", s.vocabulary, s.width);
  const std::string types = embedding(l, "embeddings.token_type", "token_type_ids", 2, s.width);
  const std::string zero = model.ints("zero", {1}, {0}), all = model.ints("positions", {1, s.positions}, [&] {
    std::vector<int64_t> positions(static_cast<size_t>(s.positions));
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
    return positions;
  }());
  const std::string length = sequence_length(l);
  const std::string position = model.node("Slice", {all, zero, length, "index_one"});
  const std::string places = embedding(l, "embeddings.position", position, s.positions, s.width);
  std::string x = l.layer_norm("embeddings.norm", l.add(l.add(words, types), places), s.width);
  // (1 - mask) * the least float, added to the scores.
  const std::string spread = model.node("Unsqueeze", {"attention_mask", model.ints("axes", {2}, {1, 2})});
  const std::string numbers = model.node("Cast", {spread}, {{"to", 1}});
  const std::string least = l.scalar("least", std::numeric_limits<float>::lowest());
  const std::string mask = model.node("Mul", {model.node("Sub", {"one", numbers}), least});
  for (int layer = 0; layer < s.layers; ++layer)
    x = bert_layer(l, s, "encoder.layer." + std::to_string(layer), x, mask);
  model.node("Identity", {x}, {}, "last_hidden_state");
  model.output("last_hidden_state", DataType::float32, {std::string("batch"), std::string("seq"), s.width});
  return model;
}

OnnxBuilder gpt2_decode(bool tiny) { return gpt2(tiny, true); }
OnnxBuilder gpt2_prefill(bool tiny) { return gpt2(tiny, false); }

}  // namespace fusewise::zoo
