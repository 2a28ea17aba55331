// The innermost loops of contractions: a block of rows times a panel of columns, every element adding its
// products by fused multiply-add in the order of the segments and of k inside them. Vector lanes are
// different columns, so the order inside an element never depends on the machine. Integers wrap.
//
//   for each row u, column j:  acc = +0;  for each segment s, k < length:  acc += a[s][u][k] * b[s][k][j]
#pragma once

#include <cstdint>

namespace fusewise::graph {

template <class T>
struct ContractKernels {
  // The columns of a panel: b[s] is [length][columns], dense. Most rows of one call.
  static constexpr int columns = static_cast<int>(64 / sizeof(T));
  static constexpr int rows = sizeof(T) == 4 ? 6 : 4;

  // a holds `row_count` pointers per segment, b one; writes row_count rows of `columns` elements.
  using Block = void (*)(const T* const* a, const T* const* b, int64_t segments, int64_t length, T* result,
                         int64_t result_stride);
  // accumulator[i] = fma(a[i], b[i], accumulator[i]).
  using MultiplyAdd = void (*)(const T* a, const T* b, T* accumulator, int64_t count);

  Block block[rows];  // block[row_count - 1]
  MultiplyAdd multiply_add;
};

// The fastest that this CPU runs; T is float, double, uint32_t or uint64_t.
template <class T>
const ContractKernels<T>& contract_kernels();

}  // namespace fusewise::graph
