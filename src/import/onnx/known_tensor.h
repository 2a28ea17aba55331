// A small tensor of integers or booleans whose elements are known as dimensions while importing: constants,
// and whatever chains of Shape, Gather, Concat, arithmetic and the like make of the model's shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "numerics/data_type.h"
#include "numerics/dim.h"

namespace fusewise::onnx {

struct KnownTensor {
  // Larger tensors are data and not shapes, and are not followed.
  static constexpr int64_t max_elements = 128;

  DataType type = DataType::int64;
  std::vector<int64_t> shape;
  std::vector<Dim> values;  // row-major; floats only where all values are integral

  int rank() const { return static_cast<int>(shape.size()); }
  std::optional<std::vector<int64_t>> constants() const;  // nothing when a value is symbolic
  graph::TensorType tensor_type() const;
};

// The elements of a constant, when it is small and of a suitable type. Floats qualify only if all of them are
// integral and below 2^24, without a negative zero.
std::optional<KnownTensor> known_elements(const graph::ConstantData& constant);

}  // namespace fusewise::onnx
