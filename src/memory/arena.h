// Places in one block of memory for buffers that do not all live at the same time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fusewise {

struct ArenaItem {
  int64_t bytes = 0;
  int first_step = 0;  // the step that makes it
  int last_step = 0;   // the last step that reads it, at least first_step
  // Items whose place this one may take over although both are alive at one step: its first step is their
  // last, and that step reads each of their elements before it writes the element at the same address. So the
  // two start at the same offset or do not overlap at all.
  std::vector<int> may_overwrite;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // multiples of arena_alignment
  int64_t bytes = 0;             // of the whole block
  int64_t lower_bound = 0;       // no placement needs less: the most bytes alive at one step
};

inline constexpr int64_t arena_alignment = 64;

// Deterministic. Tries placement by size and placement in the order of the steps and keeps the smaller; the
// former only while its work stays near-linear. UserError when the sum of sizes leaves 64 bits.
ArenaPlan plan_arena(std::span<const ArenaItem> items);

}  // namespace fusewise
