#include "graph/interpreter/bounded_evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "graph/interpreter/bounded.h"
#include "graph/interpreter/convert.h"
#include "graph/interpreter/strided.h"

namespace fusewise::graph {

namespace {

BoundedTensor empty_planes(const Evaluation& e) {
  return {e.element, Tensor(DataType::float64, e.shape), Tensor(DataType::float64, e.shape)};
}

// One reduction per result element: `each` adds its operands.
template <class Each>
BoundedTensor combine_bounded(const Evaluation& e, Combine combine, ErrorModel model, int64_t grain,
                              Each each) {
  BoundedTensor result = empty_planes(e);
  const std::span<double> value = result.value.mutable_as<double>(),
                          bound = result.bound.mutable_as<double>();
  run_in_pieces(e.pool, static_cast<int64_t>(value.size()), grain, [&](int64_t begin, int64_t end) {
    BoundedReduction reduction(combine, e.element, model);
    for (int64_t i = begin; i < end; ++i) {
      reduction.clear();
      each(i, reduction);
      const Bounded y = reduction.result();
      value[static_cast<size_t>(i)] = y.value;
      bound[static_cast<size_t>(i)] = y.error;
    }
  });
  return result;
}

}  // namespace

BoundedValue exact_value(Tensor tensor) {
  const DataType element = tensor.element;
  return {element, std::move(tensor), {}, {}};
}

BoundedTensor planes_of(const BoundedValue& x) {
  if (!x.exact) return {x.element, x.value, x.bound};
  BoundedTensor result{x.element, widened(*x.exact, DataType::float64),
                       Tensor(DataType::float64, x.exact->shape)};
  const std::span<const double> value = result.value.as<double>();
  const std::span<double> bound = result.bound.mutable_as<double>();
  const bool wide = x.element == DataType::int64 || x.element == DataType::uint64;
  for (size_t i = 0; i < bound.size(); ++i)
    bound[i] = wide && std::abs(value[i]) > 0x1p53 ? std::abs(value[i]) * 0x1p-53 : 0;
  return result;
}

BoundedTensor map_bounded(const Evaluation& e, std::span<const BoundedTensor> operands) {
  const ScalarOp op = attributes<MapAttributes>(e.node).op;
  check(static_cast<int>(operands.size()) == arity_of(op),
        "a scalar operation has the wrong number of operands");
  BoundedTensor result = empty_planes(e);
  std::array<const double*, 3> value{}, bound{};
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].value.shape != e.shape) throw UserError("the operands' shapes differ");
    value[k] = operands[k].value.as<double>().data();
    bound[k] = operands[k].bound.as<double>().data();
  }
  double* to_value = result.value.mutable_as<double>().data();
  double* to_bound = result.bound.mutable_as<double>().data();
  const DataType type = operands.back().element;  // of select, the values' type
  run_in_pieces(e.pool, result.value.count(), 4096, [&](int64_t begin, int64_t end) {
    std::array<Bounded, 3> x{};
    for (int64_t i = begin; i < end; ++i) {
      for (size_t k = 0; k < operands.size(); ++k) x[k] = {value[k][i], bound[k][i]};
      const Bounded y = evaluate_bounded(op, std::span(x.data(), operands.size()), type, e.element);
      to_value[i] = y.value;
      to_bound[i] = y.error;
    }
  });
  return result;
}

BoundedTensor reduce_bounded(const Evaluation& e, const BoundedTensor& operand, ErrorModel model) {
  const auto& a = attributes<ReduceAttributes>(e.node);
  std::vector<int> permutation;
  int64_t length = 1;
  for (int d = 0; d < operand.value.rank(); ++d) {
    if (std::find(a.axes.begin(), a.axes.end(), d) == a.axes.end()) permutation.push_back(d);
  }
  for (const int d : a.axes) {
    permutation.push_back(d);
    length *= operand.value.shape[static_cast<size_t>(d)];
  }
  const Tensor values = transposed(operand.value, permutation),
               bounds = transposed(operand.bound, permutation);
  const double *value = values.as<double>().data(), *bound = bounds.as<double>().data();
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, length));
  return combine_bounded(e, a.combine, model, grain, [&](int64_t i, BoundedReduction& reduction) {
    for (int64_t r = i * length; r < (i + 1) * length; ++r) reduction.add({value[r], bound[r]});
  });
}

BoundedTensor window_reduce_bounded(const Evaluation& e, const BoundedTensor& operand, ErrorModel model) {
  const auto& a = attributes<WindowReduceAttributes>(e.node);
  const size_t rank = a.window.size(), outer = e.shape.size() - rank;
  const std::span<const int64_t> extents = std::span(operand.value.shape).subspan(outer);
  const std::span<const int64_t> positions = std::span<const int64_t>(e.shape).subspan(outer);
  const std::vector<int64_t> strides = row_major_strides(extents);
  const int64_t plane = element_count(extents), per_plane = element_count(positions);
  const double *value = operand.value.as<double>().data(), *bound = operand.bound.as<double>().data();
  return combine_bounded(e, a.combine, model, 1024, [&](int64_t i, BoundedReduction& reduction) {
    std::vector<int64_t> position(rank), tap(rank, 0);
    int64_t rest = i % per_plane;
    for (size_t d = rank; d-- > 0; rest /= positions[d]) position[d] = rest % positions[d];
    do {
      int64_t offset = i / per_plane * plane;
      bool present = true;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t at = position[d] * a.strides[d] - a.pad_low[d] + tap[d] * a.dilations[d];
        present = present && at >= 0 && at < extents[d];
        offset += at * strides[d];
      }
      if (present) reduction.add({value[offset], bound[offset]});
    } while (next_index(a.window, tap));
  });
}

}  // namespace fusewise::graph
