// What the attention of several models has in common.
#pragma once

#include <string>

#include "zoo/layers/layers.h"

namespace fusewise::zoo {

// [batch, seq, heads * head] -> [batch, heads, seq, head], and back.
std::string by_head(Layers& l, const std::string& x, int64_t heads, int64_t head);
std::string joined(Layers& l, const std::string& x, int64_t width);

// softmax(q k' + mask) v of [.., seq, head] each, the queries scaled before; without a mask when it is empty.
std::string attend(Layers& l, const std::string& q, const std::string& k, const std::string& v,
                   const std::string& mask = "");

// 0, 1, .., length - 1; the length is a vector of one element.
std::string counted(Layers& l, const std::string& length);
// Of positions: whether column j <= row i.
std::string causal_mask(Layers& l, const std::string& positions);

}  // namespace fusewise::zoo
