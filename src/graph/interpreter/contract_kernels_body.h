// The bodies of contract_kernels.h, included by one file per instruction set. Everything here has internal
// linkage and nothing of the standard library is used: the files are built with different options, and a
// shared inline function would be linked from either.
#pragma once

#include <cstdint>

#include "graph/interpreter/contract_kernels.h"

namespace fusewise::graph {
namespace {

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline uint32_t fused(uint32_t a, uint32_t b, uint32_t c) { return a * b + c; }
inline uint64_t fused(uint64_t a, uint64_t b, uint64_t c) { return a * b + c; }

template <class T, int rows>
void block(const T* const* a, const T* const* b, int64_t segments, int64_t length, T* result,
           int64_t result_stride) {
  constexpr int columns = static_cast<int>(64 / sizeof(T));
  T accumulator[rows][columns] = {};
  for (int64_t s = 0; s < segments; ++s) {
    const T* row[rows];
    for (int u = 0; u < rows; ++u) row[u] = a[s * rows + u];
    const T* panel = b[s];
    for (int64_t k = 0; k < length; ++k) {
      for (int u = 0; u < rows; ++u) {
        const T x = row[u][k];
        for (int j = 0; j < columns; ++j) accumulator[u][j] = fused(x, panel[j], accumulator[u][j]);
      }
      panel += columns;
    }
  }
  for (int u = 0; u < rows; ++u) {
    for (int j = 0; j < columns; ++j) result[u * result_stride + j] = accumulator[u][j];
  }
}

template <class T>
void multiply_add(const T* a, const T* b, T* accumulator, int64_t count) {
  for (int64_t i = 0; i < count; ++i) accumulator[i] = fused(a[i], b[i], accumulator[i]);
}

template <class T, int rows>
struct Table;
template <class T>
struct Table<T, 6> {
  static constexpr ContractKernels<T> kernels = {
      {block<T, 1>, block<T, 2>, block<T, 3>, block<T, 4>, block<T, 5>, block<T, 6>}, multiply_add<T>};
};
template <class T>
struct Table<T, 4> {
  static constexpr ContractKernels<T> kernels = {{block<T, 1>, block<T, 2>, block<T, 3>, block<T, 4>},
                                                 multiply_add<T>};
};

template <class T>
const ContractKernels<T>& table() {
  return Table<T, ContractKernels<T>::rows>::kernels;
}

}  // namespace
}  // namespace fusewise::graph
