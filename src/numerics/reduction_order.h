// The order in which a reduction adds its elements, as data. Element r (row-major over the reduced axes in
// imported axis order) belongs to block r / block; inside its block it goes to lane (r mod block) mod lanes;
// lanes add sequentially; then the lanes combine by the tree lanes/2 ... 2, 1 (lane j takes lane j + width);
// blocks combine pairwise like a binary counter (block b, once done, merges with the completed blocks below
// while the corresponding bit of b is set: earlier value on the left), leftovers merged last to first.
// Lanes that got no element are skipped, not added. Sums start at +0 in each lane that has an element.
#pragma once

#include <cstdint>

namespace fusewise {

struct ReductionOrder {
  int64_t block = 512;  // a multiple of lanes
  int lanes = 16;       // a power of two
};

enum class Combine : uint8_t { sum, product, max, min };

}  // namespace fusewise
