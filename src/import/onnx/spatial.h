// What convolutions and pools share: the attributes of a window that moves over spatial dimensions.
#pragma once

#include <cstdint>
#include <vector>

#include "import/onnx/call.h"

namespace fusewise::onnx {

struct Spatial {
  std::vector<int64_t> kernel, strides, dilations, pad_low, pad_high;
  size_t rank() const { return kernel.size(); }
  bool is_padded() const;
};

// `shape` is that of the operand: batch, channels, spatial dimensions. Padding by auto_pad is worked out.
Spatial spatial_of(Call& c, const Shape& shape, std::vector<int64_t> kernel);

// Adds to pad_high what rounding the number of positions up needs (ceil_mode). Gives what was added.
std::vector<int64_t> round_positions_up(Call& c, const Shape& shape, Spatial& s);

}  // namespace fusewise::onnx
