// Index arithmetic of forms.
#pragma once

#include <optional>
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

// `outer`, whose axes are replaced by what `inner` says of each (a dimension's index over other axes, `axes`): the
// second of two maps after the first. Divisions that undo each other go: rows of 8 and columns are elements again.
// Nothing where a division would lie inside of another one, or where an index is data.
std::optional<IndexExpr> substitute(const IndexExpr& outer, const std::vector<IndexExpr>& inner,
                                    const std::vector<Axis>& axes);

}  // namespace fusewise::graph
