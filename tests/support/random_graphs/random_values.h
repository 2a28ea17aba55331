// Random numbers of every sort: ordinary ones, and those that break things.
#pragma once

#include <cstddef>
#include <vector>

#include "numerics/scalar_op.h"
#include "support/random.h"

namespace fusewise::test {

// How the numbers of one tensor are chosen.
enum class Sort : uint8_t {
  ordinary,  // small, of both signs, now and then 0 or 1
  special,   // among them NaN, infinities, -0, denormals, limits of the type, what overflows exp or float16
  shifted,   // a mean far above the spread
  whole,     // small integers, ties among them
};
Sort random_sort(Random& random);

Scalar random_scalar(DataType type, Sort sort, Random& random);
// For operands of a gather: mostly valid, negative ones and ones outside among them.
Scalar random_index(DataType type, int64_t extent, Random& random);

}  // namespace fusewise::test
