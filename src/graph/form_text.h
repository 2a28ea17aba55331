// Forms as text, for people: what a kernel computes, in explanations and tests. Not parsed.
#pragma once

#include <string>

#include "graph/form.h"

namespace fusewise::graph {

// For example, a row sum of a transposed read:
//
//   reduce axes i0=768, r1=batch
//   read 0: operand 0 at [r1, i0]
//   body: read 0
//   combine sum in float32
std::string print(const Form& form);
// "2*i0 + r1 - 1", axes named i0, i1, ... where parallel and r2, r3, ... where reduced.
std::string print(const IndexExpr& index, const Form& form);

}  // namespace fusewise::graph
