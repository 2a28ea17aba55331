// Index arithmetic of forms.
#pragma once

#include <vector>

#include "graph/form.h"

namespace fusewise::graph {

// Adds coefficient * axis.
void add_term(LinearIndex& index, int axis, const Dim& coefficient = 1);

// Adds a quasi term in its simplest form: what provably needs neither division nor modulo becomes linear.
void add_quasi(IndexExpr& index, QuasiTerm term, const std::vector<Axis>& axes);

// The index into an operand of this shape, for a reshape whose result dimensions are the axes. Dimensions are
// matched from the left in the smallest groups with equal products: a group with one operand dimension is
// affine, others divide. Dimensions of 1 take no part, and a rest that does not match is one group.
std::vector<IndexExpr> reshape_index(const Shape& operand, const std::vector<Axis>& axes);

}  // namespace fusewise::graph
