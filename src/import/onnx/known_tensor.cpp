#include "import/onnx/known_tensor.h"

#include <cmath>

#include "numerics/scalar_op.h"

namespace fusewise::onnx {

std::optional<std::vector<int64_t>> KnownTensor::constants() const {
  std::vector<int64_t> result;
  result.reserve(values.size());
  for (const Dim& d : values) {
    if (!d.is_constant()) return std::nullopt;
    result.push_back(d.value());
  }
  return result;
}

graph::TensorType KnownTensor::tensor_type() const { return {type, Shape(shape.begin(), shape.end())}; }

std::optional<KnownTensor> known_elements(const graph::ConstantData& constant) {
  const DataType type = constant.type.element;
  const bool floats = type == DataType::float32 || type == DataType::float64;
  if (!is_computable(type) || (is_float(type) && !floats) || type == DataType::uint64) return std::nullopt;
  KnownTensor known;
  known.type = type;
  int64_t count = 1;
  for (const Dim& d : constant.type.shape) {
    known.shape.push_back(d.value());
    if (d.value() > KnownTensor::max_elements) return std::nullopt;
    count *= d.value();
    if (count > KnownTensor::max_elements) return std::nullopt;
  }
  const size_t size = static_cast<size_t>(bytes_of(type));
  for (int64_t i = 0; i < count; ++i) {
    const Scalar element = load_scalar(constant.bytes.data() + static_cast<size_t>(i) * size, type);
    if (!floats) {
      known.values.push_back(element.i);
      continue;
    }
    const double limit = 1 << 24;
    if (!(std::abs(element.f) < limit) || element.f != std::trunc(element.f)) return std::nullopt;
    if (element.f == 0 && std::signbit(element.f)) return std::nullopt;
    known.values.push_back(static_cast<int64_t>(element.f));
  }
  return known;
}

}  // namespace fusewise::onnx
