// Quantisation with a scale and a zero point that follow from the data.
#pragma once

#include "graph/builder.h"

namespace fusewise::onnx {

// values = clamp(round(x / scale) + zero, 0, 255); scale float32, zero uint8, both scalars.
struct DynamicallyQuantized {
  graph::Value values, scale, zero;
};
// The whole tensor at once. The range is that of the elements, with 0, so that 0 is exact.
DynamicallyQuantized dynamically_quantized(graph::GraphBuilder& builder, graph::Value x);

}  // namespace fusewise::onnx
