#include "graph/interpreter/contract.h"

#include <algorithm>
#include <array>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "graph/interpreter/contract_kernels.h"
#include "graph/interpreter/convert.h"
#include "graph/interpreter/strided.h"

namespace fusewise::graph {

namespace {

std::vector<int> others(int rank, const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> result;
  for (int d = 0; d < rank; ++d) {
    if (std::find(a.begin(), a.end(), d) == a.end() && std::find(b.begin(), b.end(), d) == b.end())
      result.push_back(d);
  }
  return result;
}

int64_t extent_of(const Tensor& tensor, const std::vector<int>& dims) {
  int64_t extent = 1;
  for (const int d : dims) extent *= tensor.shape.at(static_cast<size_t>(d));
  return extent;
}

std::vector<int> joined(const std::vector<int>& a, const std::vector<int>& b, const std::vector<int>& c) {
  std::vector<int> result = a;
  result.insert(result.end(), b.begin(), b.end());
  result.insert(result.end(), c.begin(), c.end());
  return result;
}

// `count` columns from `first` of a [k, n] array as a dense [k, columns] panel, the columns that lack filled
// with 0.
template <class T>
void pack_panel(const T* from, int64_t k, int64_t n, int64_t first, T* to) {
  constexpr int64_t columns = ContractKernels<T>::columns;
  const int64_t count = std::min(columns, n - first);
  for (int64_t r = 0; r < k; ++r) {
    for (int64_t j = 0; j < count; ++j) to[r * columns + j] = from[r * n + first + j];
    for (int64_t j = count; j < columns; ++j) to[r * columns + j] = T(0);
  }
}

// One panel of one batch entry against all rows.
template <class T>
void contract_panel(std::span<const DotOperands> terms, int64_t batch, int64_t first, AlignedBuffer& panels,
                    T* result) {
  const auto& kernels = contract_kernels<T>();
  constexpr int64_t columns = ContractKernels<T>::columns;
  constexpr int64_t most_rows = ContractKernels<T>::rows;
  const int64_t m = terms[0].m, k = terms[0].k, n = terms[0].n;
  const size_t segments = terms.size();
  std::vector<const T*> a(segments * most_rows), b(segments);
  for (size_t t = 0; t < segments; ++t) {
    T* panel = panels.as<T>().data() + static_cast<int64_t>(t) * k * columns;
    pack_panel(terms[t].rhs.as<T>().data() + batch * k * n, k, n, first, panel);
    b[t] = panel;
  }
  std::array<T, static_cast<size_t>(most_rows * columns)> block;
  const int64_t count = std::min(columns, n - first);
  for (int64_t row = 0; row < m; row += most_rows) {
    const int64_t rows = std::min(most_rows, m - row);
    for (size_t t = 0; t < segments; ++t) {
      const T* lhs = terms[t].lhs.as<T>().data() + (batch * m + row) * k;
      for (int64_t u = 0; u < rows; ++u)
        a[t * static_cast<size_t>(rows) + static_cast<size_t>(u)] = lhs + u * k;
    }
    kernels.block[rows - 1](a.data(), b.data(), static_cast<int64_t>(segments), k, block.data(), columns);
    for (int64_t u = 0; u < rows; ++u)
      std::copy_n(block.data() + u * columns, count, result + (batch * m + row + u) * n + first);
  }
}

template <class T>
Tensor contract_typed(std::span<const DotOperands> terms, ThreadPool* pool) {
  constexpr int64_t columns = ContractKernels<T>::columns;
  const DotOperands& first = terms[0];
  Tensor result(first.lhs.element, {first.batch, first.m, first.n});
  if (result.count() == 0) return result;
  const int64_t panels = (first.n + columns - 1) / columns;
  T* target = result.mutable_as<T>().data();
  run_in_pieces(pool, first.batch * panels, 1, [&](int64_t begin, int64_t end) {
    AlignedBuffer memory(terms.size() * static_cast<size_t>(first.k * columns) * sizeof(T));
    for (int64_t i = begin; i < end; ++i)
      contract_panel<T>(terms, i / panels, i % panels * columns, memory, target);
  });
  return result;
}

// Few columns and many rows waste most of a panel. Products commute, so rows and columns may change places.
Tensor contract_swapped(std::span<const DotOperands> terms, ThreadPool* pool) {
  constexpr std::array<int, 3> swap{0, 2, 1};
  std::vector<DotOperands> swapped;
  for (const DotOperands& t : terms) {
    swapped.push_back({transposed(t.rhs.reshaped({t.batch, t.k, t.n}), swap),
                       transposed(t.lhs.reshaped({t.batch, t.m, t.k}), swap), t.batch, t.n, t.k, t.m});
  }
  return transposed(contract(swapped, pool), swap);
}

}  // namespace

DotOperands arrange_dot(const DotAttributes& a, const Tensor& lhs, const Tensor& rhs) {
  const std::vector<int> lhs_free = others(lhs.rank(), a.lhs_batch, a.lhs_contract);
  const std::vector<int> rhs_free = others(rhs.rank(), a.rhs_batch, a.rhs_contract);
  const auto dims_agree = [&](const std::vector<int>& l, const std::vector<int>& r) {
    for (size_t i = 0; i < l.size(); ++i) {
      if (lhs.shape.at(static_cast<size_t>(l[i])) != rhs.shape.at(static_cast<size_t>(r[i]))) return false;
    }
    return true;
  };
  if (!dims_agree(a.lhs_batch, a.rhs_batch) || !dims_agree(a.lhs_contract, a.rhs_contract)) {
    throw UserError("the dimensions of a dot's operands disagree: " + to_string(lhs.shape) + " and " +
                    to_string(rhs.shape));
  }
  return {transposed(lhs, joined(a.lhs_batch, lhs_free, a.lhs_contract)),
          transposed(rhs, joined(a.rhs_batch, a.rhs_contract, rhs_free)),
          extent_of(lhs, a.lhs_batch),
          extent_of(lhs, lhs_free),
          extent_of(lhs, a.lhs_contract),
          extent_of(rhs, rhs_free)};
}

Tensor contract(std::span<const DotOperands> terms, ThreadPool* pool) {
  check(!terms.empty(), "a contraction without terms");
  const DotOperands& first = terms[0];
  for (const DotOperands& t : terms) {
    check(t.batch == first.batch && t.m == first.m && t.k == first.k && t.n == first.n &&
              t.lhs.element == first.lhs.element && t.rhs.element == first.lhs.element,
          "the terms of a contraction differ");
  }
  if (first.n < 8 && first.m > first.n) return contract_swapped(terms, pool);
  switch (first.lhs.element) {
    case DataType::float32:
      return contract_typed<float>(terms, pool);
    case DataType::float64:
      return contract_typed<double>(terms, pool);
    case DataType::uint32:
      return contract_typed<uint32_t>(terms, pool);
    case DataType::uint64:
      return contract_typed<uint64_t>(terms, pool);
    default:
      throw InternalError("a type that no contraction computes in");
  }
}

Tensor evaluate_dot(const Evaluation& e) {
  const DataType type = contraction_type(e.element);
  DotOperands operands = arrange_dot(attributes<DotAttributes>(e.node), e.operands[0], e.operands[1]);
  operands.lhs = widened(operands.lhs, type);
  operands.rhs = widened(operands.rhs, type);
  return narrowed(contract(std::span(&operands, 1), e.pool), e.element).reshaped(e.shape);
}

Tensor evaluate_convolution(const Evaluation& e) {
  const DataType type = contraction_type(e.element);
  const ConvolutionTerm term{widened(e.operands[0], type), widened(e.operands[1], type)};
  return narrowed(convolve(attributes<ConvolutionAttributes>(e.node), std::span(&term, 1), e.shape, e.pool),
                  e.element);
}

}  // namespace fusewise::graph
