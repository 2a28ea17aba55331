#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "graph/interpreter/evaluate.h"
#include "graph/interpreter/strided.h"
#include "numerics/scalar_op.h"

namespace fusewise::graph {

namespace {

Tensor broadcast(const Evaluation& e) {
  const Tensor& x = e.operands[0];
  const auto& dims = attributes<BroadcastAttributes>(e.node).dims;
  const std::vector<int64_t> own = row_major_strides(x.shape);
  std::vector<int64_t> source(e.shape.size(), 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    const size_t to = static_cast<size_t>(dims[d]);
    if (x.shape[d] != 1 && x.shape[d] != e.shape[to]) {
      throw UserError(fmt::format("dimension {} of {} does not broadcast to {}", d, to_string(x.shape),
                                  to_string(e.shape)));
    }
    source[to] = x.shape[d] == 1 ? 0 : own[d];
  }
  Tensor result(x.element, e.shape);
  copy_strided(e.shape, x.bytes().data(), source, result.mutable_bytes().data(), row_major_strides(e.shape),
               bytes_of(x.element));
  return result;
}

Tensor concat(const Evaluation& e) {
  const size_t axis = static_cast<size_t>(attributes<ConcatAttributes>(e.node).axis);
  Tensor result(e.operands[0].element, e.shape);
  const int bytes = bytes_of(result.element);
  const std::vector<int64_t> target = row_major_strides(e.shape);
  std::byte* place = result.mutable_bytes().data();
  int64_t filled = 0;
  for (const Tensor& x : e.operands) {
    for (size_t d = 0; d < e.shape.size(); ++d) {
      if (d == axis ? x.shape[d] > e.shape[d] - filled : x.shape[d] != e.shape[d])
        throw UserError(fmt::format("{} does not fit into {}", to_string(x.shape), to_string(e.shape)));
    }
    if (x.count() > 0) {
      copy_strided(x.shape, x.bytes().data(), row_major_strides(x.shape),
                   place + filled * target[axis] * bytes, target, bytes);
    }
    filled += x.shape[axis];
  }
  if (filled != e.shape[axis])
    throw UserError(fmt::format("the operands do not fill {}", to_string(e.shape)));
  return result;
}

Tensor slice(const Evaluation& e) {
  const auto& a = attributes<SliceAttributes>(e.node);
  const Tensor& x = e.operands[0];
  const std::vector<int64_t> starts = evaluate_shape(a.starts, e.symbols);
  std::vector<int64_t> source = row_major_strides(x.shape);
  Tensor result(x.element, e.shape);
  if (result.count() == 0) return result;
  int64_t offset = 0;
  for (size_t d = 0; d < e.shape.size(); ++d) {
    const int64_t last = starts[d] + (e.shape[d] - 1) * a.steps[d];
    if (std::min(starts[d], last) < 0 || std::max(starts[d], last) >= x.shape[d]) {
      throw UserError(fmt::format("elements {} to {} of dimension {} are taken from shape {}", starts[d],
                                  last, d, to_string(x.shape)));
    }
    offset += starts[d] * source[d];
    source[d] *= a.steps[d];
  }
  const int bytes = bytes_of(x.element);
  copy_strided(e.shape, x.bytes().data() + offset * bytes, source, result.mutable_bytes().data(),
               row_major_strides(e.shape), bytes);
  return result;
}

Tensor pad(const Evaluation& e) {
  const auto& a = attributes<PadAttributes>(e.node);
  const Tensor& x = e.operands[0];
  const int bytes = bytes_of(x.element);
  Tensor result(x.element, e.shape);
  const std::vector<int64_t> source = row_major_strides(x.shape), target = row_major_strides(e.shape);
  copy_strided(e.shape, e.operands[1].bytes().data(), std::vector<int64_t>(e.shape.size(), 0),
               result.mutable_bytes().data(), target, bytes);
  // What remains of the operand: its elements i with 0 <= i + low < the result's extent.
  std::vector<int64_t> kept(e.shape.size());
  int64_t from = 0, to = 0;
  for (size_t d = 0; d < e.shape.size(); ++d) {
    const int64_t low = a.low[d].evaluate(e.symbols);
    const int64_t first = std::max<int64_t>(0, -low);
    kept[d] = std::max<int64_t>(0, std::min(x.shape[d], e.shape[d] - low) - first);
    from += first * source[d];
    to += (first + low) * target[d];
  }
  if (element_count(kept) == 0) return result;
  copy_strided(kept, x.bytes().data() + from * bytes, source, result.mutable_bytes().data() + to * bytes,
               target, bytes);
  return result;
}

}  // namespace

Tensor evaluate_view(const Evaluation& e) {
  switch (e.node.op) {
    case Op::broadcast:
      return broadcast(e);
    case Op::concat:
      return concat(e);
    case Op::pad:
      return pad(e);
    case Op::reshape:
      return e.operands[0].reshaped(e.shape);
    case Op::slice:
      return slice(e);
    case Op::transpose:
      return transposed(e.operands[0], attributes<TransposeAttributes>(e.node).permutation);
    default:
      throw InternalError("this operation is no view");
  }
}

Tensor evaluate_gather(const Evaluation& e) {
  const size_t axis = static_cast<size_t>(attributes<GatherAttributes>(e.node).axis);
  const Tensor& x = e.operands[0];
  const Tensor& index = e.operands[1];
  Tensor result(x.element, e.shape);
  const std::span<const int64_t> shape(x.shape);
  const int64_t extent = shape[axis], outer = element_count(shape.first(axis));
  const int64_t taken = index.count(), inner = element_count(shape.subspan(axis + 1)) * bytes_of(x.element);
  if (taken > 0 && extent == 0 && result.count() > 0)
    throw UserError("nothing can be gathered from an empty dimension");
  if (result.count() == 0) return result;
  std::vector<int64_t> rows(static_cast<size_t>(taken));
  const int index_bytes = bytes_of(index.element);
  for (int64_t i = 0; i < taken; ++i) {
    const int64_t row = load_scalar(index.bytes().data() + i * index_bytes, index.element).i;
    // A uint64 index beyond the signed range is as large as can be.
    const bool huge = index.element == DataType::uint64 && row < 0;
    rows[static_cast<size_t>(i)] =
        huge ? extent - 1 : std::clamp<int64_t>(row < 0 ? row + extent : row, 0, extent - 1);
  }
  const std::byte* from = x.bytes().data();
  std::byte* to = result.mutable_bytes().data();
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t row : rows) {
      std::memcpy(to, from + (o * extent + row) * inner, static_cast<size_t>(inner));
      to += inner;
    }
  }
  return result;
}

Tensor evaluate_iota(const Evaluation& e) {
  const size_t axis = static_cast<size_t>(attributes<IotaAttributes>(e.node).axis);
  const int bytes = bytes_of(e.element);
  Tensor line(e.element, {e.shape[axis]});
  std::byte* memory = line.mutable_bytes().data();
  for (int64_t i = 0; i < e.shape[axis]; ++i)
    store_scalar(memory + i * bytes, convert(Scalar{DataType::int64, 0, i}, e.element));
  std::vector<int64_t> source(e.shape.size(), 0);
  source[axis] = 1;
  Tensor result(e.element, e.shape);
  copy_strided(e.shape, line.bytes().data(), source, result.mutable_bytes().data(),
               row_major_strides(e.shape), bytes);
  return result;
}

}  // namespace fusewise::graph
