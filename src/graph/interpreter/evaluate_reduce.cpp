#include <algorithm>
#include <array>

#include "graph/interpreter/arithmetic.h"
#include "graph/interpreter/convert.h"
#include "graph/interpreter/evaluate.h"
#include "graph/interpreter/strided.h"

namespace fusewise::graph {

namespace {

constexpr ReductionOrder order;

// One block: element r goes to lane r mod lanes, then the lanes that have an element combine by halves.
template <class T, Combine combine>
T reduce_block(const T* x, int64_t count) {
  std::array<T, static_cast<size_t>(order.lanes)> lane;
  lane.fill(start_of<T, combine>());
  int64_t r = 0;
  for (; r + order.lanes <= count; r += order.lanes) {
    for (size_t j = 0; j < lane.size(); ++j)
      lane[j] = combined<T, combine>(lane[j], x[r + static_cast<int64_t>(j)]);
  }
  for (size_t j = 0; r < count; ++r, ++j) lane[j] = combined<T, combine>(lane[j], x[r]);
  const size_t present = static_cast<size_t>(std::min<int64_t>(count, order.lanes));
  for (size_t width = lane.size() / 2; width > 0; width /= 2) {
    for (size_t j = 0; j < width && j + width < present; ++j)
      lane[j] = combined<T, combine>(lane[j], lane[j + width]);
  }
  return lane[0];
}

// Completed blocks wait on a stack; as in counting up by one, equal neighbours merge, the earlier on the
// left.
template <class T, Combine combine>
T reduce_row(const T* x, int64_t count) {
  if (count == 0) return start_of<T, combine>();
  std::array<T, 64> waiting{};
  size_t depth = 0;
  for (int64_t block = 0; block * order.block < count; ++block) {
    const int64_t first = block * order.block;
    T value = reduce_block<T, combine>(x + first, std::min(order.block, count - first));
    for (uint64_t bits = static_cast<uint64_t>(block); bits & 1; bits >>= 1)
      value = combined<T, combine>(waiting[--depth], value);
    waiting[depth++] = value;
  }
  T value = waiting[--depth];
  while (depth > 0) value = combined<T, combine>(waiting[--depth], value);
  return value;
}

template <class T, Combine combine>
void reduce_rows(const Tensor& rows, int64_t length, Tensor& result, ThreadPool* pool) {
  const T* from = rows.as<T>().data();
  const std::span<T> to = result.mutable_as<T>();
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, length));
  run_in_pieces(pool, static_cast<int64_t>(to.size()), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      to[static_cast<size_t>(i)] = reduce_row<T, combine>(from + i * length, length);
  });
}

// Trailing spatial dimensions; padding taps are absent, the others combine in sequence.
struct Window {
  std::vector<int64_t> extents, positions;  // of operand and result
  const WindowReduceAttributes& attributes;
};

template <class T, Combine combine>
void window_reduce_plane(const Window& window, const T* from, T* to) {
  const size_t rank = window.extents.size();
  const std::vector<int64_t> strides = row_major_strides(window.extents);
  const auto& a = window.attributes;
  std::vector<int64_t> position(rank, 0), tap(rank, 0);
  do {
    T value = start_of<T, combine>();
    std::fill(tap.begin(), tap.end(), 0);
    do {
      int64_t offset = 0;
      bool present = true;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t at = position[d] * a.strides[d] - a.pad_low[d] + tap[d] * a.dilations[d];
        present = present && at >= 0 && at < window.extents[d];
        offset += at * strides[d];
      }
      if (present) value = combined<T, combine>(value, from[offset]);
    } while (next_index(a.window, tap));
    *to++ = value;
  } while (next_index(window.positions, position));
}

template <class T, Combine combine>
void window_reduce_all(const Window& window, const Tensor& operand, Tensor& result, ThreadPool* pool) {
  const int64_t from_plane = element_count(window.extents), to_plane = element_count(window.positions);
  if (to_plane == 0) return;
  const T* from = operand.as<T>().data();
  const std::span<T> to = result.mutable_as<T>();
  run_in_pieces(pool, static_cast<int64_t>(to.size()) / to_plane, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      window_reduce_plane<T, combine>(window, from + p * from_plane, to.data() + p * to_plane);
  });
}

// A minimum over no booleans is true, not the greatest byte.
void keep_boolean(Tensor& result) {
  if (result.element != DataType::boolean) return;
  for (uint8_t& value : result.mutable_as<uint8_t>()) value = value != 0 ? 1 : 0;
}

// The half types are combined in float32 and rounded once.
DataType working_type(DataType element) { return accumulator_of(element); }

}  // namespace

Tensor evaluate_reduce(const Evaluation& e) {
  const auto& a = attributes<ReduceAttributes>(e.node);
  std::vector<int> permutation;
  int64_t length = 1;
  for (int d = 0; d < e.operands[0].rank(); ++d) {
    if (std::find(a.axes.begin(), a.axes.end(), d) == a.axes.end()) permutation.push_back(d);
  }
  for (const int d : a.axes) {
    permutation.push_back(d);
    length *= e.operands[0].shape[static_cast<size_t>(d)];
  }
  const Tensor rows = widened(transposed(e.operands[0], permutation), working_type(e.element));
  Tensor result(rows.element, e.shape);
  with_plain_type(rows.element, [&](auto zero) {
    with_combine(a.combine, [&](auto combine) {
      reduce_rows<decltype(zero), decltype(combine)::value>(rows, length, result, e.pool);
    });
  });
  keep_boolean(result);
  return narrowed(result, e.element);
}

Tensor evaluate_window_reduce(const Evaluation& e) {
  const auto& a = attributes<WindowReduceAttributes>(e.node);
  const Tensor operand = widened(e.operands[0], working_type(e.element));
  const auto spatial = static_cast<std::ptrdiff_t>(a.window.size());
  const Window window{
      {operand.shape.end() - spatial, operand.shape.end()}, {e.shape.end() - spatial, e.shape.end()}, a};
  Tensor result(operand.element, e.shape);
  with_plain_type(operand.element, [&](auto zero) {
    with_combine(a.combine, [&](auto combine) {
      window_reduce_all<decltype(zero), decltype(combine)::value>(window, operand, result, e.pool);
    });
  });
  keep_boolean(result);
  return narrowed(result, e.element);
}

}  // namespace fusewise::graph
