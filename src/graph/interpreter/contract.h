// Contractions on prepared arrays: what the strict and the bounded interpreter share. Element order is the
// caller's: each result element adds its k products in sequence from +0.
#pragma once

#include <vector>

#include "graph/interpreter/evaluate.h"
#include "graph/interpreter/tensor.h"

namespace fusewise::graph {

// Operands of a dot brought to [batch, m, k] and [batch, k, n], the contracted dimensions in the order given.
struct DotOperands {
  Tensor lhs, rhs;
  int64_t batch, m, k, n;
};
DotOperands arrange_dot(const DotAttributes& attributes, const Tensor& lhs, const Tensor& rhs);

// Sum over terms t, then over k: lhs[t][b, i, k] * rhs[t][b, k, j], in the element type of the operands
// (float32, float64, uint32 or uint64, all the same); the result is [batch, m, n].
Tensor contract(std::span<const DotOperands> terms, ThreadPool* pool);

// The same for convolutions: the sum over terms of the convolution x[t] * weights[t], in the order (term,
// kernel position, input channel); padding taps are absent.
struct ConvolutionTerm {
  Tensor x, weights;
};
Tensor convolve(const ConvolutionAttributes& attributes, std::span<const ConvolutionTerm> terms,
                std::span<const int64_t> result_shape, ThreadPool* pool);

}  // namespace fusewise::graph
