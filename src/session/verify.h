// Compiled outputs against the reference interpreter's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/interpreter/double_interpreter.h"
#include "graph/interpreter/tensor.h"

namespace fusewise::session {

struct OutputVerdict {
  std::string name;
  DataType type = DataType::undefined;
  std::vector<int64_t> shape;
  bool passed = false;
  int64_t elements = 0;
  int64_t differing = 0;  // elements outside of the tolerance
  int64_t unbounded = 0;  // elements of which the bound says nothing
  double max_absolute = 0, max_relative = 0;
  // The element that is farthest outside of its tolerance, or nearest to it; -1 when there is none.
  int64_t worst_index = -1;
  double actual = 0, expected = 0, tolerance = 0;
  // Of the errors as shares of their bounds, over the elements with an error.
  double median_share = 0, max_share = 0;
  // spread.h: how many times larger the errors are than the interpreter's own, and that as a share of what is allowed.
  double spread = 0, spread_share = 0;
  std::string note;  // why it failed where numbers do not say so
};

// Bit for bit, but for the payloads of NaN.
OutputVerdict compare_exactly(const std::string& name, const graph::Tensor& expected,
                              const graph::Tensor& actual);
// Every element inside the bound that the double-precision interpreter propagates. Elements without a bound are
// held to `reference`, the interpreter's result in the model's types: within `fallback` of its largest magnitude.
OutputVerdict compare_bounded(const std::string& name, const graph::BoundedTensor& expected,
                              const graph::Tensor& reference, const graph::Tensor& actual,
                              double fallback = 1e-2);
// Within `relative` of the largest magnitude of the expected values (integers: equal).
OutputVerdict compare_within(const std::string& name, const graph::Tensor& expected,
                             const graph::Tensor& actual, double relative);

}  // namespace fusewise::session
