#include "graph/interpreter/convert.h"

#include <algorithm>

namespace fusewise::graph {

namespace {

bool is_half(DataType type) { return type == DataType::float16 || type == DataType::bfloat16; }

template <class To, class From>
void convert_all(const Tensor& source, Tensor& target) {
  const std::span<const From> from = source.as<From>();
  std::transform(from.begin(), from.end(), target.mutable_as<To>().begin(),
                 [](From value) { return static_cast<To>(value); });
}

Tensor converted(const Tensor& tensor, DataType to) {
  Tensor result(to, tensor.shape);
  with_plain_type(to, [&](auto target) {
    with_plain_type(tensor.element,
                    [&](auto source) { convert_all<decltype(target), decltype(source)>(tensor, result); });
  });
  return result;
}

}  // namespace

DataType contraction_type(DataType element) {
  if (is_half(element)) return DataType::float32;
  if (is_float(element)) return element;
  return bits_of(element) == 64 ? DataType::uint64 : DataType::uint32;
}

void load_floats(const std::byte* source, DataType type, int64_t count, float* target) {
  if (type == DataType::float32) {
    std::copy_n(reinterpret_cast<const float*>(source), count, target);
    return;
  }
  check(is_half(type), "a type that is not evaluated in float32");
  const uint16_t* bits = reinterpret_cast<const uint16_t*>(source);
  if (type == DataType::float16) {
    std::transform(bits, bits + count, target, float16_to_float);
  } else {
    std::transform(bits, bits + count, target, bfloat16_to_float);
  }
}

void store_floats(const float* source, int64_t count, DataType type, std::byte* target) {
  if (type == DataType::float32) {
    std::copy_n(source, count, reinterpret_cast<float*>(target));
    return;
  }
  check(is_half(type), "a type that is not evaluated in float32");
  uint16_t* bits = reinterpret_cast<uint16_t*>(target);
  if (type == DataType::float16) {
    std::transform(source, source + count, bits, float_to_float16);
  } else {
    std::transform(source, source + count, bits, float_to_bfloat16);
  }
}

Tensor widened(const Tensor& tensor, DataType to) {
  if (tensor.element == to) return tensor.aligned();
  if (!is_half(tensor.element)) return converted(tensor.aligned(), to);
  Tensor result(DataType::float32, tensor.shape);
  load_floats(tensor.aligned().bytes().data(), tensor.element, tensor.count(),
              result.mutable_as<float>().data());
  return widened(result, to);
}

Tensor narrowed(const Tensor& tensor, DataType to) {
  if (tensor.element == to) return tensor;
  if (is_half(to)) {
    Tensor result(to, tensor.shape);
    store_floats(tensor.as<float>().data(), tensor.count(), to, result.mutable_bytes().data());
    return result;
  }
  if (to == DataType::boolean) {
    Tensor result(to, tensor.shape);
    with_plain_type(tensor.element, [&](auto zero) {
      const auto from = tensor.as<decltype(zero)>();
      std::transform(from.begin(), from.end(), result.mutable_as<uint8_t>().begin(),
                     [&](auto value) { return static_cast<uint8_t>(value != zero); });
    });
    return result;
  }
  return converted(tensor, to);
}

}  // namespace fusewise::graph
