#include "zoo/layers/attention.h"

namespace fusewise::zoo {

std::string by_head(Layers& l, const std::string& x, int64_t heads, int64_t head) {
  return l.transpose(l.reshape(x, {0, 0, heads, head}), {0, 2, 1, 3});
}

std::string joined(Layers& l, const std::string& x, int64_t width) {
  return l.reshape(l.transpose(x, {0, 2, 1, 3}), {0, 0, width});
}

std::string attend(Layers& l, const std::string& q, const std::string& k, const std::string& v,
                   const std::string& mask) {
  std::string scores = l.matmul(q, l.transpose(k, {0, 1, 3, 2}));
  if (!mask.empty()) scores = l.add(scores, mask);
  return l.matmul(l.softmax(scores), v);
}

std::string counted(Layers& l, const std::string& length) {
  const std::string end = l.m.node("Squeeze", {length, l.integers({0})});
  return l.m.node("Range", {l.integer(0), end, l.integer(1)});
}

std::string causal_mask(Layers& l, const std::string& positions) {
  return l.m.node("LessOrEqual", {l.unsqueeze(positions, {0}), l.unsqueeze(positions, {1})});
}

}  // namespace fusewise::zoo
