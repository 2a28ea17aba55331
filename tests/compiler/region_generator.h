// Random regions: random graphs with layouts of the values at the border.
#pragma once

#include <cstdint>

#include "schedule/schedule.h"
#include "support/random_graphs/random_graph.h"

namespace fusewise::test {

struct RegionCase : GraphCase {
  uint64_t seed = 0;
  schedule::Layouts layouts;
};

// The same seed gives the same case.
RegionCase random_region(uint64_t seed);

}  // namespace fusewise::test
