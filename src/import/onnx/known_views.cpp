// Rearranging tensors whose elements are known.
#include <algorithm>

#include "base/error.h"
#include "import/onnx/known_ops.h"

namespace fusewise::onnx::known {

namespace {

Results reshaped(Call& call, std::vector<int64_t> shape) {
  const KnownTensor* data = call.known(0);
  if (!data || count_of(shape) != static_cast<int64_t>(data->values.size())) return std::nullopt;
  return one(KnownTensor{data->type, std::move(shape), data->values});
}

// Outer, axis and inner extents, row-major.
struct Split3 {
  int64_t outer = 1, extent = 1, inner = 1;
};
Split3 split_at(const std::vector<int64_t>& shape, int axis) {
  Split3 s;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int>(d) < axis)
      s.outer *= shape[d];
    else if (static_cast<int>(d) == axis)
      s.extent = shape[d];
    else
      s.inner *= shape[d];
  }
  return s;
}

// The elements at these positions along the axis.
KnownTensor taken(const KnownTensor& data, int axis, const std::vector<int64_t>& positions) {
  const Split3 s = split_at(data.shape, axis);
  KnownTensor result{data.type, data.shape, {}};
  result.shape[static_cast<size_t>(axis)] = static_cast<int64_t>(positions.size());
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t p : positions)
      for (int64_t i = 0; i < s.inner; ++i)
        result.values.push_back(data.values[static_cast<size_t>((o * s.extent + p) * s.inner + i)]);
  return result;
}

}  // namespace

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t d : shape) {
    if (d < 0 || d > KnownTensor::max_elements) return KnownTensor::max_elements + 1;
    count *= d;
    if (count > KnownTensor::max_elements) return count;
  }
  return count;
}

Results one(std::optional<KnownTensor> result) {
  if (!result) return std::nullopt;
  return std::vector<KnownTensor>{std::move(*result)};
}

Results squeeze(Call& call) {
  const KnownTensor* data = call.known(0);
  if (!data) return std::nullopt;
  const auto axes = call.axes(data->rank(), 1);
  std::vector<int64_t> shape;
  for (int d = 0; d < data->rank(); ++d) {
    const int64_t extent = data->shape[static_cast<size_t>(d)];
    const bool drop = axes ? std::ranges::count(*axes, d) > 0 : extent == 1;
    if (!drop) shape.push_back(extent);
  }
  return reshaped(call, std::move(shape));
}

Results unsqueeze(Call& call) {
  const KnownTensor* data = call.known(0);
  if (!data) return std::nullopt;
  const auto raw = call.integer_list("axes");
  const size_t added = raw ? raw->size() : call.integers(1).size();
  const int rank = data->rank() + static_cast<int>(added);
  const auto axes = call.axes(rank, 1);
  std::vector<int64_t> shape;
  size_t next = 0;
  for (int d = 0; d < rank; ++d) {
    if (std::ranges::count(*axes, d) > 0)
      shape.push_back(1);
    else if (next < data->shape.size())
      shape.push_back(data->shape[next++]);
  }
  return reshaped(call, std::move(shape));
}

Results reshape(Call& call) {
  const KnownTensor* data = call.known(0);
  const KnownTensor* target = data && call.has(1) ? call.known(1) : nullptr;
  if (!target) return std::nullopt;
  auto shape = target->constants();
  if (!shape) return std::nullopt;
  int64_t count = 1;
  for (size_t i = 0; i < shape->size(); ++i) {
    int64_t& extent = (*shape)[i];
    if (extent == 0 && call.integer("allowzero", 0) == 0) {
      if (i >= data->shape.size()) return std::nullopt;
      extent = data->shape[i];
    }
    if (extent > KnownTensor::max_elements) return std::nullopt;
    if (extent >= 0) count *= extent;
    if (count > KnownTensor::max_elements) return std::nullopt;
  }
  const int64_t total = static_cast<int64_t>(data->values.size());
  for (int64_t& extent : *shape)
    if (extent == -1) extent = count == 0 ? 0 : total / count;
  return reshaped(call, std::move(*shape));
}

Results gather(Call& call) {
  const KnownTensor* data = call.known(0);
  const KnownTensor* indices = data ? call.known(1) : nullptr;
  auto positions = indices ? indices->constants() : std::nullopt;
  if (!positions || data->rank() == 0 || is_float(data->type)) return std::nullopt;
  const int axis = call.axis(call.integer("axis", 0), data->rank());
  const int64_t extent = data->shape[static_cast<size_t>(axis)];
  for (int64_t& p : *positions) {
    if (p < -extent || p >= extent) call.fail("an index lies outside of the tensor");
    if (p < 0) p += extent;
  }
  const Split3 s = split_at(data->shape, axis);
  if (s.outer * s.inner * static_cast<int64_t>(positions->size()) > KnownTensor::max_elements)
    return std::nullopt;
  KnownTensor result = taken(*data, axis, *positions);
  std::vector<int64_t> shape(data->shape.begin(), data->shape.begin() + axis);
  shape.insert(shape.end(), indices->shape.begin(), indices->shape.end());
  shape.insert(shape.end(), data->shape.begin() + axis + 1, data->shape.end());
  result.shape = std::move(shape);
  return one(std::move(result));
}

Results concat(Call& call) {
  std::vector<const KnownTensor*> parts;
  for (size_t i = 0; i < call.inputs(); ++i) {
    parts.push_back(call.known(i));
    if (!parts.back() || parts.back()->type != parts[0]->type || parts.back()->rank() != parts[0]->rank())
      return std::nullopt;
  }
  if (parts.empty() || parts[0]->rank() == 0) return std::nullopt;
  const int axis = call.axis(call.version() >= 4 ? call.required_integer("axis") : call.integer("axis", 1),
                             parts[0]->rank());
  KnownTensor result{parts[0]->type, parts[0]->shape, {}};
  int64_t extent = 0;
  for (const KnownTensor* part : parts) {
    for (size_t d = 0; d < part->shape.size(); ++d)
      if (static_cast<int>(d) != axis && part->shape[d] != result.shape[d]) return std::nullopt;
    extent += part->shape[static_cast<size_t>(axis)];
  }
  result.shape[static_cast<size_t>(axis)] = extent;
  if (count_of(result.shape) > KnownTensor::max_elements) return std::nullopt;
  const int64_t outer = split_at(result.shape, axis).outer;
  for (int64_t o = 0; o < outer; ++o) {
    for (const KnownTensor* part : parts) {
      const int64_t run = outer == 0 ? 0 : static_cast<int64_t>(part->values.size()) / outer;
      result.values.insert(result.values.end(), part->values.begin() + o * run,
                           part->values.begin() + (o + 1) * run);
    }
  }
  return one(std::move(result));
}

Results slice(Call& call) {
  const KnownTensor* data = call.known(0);
  if (!data) return std::nullopt;
  const auto list = [&](size_t input, std::string_view name) -> std::optional<std::vector<int64_t>> {
    if (auto attribute = call.integer_list(name)) return attribute;
    const KnownTensor* k = call.has(input) ? call.known(input) : nullptr;
    return k ? k->constants() : std::nullopt;
  };
  const auto starts = list(1, "starts"), ends = list(2, "ends"), steps = list(4, "steps");
  if (!starts || !ends || starts->size() != ends->size() || (call.has(4) && !steps)) return std::nullopt;
  if (call.has(3) && !list(3, "axes")) return std::nullopt;
  auto axes = call.axes(data->rank(), 3);
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<int>(i));
  }
  if (axes->size() != starts->size() || (steps && steps->size() != starts->size())) return std::nullopt;
  KnownTensor result = *data;
  for (size_t i = 0; i < axes->size(); ++i) {
    if ((*axes)[i] >= data->rank()) return std::nullopt;
    const int64_t extent = result.shape[static_cast<size_t>((*axes)[i])];
    const int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0) return std::nullopt;
    const auto clamped = [&](int64_t v, int64_t low, int64_t high) {
      return std::clamp(v < 0 ? std::max(v, -extent - 1) + extent : v, low, high);
    };
    const int64_t begin = step > 0 ? clamped((*starts)[i], 0, extent) : clamped((*starts)[i], -1, extent - 1);
    const int64_t end = step > 0 ? clamped((*ends)[i], 0, extent) : clamped((*ends)[i], -1, extent - 1);
    std::vector<int64_t> positions;
    if (step > 0) {
      for (int64_t p = begin; p < end; p += std::min(step, extent + 1)) positions.push_back(p);
    } else {
      for (int64_t p = begin; p > end; p += std::max(step, -extent - 1)) positions.push_back(p);
    }
    result = taken(result, (*axes)[i], positions);
  }
  return one(std::move(result));
}

Results transpose(Call& call) {
  const KnownTensor* data = call.known(0);
  if (!data) return std::nullopt;
  const int rank = data->rank();
  std::vector<int64_t> permutation;
  for (int d = rank; d-- > 0;) permutation.push_back(d);
  if (auto given = call.integer_list("perm")) permutation = *given;
  std::vector<int64_t> sorted = permutation;
  std::ranges::sort(sorted);
  if (static_cast<int>(sorted.size()) != rank) return std::nullopt;
  for (int d = 0; d < rank; ++d)
    if (sorted[static_cast<size_t>(d)] != d) return std::nullopt;
  std::vector<int64_t> strides(data->shape.size(), 1);
  for (int d = rank - 1; d-- > 0;) {
    const size_t i = static_cast<size_t>(d);
    strides[i] = strides[i + 1] * data->shape[i + 1];
  }
  KnownTensor result{data->type, {}, {}};
  for (int64_t p : permutation) result.shape.push_back(data->shape[static_cast<size_t>(p)]);
  for (int64_t at = 0, count = count_of(result.shape); at < count; ++at) {
    int64_t rest = at, index = 0;
    for (int d = rank; d-- > 0;) {
      const size_t i = static_cast<size_t>(d);
      index += rest % result.shape[i] * strides[static_cast<size_t>(permutation[i])];
      rest /= result.shape[i];
    }
    result.values.push_back(data->values[static_cast<size_t>(index)]);
  }
  return one(std::move(result));
}

}  // namespace fusewise::onnx::known
