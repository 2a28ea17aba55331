// The two placements that plan_arena() chooses from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/arena.h"

namespace fusewise::memory_internal {

struct Problem {
  std::span<const ArenaItem> items;
  std::vector<int64_t> sizes;  // rounded up to the alignment
  std::vector<std::vector<int>>
      partners;  // by item: those that may lie at the same offset, one ending at the
                 // step where the other starts
};

// Largest first, each into the smallest gap that is free during its life.
std::vector<int64_t> place_by_size(const Problem& problem);
// In the order of the steps, as an allocator with a best-fit free list would.
std::vector<int64_t> place_by_time(const Problem& problem);

}  // namespace fusewise::memory_internal
