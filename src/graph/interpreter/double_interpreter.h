// The interpreter in double precision with a propagated error bound: how far an execution in the model's
// types may be away from the exact result, for any order of reductions and contractions and any use of fused
// multiply-add that default mode allows. Errors grow with depth as the error model says (bounded.h), and
// correlations between operands (x - x) are not seen.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/interpreter/bounded.h"
#include "graph/interpreter/interpreter.h"
#include "graph/interpreter/tensor.h"

namespace fusewise::graph {

// Inputs and constants are exact, and so is what follows from them without rounding (integers, views, casts).
struct BoundedTensor {
  DataType element = DataType::undefined;  // of the model's value
  Tensor value, bound;                     // float64; numerics/error_bound.h says what infinities mean
};

// Exact operands give an exact result: nothing is rounded, or it is in one way only (a cast).
bool keeps_exact(const Node& node);

struct BoundedOptions : InterpretOptions {
  ErrorModel model = ErrorModel::worst_case;
};

// As interpret(): the outputs, then the values that `also` names.
std::vector<BoundedTensor> interpret_bounded(const Graph& graph, std::span<const Tensor> inputs,
                                             const BoundedOptions& options = {});

// The element that is farthest outside (or nearest to the edge of) its bound.
struct Deviation {
  int64_t index = -1;  // row-major; -1 for an empty tensor
  double actual = 0, value = 0, bound = 0;
  double ratio = 0;       // |actual - value| / bound; infinite where no bound would do
  int64_t unbounded = 0;  // elements of which nothing is known
  bool within() const { return ratio <= 1; }
};
// UserError when type or shape differ.
Deviation worst_deviation(const BoundedTensor& expected, const Tensor& actual);

}  // namespace fusewise::graph
