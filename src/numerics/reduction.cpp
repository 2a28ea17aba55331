#include "numerics/reduction.h"

#include <string>

namespace fusewise {
namespace {

template <class T>
Scalar reduce_integers(Combine combine, DataType type, int64_t count,
                       const std::function<Scalar(int64_t)>& get, const ReductionOrder& order) {
  T result = reduce_in_order<T>(combine, count, [&](int64_t i) { return static_cast<T>(get(i).i); }, order);
  return {type, 0, static_cast<int64_t>(result)};
}

}  // namespace

Scalar reduce_scalars(Combine combine, DataType type, int64_t count,
                      const std::function<Scalar(int64_t)>& get, const ReductionOrder& order) {
  switch (type) {
    case DataType::boolean: {
      bool any = combine == Combine::sum || combine == Combine::max;
      Combine as_bits = any ? Combine::max : Combine::min;
      uint8_t value =
          reduce_in_order<uint8_t>(as_bits, count, [&](int64_t i) { return get(i).i != 0; }, order);
      return {type, 0, value != 0};
    }
    case DataType::int8:
      return reduce_integers<int8_t>(combine, type, count, get, order);
    case DataType::int16:
      return reduce_integers<int16_t>(combine, type, count, get, order);
    case DataType::int32:
      return reduce_integers<int32_t>(combine, type, count, get, order);
    case DataType::int64:
      return reduce_integers<int64_t>(combine, type, count, get, order);
    case DataType::uint8:
      return reduce_integers<uint8_t>(combine, type, count, get, order);
    case DataType::uint16:
      return reduce_integers<uint16_t>(combine, type, count, get, order);
    case DataType::uint32:
      return reduce_integers<uint32_t>(combine, type, count, get, order);
    case DataType::uint64:
      return reduce_integers<uint64_t>(combine, type, count, get, order);
    case DataType::float16:
    case DataType::bfloat16:
    case DataType::float32: {
      float value = reduce_in_order<float>(
          combine, count, [&](int64_t i) { return static_cast<float>(get(i).f); }, order);
      return convert({DataType::float32, value, 0}, type);
    }
    case DataType::float64:
      return {type, reduce_in_order<double>(combine, count, [&](int64_t i) { return get(i).f; }, order), 0};
    default:
      throw InternalError("nothing reduces elements of type " + std::string(name_of(type)));
  }
}

}  // namespace fusewise
