// What the files of Dim share.
#pragma once

#include "numerics/dim.h"

namespace fusewise::dim_internal {

// Limits that keep recursion shallow and every operation quick, far above what models need.
inline constexpr int max_depth = 256;
inline constexpr int max_size = 20000;
inline constexpr size_t max_terms = 4096;
inline constexpr size_t max_degree = 256;

// These throw UserError when the result leaves 64 bits or the divisor is 0.
int64_t checked_add(int64_t a, int64_t b);
int64_t checked_mul(int64_t a, int64_t b);
int64_t floor_divide(int64_t a, int64_t b);
int64_t ceil_divide(int64_t a, int64_t b);
int64_t floor_modulo(int64_t a, int64_t b);
// A common divisor, the greatest one unless an operand is the least integer.
int64_t common_divisor(int64_t a, int64_t b);

// Total orders: negative, zero or positive. Products of more atoms come first.
int compare(const Dim& a, const Dim& b);
int compare(const Dim::Atom& a, const Dim::Atom& b);
int compare(const std::vector<Dim::AtomPtr>& a, const std::vector<Dim::AtomPtr>& b);

// An atom as it is, without any folding. Throws UnsupportedError beyond the limits.
Dim make_atom(Dim::Atom::Kind kind, const Dim& a, const Dim& b);

}  // namespace fusewise::dim_internal
